import { reasonWords, routeText } from '../../client/log-lines.ts'
import { metadataText } from '../../client/metadata-text.ts'
import type { OtpRequest } from '../../client/resources.ts'
import { formatTimeUntil } from '../../terminal/text.ts'
import { factLines, timeWithAge, type Fact } from './facts.ts'
import type { Line, Span } from '../spans.ts'
import { statusSpan, type Theme } from '../theme.ts'

type Context = {
  theme: Theme
  nowMs: number
  formatPhone(phone: string | null): string
  applicationName(id: string | null): string
}

/** Formats the time until the code expires; `-` if the request is no longer pending. */
export const expiryText = ({ status, expiresAt }: OtpRequest, nowMs: number) =>
  status === 'pending' ? formatTimeUntil(expiresAt, nowMs) : '-'

/** Formats channel, provider and delivery status: `SMS via twilio, delivered`. */
const deliveryText = ({ channel, provider, deliveryStatus }: OtpRequest) =>
  `${routeText(channel, provider)}${deliveryStatus === null ? '' : `, ${deliveryStatus}`}`

const resentText = (count: number) =>
  count === 0 ? '' : count === 1 ? ', resent once' : `, resent ${count} times`

/** Formats the details of a request, one fact per line. */
export function requestLines(
  request: OtpRequest,
  code: Span,
  { theme, nowMs, formatPhone, applicationName }: Context,
): Line[] {
  const { paint } = theme
  const timeText = (iso: string) => timeWithAge(iso, nowMs)
  const facts: Fact[] = [
    [
      'phone',
      [
        { text: formatPhone(request.phone), paint: paint.bold },
        request.country === null ? '' : `  ${request.country}`,
      ],
    ],
    [
      'status',
      [
        statusSpan(request, theme),
        request.failureReason === null ? '' : `  ${reasonWords(request.failureReason)}`,
      ],
    ],
    ...(request.channel === 'silent'
      ? [['proof', 'taken instead of a code'] satisfies Fact]
      : messageFacts(request, code, timeText(request.createdAt))),
    ['expires', request.status === 'pending' ? timeText(request.expiresAt) : null],
    ['verified', request.verifiedAt === null ? null : timeText(request.verifiedAt)],
    ['application', `${applicationName(request.appId)}  ${request.environment}`],
    ['metadata', request.metadata && metadataText(request.metadata)],
    ['request', request.id],
  ]
  return factLines(facts, theme)
}

const messageFacts = (request: OtpRequest, code: Span, sentAt: string): Fact[] => [
  ['code', code],
  ['tries', `${request.attempts} of ${request.maxAttempts}`],
  ['sent', `${sentAt}${resentText(request.resends)}`],
  ['message', deliveryText(request)],
  ['template', request.template ?? null],
]
