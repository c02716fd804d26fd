import { inboxProvider } from '../model/delivery.ts'
import type { OtpRequest } from '../model/request.ts'
import type { BreakdownChanges, CountChanges } from '../store/analytics.ts'
import type { Change } from '../store/operation.ts'
import { utcDay } from './analytics.ts'

/** Adds to the developer's counts of a day. */
export const countChange = (
  { developerId }: Pick<OtpRequest, 'developerId'>,
  counts: CountChanges,
  day: number,
): Change => ({ kind: 'counts', developerId, day, counts })

/**
 * Adds to the counts of today by application, country, channel and provider. Messages of test applications count without
 * channel and provider, as no provider gets them.
 */
export function breakdownChange(
  { developerId, appId, environment, country, channel, provider }: OtpRequest,
  counts: BreakdownChanges,
  now: number,
): Change {
  const route = environment === 'test' ? { channel: null, provider: null } : { channel, provider }
  return { kind: 'breakdown', key: { developerId, appId, day: utcDay(now), country, ...route }, counts }
}

/** Counts a new request, and its message if it stays in the inbox. A provider's message counts once it was handed over. */
export const newRequestCounts = ({ provider }: OtpRequest): BreakdownChanges => ({
  requests: 1,
  sent: provider === inboxProvider ? 1 : 0,
})
