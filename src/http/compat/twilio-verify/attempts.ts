import type { AnalyticsService } from '../../../domain/log/analytics.ts'
import type { CallingApplication } from '../../../domain/model/application.ts'
import { notFound, ServiceError } from '../../../domain/model/errors.ts'
import { lowestId } from '../../../domain/model/ids.ts'
import { tryParsePhone } from '../../../domain/model/phone.ts'
import type { ListedRequest } from '../../../domain/model/request.ts'
import type { OtpService } from '../../../domain/otp/otp.ts'
import { applicationFields } from '../../../shared/application-fields.ts'
import { parseTime } from '../../../shared/times.ts'
import { invalidParameter, pageFields, readPage, readQuery, type Fields } from './fields.ts'
import {
  isConverted,
  presentAttempt,
  presentAttempts,
  presentSummary,
  type Attempt,
} from './present-attempts.ts'
import { channelNames, messagesOf } from './present.ts'
import { attemptSid, readAttemptSid, readServiceSid, readVerificationSid } from './resources.ts'
import type { Call } from './verifications.ts'

type Place = NonNullable<ReturnType<typeof readAttemptSid>>

const summaryFields = [
  'VerifyServiceSid',
  'DateCreatedAfter',
  'DateCreatedBefore',
  'Country',
  'Channel',
] as const
const listFields = [...summaryFields, 'VerificationSid', 'ChannelData.To', 'Status'] as const

/** Requests that a page looks at. A filter that matches few gives short pages. */
const scannedMax = 1000
const batchSize = 100
/** A code is sent again until it expires. */
const lifetimeMaxMs = applicationFields.otpTtlSeconds.maximum * 1000

/** The calls of attempts: the messages of an application's requests of the API and of the façade. */
export function createAttemptCalls({
  analytics,
  otp,
  publicUrl,
}: {
  analytics: Pick<AnalyticsService, 'countMessages'>
  otp: OtpService
  publicUrl: () => string
}) {
  async function find({ id: appId }: CallingApplication, requestId: string) {
    try {
      return await otp.get({ appId }, requestId)
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'NOT_FOUND') return undefined
      throw error
    }
  }

  /** Reads requests that may match, newest first. @param start begins with this one, or with one before it */
  async function* readRequests(
    application: CallingApplication,
    { requestId, phone, createdBefore, isConverted }: Filter,
    start: Place | undefined,
  ): AsyncGenerator<ListedRequest> {
    const { id: appId, developerId, environment } = application
    let cursor: string | undefined
    const only = requestId ?? (phone === undefined ? start?.requestId : undefined)
    if (only !== undefined) {
      const request = await find(application, only)
      if (request) yield request
      if (requestId !== undefined) return
      cursor = only
    } else if (phone === undefined && createdBefore !== undefined) {
      cursor = lowestId('otp', createdBefore)
    }
    do {
      const page = { limit: batchSize, cursor }
      const owner = { id: developerId }
      const { items, nextCursor } =
        phone === undefined
          ? await otp.list(owner, { appId, ...(isConverted && { status: 'verified' as const }) }, page)
          : await otp.listByPhone(owner, { phone }, { appId, environment }, page)
      yield* items
      cursor = nextCursor ?? undefined
    } while (cursor !== undefined)
  }

  /** Finds a page of attempts, newest first. `next` is the last that the page looked at, if others may follow. */
  async function findPage(
    application: CallingApplication,
    filter: Filter,
    { start, pageSize }: { start: Place | undefined; pageSize: number },
  ): Promise<{ attempts: Attempt[]; next: string | null }> {
    const attempts: Attempt[] = []
    let scanned = 0
    for await (const request of readRequests(application, filter, start)) {
      if (start && request.id > start.requestId) continue
      if (request.createdAt + lifetimeMaxMs <= (filter.createdAfter ?? 0)) break
      if (scanned++ === scannedMax) return { attempts, next: attemptSid(request.id, messagesMax) }
      const end = start?.requestId === request.id ? start.message : Infinity
      for (let message = messagesOf(request).length - 1; message >= 0; message--) {
        const attempt = { request, message }
        if (message >= end || !matches(attempt, filter)) continue
        const last = attempts.at(-1)
        if (last && attempts.length === pageSize)
          return { attempts, next: attemptSid(last.request.id, last.message) }
        attempts.push(attempt)
      }
    }
    return { attempts, next: null }
  }

  async function list({ application, request }: Call): Promise<object> {
    const query = readQuery(request, [...listFields, ...pageFields])
    const { page, pageSize } = readPage(query)
    const { PageToken, Page: _page, PageSize: _pageSize, ...filters } = query
    const start = PageToken === undefined ? undefined : readAttemptSid(PageToken)
    if (PageToken !== undefined && !start) throw invalidParameter('PageToken')
    const filter = readFilter(filters)
    const isOwn = filter.appId === undefined || filter.appId === application.id
    const { attempts, next } = isOwn
      ? await findPage(application, filter, { start, pageSize })
      : { attempts: [], next: null }
    return presentAttempts(attempts, { page, pageSize, token: PageToken, next, filters }, publicUrl())
  }

  async function get({ application }: Call, { item }: { item: string }): Promise<object> {
    const place = readAttemptSid(item)
    const request = place && (await find(application, place.requestId))
    if (!request || !messagesOf(request)[place.message]) throw notFound('otpRequest')
    return presentAttempt({ request, message: place.message }, publicUrl())
  }

  async function summarize({ application, request }: Call): Promise<object> {
    const { appId, createdAfter, createdBefore, country, channel } = readFilter(
      readQuery(request, summaryFields),
    )
    const isOwn = appId === undefined || appId === application.id
    const counts = isOwn
      ? await analytics.countMessages(application, {
          from: createdAfter,
          until: createdBefore,
          country,
          channel:
            channel && (Object.entries(channelNames).find(([, name]) => name === channel)?.[0] ?? channel),
        })
      : { sent: 0, verified: 0 }
    return presentSummary(counts, publicUrl())
  }

  return { attempts: { GET: list }, attempt: { GET: get }, summary: { GET: summarize } }
}

