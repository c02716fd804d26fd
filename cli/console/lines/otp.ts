import type { OtpRequest } from '../../client/resources.ts'
import { comingTime, recentTime, relativeTime } from '../../terminal/text.ts'
import { factLines, type Fact } from './facts.ts'
import type { Line, Span } from '../spans.ts'
import { statusTone, type Theme } from '../theme.ts'

type Context = {
  theme: Theme
  nowMs: number
  phoneOf(phone: string | null): string
  nameOf(id: string | null): string
}

export const statusSpan = ({ status }: Pick<OtpRequest, 'status'>, theme: Theme): Span =>
  theme.status(statusTone(status), status)

/** How long a code is good for, in a few columns; `-` once it is over. */
export const expiryText = ({ status, expiresAt }: OtpRequest, nowMs: number) =>
  status === 'pending' ? comingTime(expiresAt, nowMs) : '-'

/** How the message went: `sms by twilio, delivered`. */
const deliveryText = ({ channel, provider, deliveryStatus }: OtpRequest) =>
  `${channel}${provider === null ? '' : ` by ${provider}`}${deliveryStatus === null ? '' : `, ${deliveryStatus}`}`

const resentText = (times: number) =>
  times === 0 ? '' : times === 1 ? ', resent once' : `, resent ${times} times`

/** All that is known of a request, a fact a line. */
export function requestLines(
  one: OtpRequest,
  code: Span,
  { theme, nowMs, phoneOf, nameOf }: Context,
): Line[] {
  const { paint } = theme
  const at = (iso: string) => `${recentTime(iso, nowMs)}  ${relativeTime(iso, nowMs)}`
  const facts: Fact[] = [
    [
      'phone',
      [{ text: phoneOf(one.phone), paint: paint.bold }, one.country === null ? '' : `  ${one.country}`],
    ],
    [
      'status',
      [statusSpan(one, theme), one.failureReason === null ? '' : `  ${reasonText(one.failureReason)}`],
    ],
    ['code', code],
    ['tries', `${one.attempts} of ${one.maxAttempts}`],
    ['sent', `${at(one.createdAt)}${resentText(one.resends)}`],
    ['message', deliveryText(one)],
    ['expires', one.status === 'pending' ? at(one.expiresAt) : null],
    ['verified', one.verifiedAt === null ? null : at(one.verifiedAt)],
    ['application', `${nameOf(one.appId)}  ${one.environment}`],
    ['request', one.id],
  ]
  return factLines(facts, theme)
}

const reasonText = (reason: string) => reason.replaceAll('_', ' ')
