import type { ListedRequest } from '../../../domain/model/request.ts'
import { channelNames, formatSeconds, messagesOf } from './present.ts'
import { accountSid, attemptSid, serviceSid, verificationSid } from './resources.ts'

/** One message of a request, by its number. */
export type Attempt = { request: ListedRequest; message: number }

/** Tells whether the user entered the code. All messages of a request have the same: it counts for the newest. */
export const isConverted = ({ request, message }: Attempt) =>
  request.status === 'verified' && message === messagesOf(request).length - 1

/** A message of a request as an attempt. What otpd does not know, such as a price, is null. */
export function presentAttempt({ request, message }: Attempt, baseUrl: string) {
  const { id, appId, phone, country } = request
  const messages = messagesOf(request)
  const { channel, sentAt } = messages[message] ?? { channel: request.channel, sentAt: request.sentAt }
  const isNewest = message === messages.length - 1
  const sid = attemptSid(id, message)
  return {
    sid,
    account_sid: accountSid(appId),
    service_sid: serviceSid(appId),
    verification_sid: verificationSid(id),
    date_created: formatSeconds(sentAt),
    date_updated: formatSeconds(isNewest ? request.updatedAt : sentAt),
    conversion_status: isConverted({ request, message }) ? 'converted' : 'unconverted',
    channel: channelNames[channel],
    price: null,
    channel_data: {
      to: phone,
      country,
      message_status: isNewest ? messageStatus(request) : null,
      error_code: null,
      carrier: null,
      mcc: null,
      mnc: null,
    },
    url: `${baseUrl}/v2/Attempts/${sid}`,
  }
}

const messageStatus = ({ deliveryStatus }: ListedRequest): string | null =>
  deliveryStatus === null || deliveryStatus === 'unknown' ? null : deliveryStatus.toUpperCase()

/** A page of attempts. @param next token of the next page */
export function presentAttempts(
  attempts: Attempt[],
  {
    page,
    pageSize,
    token,
    next,
    filters,
  }: {
    page: number
    pageSize: number
    token: string | undefined
    next: string | null
    filters: Record<string, string>
  },
  baseUrl: string,
) {
  const pageUrl = (number: number, pageToken?: string) => {
    const query = new URLSearchParams({ ...filters, PageSize: String(pageSize), Page: String(number) })
    if (pageToken !== undefined) query.set('PageToken', pageToken)
    return `${baseUrl}/v2/Attempts?${query}`
  }
  return {
    attempts: attempts.map((attempt) => presentAttempt(attempt, baseUrl)),
    meta: {
      page,
      page_size: pageSize,
      first_page_url: pageUrl(0),
      previous_page_url: null,
      next_page_url: next === null ? null : pageUrl(page + 1, next),
      url: pageUrl(page, token),
      key: 'attempts',
    },
  }
}

/** A code can be verified on another day than its message was counted: never more than the messages. */
export function presentSummary({ sent, verified }: { sent: number; verified: number }, baseUrl: string) {
  const converted = Math.min(sent, verified)
  return {
    total_attempts: sent,
    total_converted: converted,
    total_unconverted: sent - converted,
    conversion_rate_percentage: sent === 0 ? 0 : Math.round((10_000 * converted) / sent) / 100,
    url: `${baseUrl}/v2/Attempts/Summary`,
  }
}
