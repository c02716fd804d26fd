import { applicationFields } from '../../shared/application-fields.ts'
import type { CallingApplication } from '../model/application.ts'
import type { Facade } from '../model/compat.ts'
import { notFound, ServiceError } from '../model/errors.ts'
import { isId } from '../model/ids.ts'
import { parsePhone, type Phone } from '../model/phone.ts'
import { isVerifiable, type OtpRequest } from '../model/request.ts'
import type { LookUp, NamedRows, Rows } from '../store/operation.ts'
import type { Store } from '../store/store.ts'
import { readOwnRequest, withTrace } from './lifecycle.ts'
import type { OtpNeeds } from './needs.ts'
import {
  findPhone,
  phoneHashes,
  namePhoneRows,
  readNationalPhone,
  readPhone,
  tryReadPhone,
  type TypedPhone,
} from './phones.ts'

/** End user behind a check, as far as the caller tells. */
export type Checker = { clientIp?: string | undefined; deviceId?: string | undefined }

/**
 * The request that a call means: by its id, or as the newest verifiable one of the application for a phone. A check by phone
 * may tell who checks.
 */
export type OtpTarget = { requestId: string } | (TypedPhone & Checker)

/** A target whose phone was read. */
export type ParsedTarget = { requestId: string } | ({ phone: Phone } & Checker)

/** Reads the phone of a target, if it has one. @throws as `tryReadPhone` and `readNationalPhone` */
export async function readTarget(
  needs: { store: Store<'applications'> },
  application: CallingApplication,
  target: OtpTarget,
): Promise<ParsedTarget> {
  if ('requestId' in target) return target
  return { ...target, phone: tryReadPhone(target) ?? (await readNationalPhone(needs, application, target)) }
}

/** Builds NOT_FOUND for an unknown id, or for a phone without a request. */
export const requestNotFound = (target: ParsedTarget) =>
  'phone' in target || target.requestId === ''
    ? new ServiceError('NOT_FOUND', 'No code is pending for this phone number. Send a new one.')
    : notFound('otpRequest')

/** Finds the request that a call means among the rows of its operation. */
export type RequestFinder = {
  /** See `Preload`. Undefined if nothing leads to the request. */
  lookUp: ((rows: Rows) => LookUp) | undefined
  /** Names the request, and what leads to it. */
  nameRows(rows: Rows): NamedRows
  /** Reads it as it is now. */
  find(rows: Rows, now: number): OtpRequest | undefined
}

type FinderNeeds = Pick<OtpNeeds, 'keys'>

/** Finds the request of a target. That of a phone is the newest verifiable one, or else one that wrong codes ended. */
export function createRequestFinder(
  needs: FinderNeeds,
  application: CallingApplication,
  target: ParsedTarget,
): RequestFinder {
  if ('phone' in target) return createPhoneFinder(needs, application, target.phone)
  const { requestId } = target
  return {
    lookUp: undefined,
    nameRows: () => ({ request: isId('otp', requestId) ? requestId : undefined }),
    find: (rows) => readOwnRequest(rows, application, requestId),
  }
}

/** No request lives longer. */
const lifetimeMaxMs = applicationFields.otpTtlSeconds.maximum * 1000
/**
 * Requests of a phone that a look-up reads: the phone's budgets allow 10 in 10 minutes, and the list has those of all
 * applications of the developer.
 */
const requestsReadMax = 100

/**
 * Finds the newest verifiable request for a phone.
 *
 * @param facade only of this façade, and none that has ended
 */
export function createPhoneFinder(
  { keys }: FinderNeeds,
  application: CallingApplication,
  phone: Phone,
  facade?: Facade,
): RequestFinder {
  const { developerId, environment } = application
  const owned = { ...phone, developerId, environment }

  /** Follows the list of the phone. @returns the ids on the way, and the one that is not read yet */
  function follow(
    rows: Rows,
    now: number,
  ): { found?: OtpRequest | undefined; ids: string[]; unread?: string } {
    let exhausted: OtpRequest | undefined
    let isNewest = true
    const ids: string[] = []
    let id = readPhone(rows, keys, owned).record.newestRequest
    while (id !== null && ids.length < requestsReadMax) {
      ids.push(id)
      const request: OtpRequest | undefined = rows.request(id)
      if (!request) return { ids, unread: id }
      id = request.previousRequest
      if (request.appId !== application.id || (facade && request.compat?.facade !== facade)) continue
      if (request.createdAt <= now - lifetimeMaxMs) break
      if (isVerifiable(request, now)) return { found: request, ids }
      if (isNewest && isExhausted(request, now)) exhausted = request
      isNewest = false
    }
    return { found: facade ? undefined : exhausted, ids }
  }

  return {
    lookUp: (rows) => ({
      phones: phoneHashes(rows, keys, owned),
      requests: follow(rows, rows.now()).ids,
    }),
    nameRows(rows) {
      const { found, unread } = follow(rows, rows.now())
      return { ...namePhoneRows(rows, keys, owned), request: found?.id ?? unread }
    },
    find(rows, now) {
      const { found } = follow(rows, now)
      return found && withTrace(found, application)
    },
  }
}

/** Tells whether wrong codes ended a request whose time is not over. */
const isExhausted = ({ failureReason, expiresAt }: OtpRequest, now: number) =>
  failureReason === 'max_attempts' && expiresAt > now

/** Finds the newest request that a façade made for a phone, in any state, without a lock. @throws INVALID_PHONE_NUMBER */
export async function findMadeBy(
  facade: Facade,
  { store, keys }: Pick<OtpNeeds, 'store' | 'keys'>,
  { id: appId, developerId, environment }: CallingApplication,
  text: string,
): Promise<OtpRequest | undefined> {
  const { phone } = parsePhone(text)
  const found = await findPhone(store.read, keys, { developerId, environment, phone })
  let id = found?.record.newestRequest ?? null
  for (let count = 0; id !== null && count < requestsReadMax; count++) {
    const request: OtpRequest | undefined = await store.read.otpRequests.find(id)
    if (!request) return undefined
    if (request.appId === appId && request.compat?.facade === facade) return request
    id = request.previousRequest
  }
  return undefined
}
