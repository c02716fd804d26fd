import { useState } from 'react'
import { useKept } from '../hooks/use-persistent-state.ts'
import type { Issued } from '../issued.ts'
import type { Screen, ScreenProps } from '../screen.ts'
import { AppDetail, type AppTab } from './AppDetail.tsx'
import { AppsPanes } from './AppsPanes.tsx'
import { IssuedCredentials } from './IssuedCredentials.tsx'

/** Projects, their applications, and all that belongs to one of those. */
export const appsScreen: Screen = {
  name: 'apps',
  title: 'Apps',
  commands: [
    'otpd project create NAME',
    'otpd app create NAME --project PROJECT --env test --env-file FILE',
    'otpd app list',
    'otpd app get APP',
    'otpd rotate APP secret',
  ],
  View: AppsView,
}

type Open = { appId: string | null; tab: AppTab }

function AppsView(props: ScreenProps) {
  const { target } = props
  const [open, setOpen] = useKept<Open>(
    'apps open',
    { appId: null, tab: 'credentials' },
    target === null ? undefined : { appId: target.appId ?? null, tab: 'credentials' },
  )
  const [issued, setIssued] = useState<Issued | null>(null)
  const { appId, tab } = open
  const close = () => setOpen({ appId: null, tab: 'credentials' })
  if (issued !== null) return <IssuedCredentials {...props} issued={issued} close={() => setIssued(null)} />
  if (appId === null)
    return (
      <AppsPanes {...props} issue={setIssued} open={(id) => setOpen({ appId: id, tab: 'credentials' })} />
    )
  return (
    <AppDetail
      {...props}
      id={appId}
      tab={tab}
      setTab={(next) => setOpen({ appId, tab: next })}
      issue={setIssued}
      close={close}
    />
  )
}
