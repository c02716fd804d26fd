import type { OtpRequest } from '../../client/resources.ts'
import { LoadingOrError } from '../components/LoadingOrError.tsx'
import { RequestView } from '../components/RequestView.tsx'
import { useConsole } from '../console-context.ts'
import { useInbox } from '../hooks/use-inbox.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useResource } from '../hooks/use-resource.ts'
import { usePhoneKeys } from './use-phone-keys.ts'
import { useRequestKeys } from './use-request-keys.ts'
import { useSecret } from '../hooks/use-secret.ts'
import { useBreadcrumbs } from '../hooks/use-shell.ts'
import type { ScreenProps } from '../screen.ts'
import type { Span } from '../spans.ts'

type Props = ScreenProps & { id: string; close(): void }

/** Page of an OTP request: its details, its code if it is in the inbox, and its timeline. */
export function OtpRequestDetail({ width, height, id, close }: Props) {
  const request = useResource('/v1/otp/:id', { params: { id } })
  useKeys('detail', { back: close })
  useBreadcrumbs([id], request.data?.environment ?? null)
  if (request.data === undefined) return <LoadingOrError polled={request} width={width} height={height} />
  return <LoadedRequest request={request.data} width={width} height={height} />
}

type RequestProps = { request: OtpRequest; width: number; height: number }

function LoadedRequest({ request, width, height }: RequestProps) {
  const { theme, copy, go, findRequests } = useConsole()
  const secret = useSecret()
  const code = useInbox().data?.find(({ requestId }) => requestId === request.id)?.code ?? null
  useKeys('otp', {
    ...useRequestKeys(request, null),
    ...usePhoneKeys(request.phone),
    phone: () => findRequests(request.phone),
    app: { run: () => go('apps', { appId: request.appId }), label: 'open app' },
    copy: { run: () => copy(request.id, 'request id'), label: 'copy id' },
  })
  useKeys('detail', {
    show:
      code === null ? undefined : { run: secret.toggle, label: secret.isShown ? 'hide code' : 'show code' },
  })
  return <RequestView request={request} code={codeSpan()} width={width} height={height} />

  function codeSpan(): Span {
    if (code !== null) return secret.maskUnlessShown(code)
    const text = request.status === 'pending' ? 'sent to the phone, not stored' : 'no longer valid'
    return { text, paint: theme.paint.dim }
  }
}
