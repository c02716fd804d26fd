import type { Developer } from '../model/developer.ts'
import { isId } from '../model/ids.ts'
import type { Keys } from '../model/keys.ts'
import { invalidCursor, readIdCursor, type Page, type PageRequest } from '../model/pagination.ts'
import { invalidPhone } from '../model/phone.ts'
import { isPlainPhone } from '../model/pseudonyms.ts'
import { tryParseLastDigits, tryParseTypedPhone } from '../model/typed-phone.ts'
import { isExpired, type ListedRequest, type OtpRequest } from '../model/request.ts'
import type { Clock } from '../model/clock.ts'
import type { OtpFilter, OtpRequestStore } from '../store/otp-requests.ts'
import type { Store } from '../store/store.ts'
import { findPhone } from './phones.ts'
import { environments } from '../../shared/otp-values.ts'

/** Requests that a page looks at. A filter that matches few of a number's requests gives short pages. */
const scannedMax = 500

/**
 * Creates the search for the requests of a phone number. Numbers are sealed: the record of a whole number leads to its
 * newest request, and each request to the one before it, in a list for each environment, at a cost that does not depend
 * on how many requests there are. Last digits are looked for in the newest requests, page by page.
 */
export function createPhoneSearch(needs: {
  store: Store<'otpRequests' | 'phones'>
  keys: Pick<Keys, 'context' | 'phone' | 'pseudonym'>
  clock: Clock
}) {
  const { keys, clock } = needs
  const { otpRequests, phones } = needs.store.read

  async function findNewest(developerId: string, phone: string): Promise<Positions> {
    const records = environments.map((environment) =>
      findPhone({ phones }, keys, { developerId, environment, phone }),
    )
    return (await Promise.all(records)).map((found) => found?.record.newestRequest ?? undefined)
  }

  /** Finds the requests to numbers that end with some digits, among the next that the filter matches. */
  async function findByLastDigits(
    developerId: string,
    digits: string,
    filter: OtpFilter,
    page: PageRequest,
  ): Promise<Page<ListedRequest>> {
    const { limit } = page
    const before = readIdCursor(page, 'otp')
    const query = { developerId, ...filter, now: clock.now(), limit: scannedMax, before }
    const scanned = await otpRequests.list(query)
    const matching = scanned.filter(({ phone }) => isPlainPhone(phone) && phone.endsWith(digits))
    const items = matching.slice(0, limit)
    const end = matching.length > limit ? items.at(-1) : scanned[scannedMax - 1]
    return { items, limit, nextCursor: end?.id ?? null }
  }

  return async (
    developer: Pick<Developer, 'id'>,
    { phone: input, country }: { phone: string; country?: string | undefined },
    filter: OtpFilter,
    page: PageRequest,
  ): Promise<Page<ListedRequest>> => {
    const { limit, cursor } = page
    const phone = tryParseTypedPhone(input, country)?.phone
    if (phone === undefined) {
      const digits = country === undefined ? tryParseLastDigits(input) : undefined
      if (digits === undefined) throw invalidPhone('query')
      return findByLastDigits(developer.id, digits, filter, page)
    }
    const starts = cursor === undefined ? await findNewest(developer.id, phone) : readPositions(cursor)
    const lists = starts.map((start, index) => {
      const isWanted = filter.environment === undefined || filter.environment === environments[index]
      return createBackwardList(otpRequests, isWanted ? start : undefined, limit + 1)
    })
    const now = clock.now()
    const items: OtpRequest[] = []
    for (let scanned = 0; items.length < limit && scanned < scannedMax; scanned++) {
      const heads = await Promise.all(lists.map((list) => list.head()))
      const newest = heads.reduce((a, b) => ((b?.id ?? '') > (a?.id ?? '') ? b : a))
      if (!newest) break
      lists[heads.indexOf(newest)]?.advance()
      if (newest.developerId === developer.id && matches(newest, filter, now)) items.push(newest)
    }
    const positions = lists.map((list) => list.position())
    const hasMore = positions.some((position) => position !== undefined)
    return { items, limit, nextCursor: hasMore ? formatPositions(positions) : null }
  }
}

/** Reads a request and those before it. */
function createBackwardList(
  store: Pick<OtpRequestStore, 'listBack'>,
  start: string | undefined,
  batchSize: number,
) {
  let position = start
  let batch: OtpRequest[] = []
  return {
    /** Id of the next request. It may have been deleted. */
    position: () => position,
    async head(): Promise<OtpRequest | undefined> {
      if (position === undefined) return undefined
      if (batch[0]?.id !== position) batch = await store.listBack(position, batchSize)
      // Those before a deleted request are older, and deleted too.
      if (batch.length === 0) position = undefined
      return batch[0]
    },
    advance() {
      position = batch.shift()?.previousRequest ?? undefined
    },
  }
}

function matches(request: ListedRequest, { appId, status }: OtpFilter, now: number): boolean {
  const statusNow = isExpired(request, now) ? 'expired' : request.status
  return (appId === undefined || request.appId === appId) && (status === undefined || status === statusNow)
}

/** Next request of each environment. */
type Positions = ReadonlyArray<string | undefined>

const formatPositions = (positions: Positions) =>
  positions.map((position) => position?.slice('otp_'.length) ?? '-').join(' ')

/** @throws INVALID_ARGUMENT (CURSOR_INVALID) */
function readPositions(cursor: string): Positions {
  const parts = cursor.split(' ')
  if (parts.length !== environments.length) throw invalidCursor()
  return parts.map((part) => {
    if (part !== '-' && !isId('otp', `otp_${part}`)) throw invalidCursor()
    return part === '-' ? undefined : `otp_${part}`
  })
}
