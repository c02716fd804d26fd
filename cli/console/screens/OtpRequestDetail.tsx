import { Box } from 'ink'
import type { OtpRequest } from '../../client/resources.ts'
import { recentTime } from '../../terminal/text.ts'
import { Lines } from '../components/Lines.tsx'
import { Rule } from '../components/Rule.tsx'
import { LoadingOrError } from '../components/LoadingOrError.tsx'
import { useConsole } from '../console-context.ts'
import { useApplicationCalls } from '../hooks/use-application-calls.ts'
import { useApplications } from '../hooks/use-applications.ts'
import { useInbox } from '../hooks/use-inbox.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { usePolled } from '../hooks/use-polled.ts'
import { useNow } from '../hooks/use-now.ts'
import { useSecret } from '../hooks/use-secret.ts'
import { useBreadcrumbs, usePhoneFormatter } from '../hooks/use-shell.ts'
import { typeSpan } from '../lines/log.ts'
import { requestLines } from '../lines/otp.ts'
import type { ScreenProps } from '../screen.ts'
import type { Line, Span } from '../spans.ts'
import { cancelDialog, resendDialog, verifyDialog } from './otp-dialogs.ts'

type Props = ScreenProps & { id: string; close(): void }

/** Page of an OTP request: its details, its code if it is in the inbox, and its log. */
export function OtpRequestDetail({ width, height, id, close }: Props) {
  const { api } = useConsole()
  const request = usePolled(`otp ${id}`, async () => {
    const { data } = await api.asDeveloper('GET', '/v1/otp/:id', { params: { id } })
    return data
  })
  useKeys('detail', { back: close })
  useBreadcrumbs([id], request.data?.environment ?? null)
  if (request.data === undefined) return <LoadingOrError polled={request} width={width} height={height} />
  return <LoadedRequest request={request.data} width={width} height={height} />
}

type RequestProps = { request: OtpRequest; width: number; height: number }

function LoadedRequest({ request, width, height }: RequestProps) {
  const { theme, openDialog, copy, go, toast } = useConsole()
  const formatPhone = usePhoneFormatter()
  const nowMs = useNow()
  const { applicationName } = useApplications()
  const secret = useSecret()
  const code = useInbox().data?.find(({ requestId }) => requestId === request.id)?.code ?? null
  const applicationCalls = useApplicationCalls()
  const phone = formatPhone(request.phone)
  const closedReason = request.status === 'pending' ? null : `the request is ${request.status}`
  const dialogContext = { phone, toast }
  useKeys('otp', {
    verify: applicationCalls.handler(
      (application) => openDialog(verifyDialog(application, request, dialogContext)),
      closedReason,
    ),
    resend: applicationCalls.handler(
      (application) => openDialog(resendDialog(application, request, dialogContext)),
      closedReason,
    ),
    cancel: applicationCalls.handler(
      (application) => openDialog(cancelDialog(application, request, dialogContext)),
      closedReason,
    ),
    app: { run: () => go('apps', { appId: request.appId }), label: 'open app' },
    copy: { run: () => copy(request.id, 'request id'), label: 'copy id' },
  })
  useKeys('detail', {
    show:
      code === null ? undefined : { run: secret.toggle, label: secret.isShown ? 'hide code' : 'show code' },
  })
  const facts = requestLines(request, codeSpan(), { theme, nowMs, formatPhone, applicationName })
  const room = height - facts.length - 3
  return (
    <Box flexDirection="column" width={width} height={height}>
      <Lines lines={['', ...facts, '']} width={width} />
      {room > 0 && <Rule width={width} title="History" />}
      {room > 0 && <RequestLog request={request} width={width} height={room} />}
    </Box>
  )

  function codeSpan(): Span {
    if (code !== null) return secret.maskUnlessShown(code)
    const text = closedReason === null ? 'sent to the phone, not stored' : 'no longer valid'
    return { text, paint: theme.paint.dim }
  }
}

/** Log of the request, as far as it is among the application's newest 200 entries; `otpd logs` finds older ones. */
function RequestLog({ request, width, height }: RequestProps) {
  const { api, theme } = useConsole()
  const nowMs = useNow()
  const { id, appId } = request
  const log = usePolled(`otp ${id} log`, async () => {
    const { data } = await api.asDeveloper('GET', '/v1/logs', { query: { appId, limit: '200' } })
    return data.filter(({ requestId }) => requestId === id)
  })
  if (log.data === undefined) return <LoadingOrError polled={log} width={width} height={height} />
  const lines = log.data.map((entry): Line => [
    { text: ` ${recentTime(entry.at, nowMs).padEnd(13)}`, paint: theme.paint.dim },
    typeSpan(entry, theme),
    entry.detail === null ? '' : { text: `  ${entry.detail.replaceAll('_', ' ')}`, paint: theme.paint.dim },
  ])
  const noEntriesLines: Line[] = [
    { text: ' Not among the newest 200 log entries of the application.', paint: theme.paint.dim },
  ]
  return (
    <Lines lines={lines.length === 0 ? noEntriesLines : lines.slice(-height)} width={width} height={height} />
  )
}
