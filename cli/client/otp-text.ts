import type { OtpStatus } from '../../src/shared/otp-values.ts'
import { channelName, entryDetail, paintType, routeText } from './log-lines.ts'
import type { LogEntry, OtpRequest, SentOtp } from './resources.ts'
import type { Output } from '../terminal/output.ts'
import { kept } from '../terminal/table.ts'
import { printable, type Paint } from '../terminal/text.ts'

const marks = {
  pending: { text: '… pending', colour: 'cyan' },
  verified: { text: '✓ verified', colour: 'green' },
  failed: { text: '✗ failed', colour: 'red' },
  expired: { text: '○ expired', colour: 'dim' },
  canceled: { text: '○ canceled', colour: 'dim' },
} as const satisfies Record<OtpStatus, { text: string; colour: keyof Paint }>

/** Formats the status of a code, with a symbol and colour. */
export const paintOtpStatus = (status: OtpStatus, paint: Paint) =>
  paint[marks[status].colour](marks[status].text)

/** Provider of messages that stay in the inbox. */
const inboxProvider = 'inbox'

/**
 * Says what happened to a code that was sent.
 *
 * @param request null for a test application, or if the request could not be read
 */
export function sentTitle({ phone, code }: SentOtp, request: OtpRequest | null, paint: Paint) {
  const to = paint.bold(printable(phone))
  const tick = paint.green('✓')
  if (code !== undefined) return `${tick} Code for ${to} kept in the inbox (test applications send nothing)`
  if (request === null) return `${tick} Code sent to ${to}`
  const { provider, deliveryStatus } = request
  const channel = channelName(request.channel)
  if (provider === inboxProvider)
    return `${tick} Code for ${to} kept in the inbox (${phone.startsWith('+999') ? 'a virtual number' : 'no provider is configured'})`
  const way = provider === null ? `by ${channel}` : `by ${channel} via ${printable(provider)}`
  if (deliveryStatus === 'queued')
    return `${paint.yellow('…')} Code for ${to} waits for a provider (${channel}); it is tried until it expires`
  if (deliveryStatus === 'unknown')
    return `${paint.yellow('▲')} Code for ${to} may have been sent ${way}: the provider did not say`
  return `${tick} Code sent to ${to} ${way}`
}

/** Formats how a code was delivered: `delivered, SMS via main`, or `inbox`. */
export function deliveryText({ channel, provider, deliveryStatus }: OtpRequest): string {
  if (provider === inboxProvider) return 'inbox'
  const way = routeText(channel, provider)
  // The status comes first: on a narrow terminal the end is cut.
  return deliveryStatus === null ? way : `${printable(deliveryStatus)}, ${way}`
}

/** Formats everything that happened to a code, oldest first. */
export function timelineText(
  entries: readonly LogEntry[],
  { paint, formatTable, clockTime, clockHeading }: Output,
) {
  if (entries.length === 0) return 'Nothing is recorded about it any more.'
  const rows = entries.map((entry) => [
    clockTime(entry.at),
    paintType(entry.type, paint),
    printable(entryDetail(entry)),
  ])
  return formatTable([kept(clockHeading('TIME')), kept('EVENT'), 'DETAIL'], rows)
}
