import { useState } from 'react'
import { usePersistentState } from '../hooks/use-persistent-state.ts'
import type { IssuedCredentialSet } from '../issued-credentials.ts'
import type { Screen, ScreenProps } from '../screen.ts'
import { AppDetail, type AppTab } from './AppDetail.tsx'
import { AppsPanes } from './AppsPanes.tsx'
import { IssuedCredentials } from './IssuedCredentials.tsx'

/** Screen with the projects, their applications, and the page of an application. */
export const appsScreen: Screen = {
  title: 'Apps',
  commands: [
    'otpd project create NAME',
    'otpd app create NAME --project PROJECT --env live --env-file FILE',
    'otpd app list',
    'otpd app get APP',
    'otpd app rotate APP client-secret',
    'otpd app page APP',
    'otpd otp session create --return-url URL --env-file FILE',
  ],
  View: AppsView,
}

type OpenApp = { appId: string | null; tab: AppTab }

function AppsView(props: ScreenProps) {
  const { target } = props
  const [openApp, setOpenApp] = usePersistentState<OpenApp>(
    'apps open',
    { appId: null, tab: 'credentials' },
    target === null ? undefined : { appId: target.appId ?? null, tab: 'credentials' },
  )
  const [issued, setIssued] = useState<IssuedCredentialSet | null>(null)
  const { appId, tab } = openApp
  const close = () => setOpenApp({ appId: null, tab: 'credentials' })
  if (issued !== null) return <IssuedCredentials {...props} issued={issued} close={() => setIssued(null)} />
  if (appId === null)
    return (
      <AppsPanes
        {...props}
        onIssued={setIssued}
        open={(id) => setOpenApp({ appId: id, tab: 'credentials' })}
      />
    )
  return (
    <AppDetail
      {...props}
      id={appId}
      tab={tab}
      setTab={(next) => setOpenApp({ appId, tab: next })}
      onIssued={setIssued}
      close={close}
    />
  )
}
