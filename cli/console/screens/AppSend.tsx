import type { OtpRequest } from '../../client/resources.ts'
import { Lines } from '../components/Lines.tsx'
import { LoadingOrError } from '../components/LoadingOrError.tsx'
import { RequestView } from '../components/RequestView.tsx'
import { useConsole } from '../console-context.ts'
import { useInbox } from '../hooks/use-inbox.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useResource } from '../hooks/use-resource.ts'
import { wrap, type Line, type Span } from '../spans.ts'
import type { SentCode, TabProps } from './app-tab.ts'
import { liveText } from './otp-dialogs.ts'
import { useRequestKeys } from './use-request-keys.ts'

/** Tab that sends a code as the application, shows what happens to it, and verifies it. */
export function AppSend({ app, keys, sent, width, height }: TabProps) {
  const { theme } = useConsole()
  const id = sent?.requestId ?? ''
  const poll = { isActive: sent !== null, intervalMs: 1000 }
  const request = useResource('/v1/otp/:id', { params: { id } }, poll)
  useKeys('apps', keys)
  if (sent === null) return <Lines lines={introduction()} width={width} height={height} />
  if (request.data === undefined) return <LoadingOrError polled={request} width={width} height={height} />
  return <SentRequest {...{ request: request.data, sent, keys, width, height }} />

  function introduction(): Line[] {
    const text =
      app.environment === 'test'
        ? 'Press S to send a code. A test application sends nothing to the phone: its code appears here.'
        : `Press S to send a code. ${liveText} You are asked first.`
    return [
      ...wrap(text, width - 2).map((line) => ` ${line}`),
      '',
      ...wrap('Then V verifies it, and the timeline shows every step.', width - 2).map((line) => ({
        text: ` ${line}`,
        paint: theme.paint.dim,
      })),
    ]
  }
}

type SentProps = Pick<TabProps, 'keys' | 'width' | 'height'> & { request: OtpRequest; sent: SentCode }

function SentRequest({ request, sent, keys, width, height }: SentProps) {
  const { theme, go, copy } = useConsole()
  // A live code is in the inbox only while no provider is configured.
  const inbox = useInbox()
  const code = sent.code ?? inbox.data?.find(({ requestId }) => requestId === request.id)?.code ?? null
  const { verify } = useRequestKeys(request, code)
  useKeys('apps', {
    ...keys,
    verify,
    open: { run: () => go('otp', { requestId: request.id }), label: 'open request' },
    copy: code === null ? undefined : { run: () => copy(code, 'code'), label: 'copy code' },
  })
  return <RequestView request={request} code={codeSpan()} width={width} height={height} />

  function codeSpan(): Span {
    const { bold, dim } = theme.paint
    if (request.status !== 'pending') return { text: 'no longer valid', paint: dim }
    return code === null ? { text: 'sent to the phone', paint: dim } : { text: code, paint: bold }
  }
}
