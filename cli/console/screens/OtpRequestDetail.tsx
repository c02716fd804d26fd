import { Box } from 'ink'
import type { OtpRequest } from '../../client/resources.ts'
import { recentTime } from '../../terminal/text.ts'
import { Lines } from '../components/Lines.tsx'
import { Rule } from '../components/Rule.tsx'
import { Waiting } from '../components/Waiting.tsx'
import { useConsole } from '../console-context.ts'
import { useAppCalls } from '../hooks/use-app-calls.ts'
import { useApplications } from '../hooks/use-applications.ts'
import { useInbox } from '../hooks/use-inbox.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useLive } from '../hooks/use-polled.ts'
import { useNow } from '../hooks/use-now.ts'
import { useSecret } from '../hooks/use-secret.ts'
import { useCrumbs, usePhone } from '../hooks/use-shell.ts'
import { typeSpan } from '../lines/log.ts'
import { requestLines } from '../lines/otp.ts'
import type { ScreenProps } from '../screen.ts'
import type { Line, Span } from '../spans.ts'
import { cancelDialog, resendDialog, verifyDialog } from './otp-dialogs.ts'

type Props = ScreenProps & { id: string; close(): void }

/** One request: all that is known of it, its code where that stayed here, and what happened to it. */
export function OtpRequestDetail({ width, height, id, close }: Props) {
  const { api } = useConsole()
  const request = useLive(`otp ${id}`, async () => {
    const { data } = await api.asDeveloper('GET', '/v1/otp/:id', { params: { id } })
    return data
  })
  useKeys('detail', { back: close })
  useCrumbs([id], request.data?.environment ?? null)
  if (request.data === undefined) return <Waiting live={request} width={width} height={height} />
  return <Found request={request.data} width={width} height={height} />
}

type FoundProps = { request: OtpRequest; width: number; height: number }

function Found({ request, width, height }: FoundProps) {
  const { theme, ask, copy, go, toast } = useConsole()
  const phoneOf = usePhone()
  const nowMs = useNow()
  const { nameOf } = useApplications()
  const secret = useSecret()
  const code = useInbox().data?.find(({ requestId }) => requestId === request.id)?.code ?? null
  const appCalls = useAppCalls()
  const phone = phoneOf(request.phone)
  const over = request.status === 'pending' ? null : `the request is ${request.status}`
  const told = { phone, toast }
  useKeys('otp', {
    verify: appCalls.handler((application) => ask(verifyDialog(application, request, told)), over),
    resend: appCalls.handler((application) => ask(resendDialog(application, request, told)), over),
    cancel: appCalls.handler((application) => ask(cancelDialog(application, request, told)), over),
    app: { run: () => go('apps', { appId: request.appId }), label: 'its app' },
    copy: { run: () => copy(request.id, 'request id'), label: 'copy id' },
  })
  useKeys('detail', {
    show:
      code === null ? undefined : { run: secret.toggle, label: secret.isShown ? 'cover code' : 'show code' },
  })
  const facts = requestLines(request, codeSpan(), { theme, nowMs, phoneOf, nameOf })
  const room = height - facts.length - 3
  return (
    <Box flexDirection="column" width={width} height={height}>
      <Lines lines={['', ...facts, '']} width={width} />
      {room > 0 && <Rule width={width} title="What happened" />}
      {room > 0 && <Happened request={request} width={width} height={room} />}
    </Box>
  )

  function codeSpan(): Span {
    if (code !== null) return secret.cover(code)
    const text = over === null ? 'on its way to the phone, and kept nowhere' : 'over'
    return { text, paint: theme.paint.dim }
  }
}

/** Out of the newest log entries of the application: older ones are left to `otpd logs`. */
function Happened({ request, width, height }: FoundProps) {
  const { api, theme } = useConsole()
  const nowMs = useNow()
  const { id, appId } = request
  const log = useLive(`otp ${id} log`, async () => {
    const { data } = await api.asDeveloper('GET', '/v1/logs', { query: { appId, limit: '200' } })
    return data.filter(({ requestId }) => requestId === id)
  })
  if (log.data === undefined) return <Waiting live={log} width={width} height={height} />
  const lines = log.data.map((entry): Line => [
    { text: ` ${recentTime(entry.at, nowMs).padEnd(13)}`, paint: theme.paint.dim },
    typeSpan(entry, theme),
    entry.detail === null ? '' : { text: `  ${entry.detail.replaceAll('_', ' ')}`, paint: theme.paint.dim },
  ])
  const old: Line[] = [{ text: ' Too long ago for the newest entries of the log.', paint: theme.paint.dim }]
  return <Lines lines={lines.length === 0 ? old : lines.slice(-height)} width={width} height={height} />
}