/** More than a request has. */
const messagesMax = 0xf

type Filter = ReturnType<typeof readFilter>

const attemptChannels = ['sms', 'call', 'whatsapp', 'email', 'rbm']

/** Reads the filters of a list. An unknown sid matches nothing. @throws INVALID_ARGUMENT */
function readFilter(query: Fields<(typeof listFields)[number]>) {
  const { Channel, Country, VerifyServiceSid, VerificationSid, Status } = query
  const to = query['ChannelData.To']
  const phone = to === undefined ? undefined : tryParsePhone(to)?.phone
  if (to !== undefined && phone === undefined) throw invalidParameter('ChannelData.To')
  if (Channel !== undefined && !attemptChannels.includes(Channel)) throw invalidParameter('Channel')
  if (Country !== undefined && !/^[a-z]{2}$/i.test(Country)) throw invalidParameter('Country')
  const status = Status?.toLowerCase()
  if (status !== undefined && status !== 'converted' && status !== 'unconverted')
    throw invalidParameter('Status')
  return {
    appId: VerifyServiceSid === undefined ? undefined : (readServiceSid(VerifyServiceSid) ?? ''),
    requestId: VerificationSid === undefined ? undefined : (readVerificationSid(VerificationSid) ?? ''),
    phone,
    country: Country?.toUpperCase(),
    channel: Channel,
    isConverted: status === undefined ? undefined : status === 'converted',
    createdAfter: readTime('DateCreatedAfter', query.DateCreatedAfter),
    createdBefore: readTime('DateCreatedBefore', query.DateCreatedBefore),
  }
}

/** Reads a time of ISO 8601; a date is its beginning. @throws INVALID_ARGUMENT */
function readTime(name: 'DateCreatedAfter' | 'DateCreatedBefore', text: string | undefined) {
  if (text === undefined) return undefined
  const isTime = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d))?$/.test(text)
  const time = isTime ? parseTime(text) : NaN
  if (!(time >= 0)) throw invalidParameter(name)
  return time
}

function matches(attempt: Attempt, filter: Filter): boolean {
  const { phone, country } = attempt.request
  const sent = messagesOf(attempt.request)[attempt.message]
  return (
    sent !== undefined &&
    (filter.phone ?? phone) === phone &&
    (filter.country ?? country) === country &&
    (filter.channel ?? channelNames[sent.channel]) === channelNames[sent.channel] &&
    (filter.isConverted === undefined || filter.isConverted === isConverted(attempt)) &&
    sent.sentAt >= (filter.createdAfter ?? 0) &&
    sent.sentAt < (filter.createdBefore ?? Infinity)
  )
}
