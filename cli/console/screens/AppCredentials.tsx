import { useEffect, useState } from 'react'
import { CliError } from '../../terminal/errors.ts'
import type { Application } from '../../client/resources.ts'
import { relativeTime, remaining } from '../../terminal/text.ts'
import { messageFacts } from '../lines/application.ts'
import { Lines } from '../components/Lines.tsx'
import { useConsole } from '../console-context.ts'
import { credentialLines } from '../lines/credentials.ts'
import { factLines } from '../lines/facts.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { useNow } from '../hooks/use-now.ts'
import { useSecret } from '../hooks/use-secret.ts'
import { credentialNames, type CredentialKey } from '../issued.ts'
import type { Handler } from '../key-router.ts'
import { wrap, type Line } from '../spans.ts'
import { rotateDialog } from './app-dialogs.ts'
import type { TabProps } from './AppDetail.tsx'

const credentialKeys = ['clientId', 'clientSecret', 'apiKey', 'webhookSecret'] as const

const abouts: Record<CredentialKey, string> = {
  clientId: 'Says which application calls. It is no secret, and stays the same.',
  clientSecret: 'Proves that it is your backend that calls. Only a hash of it is stored: R makes a new one.',
  apiKey: 'Goes with the secret. Only a hash of it is stored: R makes a new one.',
  webhookSecret: 'Deliveries are signed with it, so that their receiver knows where they come from.',
}

const onlyHash = 'only a hash of it is stored; R makes a new one'

/** What calls of the application prove themselves with, as far as the server can still tell. */
export function AppCredentials({ app, keys, width, height, issue }: TabProps) {
  const console = useConsole()
  const { theme, ask, copy } = console
  const nowMs = useNow()
  const webhook = useWebhookSecret(app.id)
  const list = useList<CredentialKey>({
    name: 'credentials',
    rows: credentialKeys,
    height: credentialKeys.length,
    idOf: (key) => key,
  })
  const selected = list.selected ?? 'clientId'
  const copyKey: Record<CredentialKey, Handler> = {
    clientId: () => copy(app.clientId, 'client id'),
    clientSecret: { unavailable: onlyHash },
    apiKey: { unavailable: onlyHash },
    webhookSecret: () => webhook.use((value) => copy(value, 'webhook secret')),
  }
  const showKey: Record<CredentialKey, Handler | undefined> = {
    clientId: undefined,
    clientSecret: { unavailable: onlyHash },
    apiKey: { unavailable: onlyHash },
    webhookSecret: { run: webhook.toggle, label: webhook.isShown ? 'cover' : 'show' },
  }
  useKeys('apps', {
    ...keys,
    rotate:
      selected === 'clientId'
        ? { unavailable: 'the client id stays the same for ever' }
        : () => ask(rotateDialog(console, app, selected, issue)),
    copy: copyKey[selected],
    show: showKey[selected],
  })
  const values: Record<CredentialKey, string> = {
    clientId: app.clientId,
    clientSecret: app.clientSecretPreview,
    apiKey: app.apiKeyPreview,
    webhookSecret: webhook.shown,
  }
  const rows = credentialKeys.map((key) => ({
    label: credentialNames[key].label,
    value: values[key],
    remark: rotatedText(app, key, nowMs),
  }))
  const lines: Line[] = [
    ...credentialLines(rows, credentialKeys.indexOf(selected), width, theme),
    '',
    ...wrap(abouts[selected], width - 2).map((text) => ({ text: ` ${text}`, paint: theme.paint.dim })),
    '',
    ...factLines(
      [
        ['codes live', remaining(app.otpTtlSeconds * 1000)],
        ...messageFacts(app),
        ['created', relativeTime(app.createdAt, nowMs)],
        ['changed', relativeTime(app.updatedAt, nowMs)],
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
  const at = rotatedAt[key]
  return at === undefined ? '' : `rotated ${relativeTime(at, nowMs)}`
}

/** Asked for only when it is wanted, and forgotten as soon as it is covered again. */
function useWebhookSecret(id: string) {
  const { api, toast, crash } = useConsole()
  const { isShown, toggle, cover } = useSecret()
  const [value, setValue] = useState('')
  useEffect(() => {
    if (!isShown) setValue('')
  }, [isShown])
  const find = async (use: (value: string) => void) => {
    try {
      const { data } = await api.asDeveloper('GET', '/v1/applications/:id/webhook-secret', { params: { id } })
      use(data.webhookSecret)
    } catch (error) {
      if (!(error instanceof CliError)) return crash(error)
      toast(error.message, 'bad')
    }
  }
  return {
    isShown,
    shown: cover(value),
    use: (act: (value: string) => void) => void find(act),
    toggle() {
      if (isShown) return toggle()
      void find((found) => {
        setValue(found)
        toggle()
      })
    },
  }
}
