import { useEffect, useState } from 'react'
import type { Application } from '../../client/resources.ts'
import { relativeTime } from '../../terminal/text.ts'
import { settingFacts } from '../lines/application.ts'
import { Lines } from '../components/Lines.tsx'
import { showError, useConsole } from '../console-context.ts'
import { credentialLines } from '../lines/credentials.ts'
import { factLines } from '../lines/facts.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { useNow } from '../hooks/use-now.ts'
import { useSecret } from '../hooks/use-secret.ts'
import { credentialKeys, credentialNames, type CredentialKey } from '../issued-credentials.ts'
import type { Handler } from '../key-router.ts'
import { wrap, type Line } from '../spans.ts'
import { rotateDialog } from './app-dialogs.ts'
import type { TabProps } from './app-tab.ts'

const descriptions: Record<CredentialKey, string> = {
  clientId: 'Identifies the application. It is not secret and never changes.',
  clientSecret: 'Authenticates your backend. Only a hash is stored; R creates a new one.',
  apiKey: 'Sent together with the secret. Only a hash is stored; R creates a new one.',
  webhookSecret: 'Signs webhook deliveries, so that receivers can verify where they come from.',
}

const hashOnlyReason = 'only a hash is stored; R creates a new one'

/** Tab with the application's credentials; secrets that are stored as a hash appear as a preview. */
export function AppCredentials({ app, keys, width, height, onIssued }: TabProps) {
  const console = useConsole()
  const { theme, openDialog, copy } = console
  const nowMs = useNow()
  const webhookSecret = useWebhookSecret(app.id)
  const list = useList<CredentialKey>({
    name: 'credentials',
    rows: credentialKeys,
    height: credentialKeys.length,
    getRowId: (key) => key,
  })
  const selected = list.selected ?? 'clientId'
  const copyHandlers: Record<CredentialKey, Handler> = {
    clientId: () => copy(app.clientId, 'client id'),
    clientSecret: { unavailable: hashOnlyReason },
    apiKey: { unavailable: hashOnlyReason },
    webhookSecret: () => webhookSecret.withValue((value) => copy(value, 'webhook secret')),
  }
  const showHandlers: Record<CredentialKey, Handler | undefined> = {
    clientId: undefined,
    clientSecret: { unavailable: hashOnlyReason },
    apiKey: { unavailable: hashOnlyReason },
    webhookSecret: { run: webhookSecret.toggle, label: webhookSecret.isShown ? 'hide' : 'show' },
  }
  useKeys('apps', {
    ...keys,
    rotate:
      selected === 'clientId'
        ? { unavailable: 'the client id never changes' }
        : () => openDialog(rotateDialog(console, app, selected, onIssued)),
    copy: copyHandlers[selected],
    show: showHandlers[selected],
  })
  const values: Record<CredentialKey, string> = {
    clientId: app.clientId,
    clientSecret: app.clientSecretPreview,
    apiKey: app.apiKeyPreview,
    webhookSecret: webhookSecret.display,
  }
  const rows = credentialKeys.map((key) => ({
    label: credentialNames[key].label,
    value: values[key],
    remark: rotatedText(app, key, nowMs),
  }))
  const lines: Line[] = [
    ...credentialLines(rows, credentialKeys.indexOf(selected), width, theme),
    '',
    ...wrap(descriptions[selected], width - 2).map((text) => ({ text: ` ${text}`, paint: theme.paint.dim })),
    '',
    ...factLines(
      [
        ...settingFacts(app),
        ['created', relativeTime(app.createdAt, nowMs)],
        ['updated', relativeTime(app.updatedAt, nowMs)],
      ],
      theme,
    ),
  ]
  return <Lines lines={lines} width={width} height={height} />
}

function rotatedText(app: Application, key: CredentialKey, nowMs: number) {
  const rotatedAt: Record<CredentialKey, string | undefined> = {
    clientId: undefined,
    clientSecret: app.clientSecretRotatedAt,
    apiKey: app.apiKeyRotatedAt,
    webhookSecret: app.webhookSecretRotatedAt,
  }
  const rotatedTime = rotatedAt[key]
  return rotatedTime === undefined ? '' : `rotated ${relativeTime(rotatedTime, nowMs)}`
}

/** Loads the webhook secret only on demand, and forgets it as soon as it is masked again. */
function useWebhookSecret(id: string) {
  const console = useConsole()
  const { isShown, toggle, maskUnlessShown } = useSecret()
  const [value, setValue] = useState('')
  useEffect(() => {
    if (!isShown) setValue('')
  }, [isShown])
  const load = async (callback: (value: string) => void) => {
    try {
      const { data } = await console.api.asDeveloper('GET', '/v1/applications/:id/webhook-secret', {
        params: { id },
      })
      callback(data.webhookSecret)
    } catch (error) {
      showError(console, error)
    }
  }
  return {
    isShown,
    display: maskUnlessShown(value),
    withValue: (callback: (value: string) => void) => void load(callback),
    toggle() {
      if (isShown) return toggle()
      void load((secret) => {
        setValue(secret)
        toggle()
      })
    },
  }
}
