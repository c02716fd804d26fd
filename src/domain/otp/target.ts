import { applicationFields } from '../../shared/application-fields.ts'
import type { Awaitable } from '../model/awaitable.ts'
import type { CallingApplication } from '../model/application.ts'
import type { Facade } from '../model/compat.ts'
import { notFound, ServiceError } from '../model/errors.ts'
import { parsePhone } from '../model/phone.ts'
import { isLiving, type OtpRequest } from '../model/request.ts'
import type { OtpNeeds } from './operations.ts'
import { findPhone } from './phones.ts'
import { readTypedPhone, type TypedPhone } from './typed-phone.ts'

/**
 * The request that a call means: by its id, or as the newest living one of the application for a phone. A check by phone
 * may tell who checks.
 */
export type OtpTarget =
  { requestId: string } | (TypedPhone & { clientIp?: string | undefined; deviceId?: string | undefined })

/** A request as a call found it. `isLiving`: it could still be verified then. */
export type FoundRequest = { requestId: string; isLiving: boolean }

/** Builds NOT_FOUND for an unknown id, or for a phone without a request. */
export const requestNotFound = ({ requestId }: FoundRequest) =>
  requestId === ''
    ? new ServiceError('NOT_FOUND', 'No code is pending for this phone number. Send a new one.')
    : notFound('otpRequest')

/**
 * Result of an operation that changed nothing, because its phone meant another request by the time that it ran. The phone
 * is then looked up again.
 */
export const moved = 'moved'
export type Moved = typeof moved

type Needs = Pick<OtpNeeds, 'store' | 'keys' | 'clock'>

/** No request lives longer. */
const lifetimeMaxMs = applicationFields.otpTtlSeconds.maximum * 1000
/**
 * Requests of a phone that a look-up reads: the phone's budgets allow 10 in 10 minutes, and the list has those of all
 * applications of the developer.
 */
const requestsReadMax = 100

/**
 * Runs an operation on the request that a call means. A phone is looked up without a lock, so the request may have ended
 * when the operation runs: it then returns `moved`, and the phone is looked up again. Each round ends one request, so
 * there are only as many as calls at the same time end requests of this phone.
 *
 * @param operate an unknown phone has the id ''
 * @throws INVALID_PHONE_NUMBER; what `operate` throws
 */
export async function onTarget<R>(
  needs: Needs,
  application: CallingApplication,
  target: OtpTarget,
  operate: (found: FoundRequest) => Promise<R | Moved>,
): Promise<R> {
  const ended = new Set<string>()
  let find: () => Awaitable<FoundRequest>
  if ('requestId' in target) {
    const found = { requestId: target.requestId, isLiving: false }
    find = () => found
  } else {
    const { phone } = await readTypedPhone(needs, application, target)
    find = () => findLiving(needs, application, phone, ended)
  }
  for (;;) {
    const found = await find()
    const result = await operate(found)
    if (result !== moved) return result
    ended.add(found.requestId)
  }
}

/** Tells whether a request that a phone meant has ended since it was found. */
export const hasMoved = (
  { isLiving: wasLiving }: FoundRequest,
  request: OtpRequest | undefined,
  now: number,
): boolean => wasLiving && !(request && isLiving(request, now))

/** Finds the newest living request; without one the newest, if wrong codes ended it and its time is not over. */
async function findLiving(
  needs: Needs,
  application: CallingApplication,
  phone: string,
  ended: ReadonlySet<string>,
): Promise<FoundRequest> {
  const now = needs.clock.now()
  let newest: OtpRequest | undefined
  for await (const request of listRequests(needs, application, phone)) {
    if (request.createdAt <= now - lifetimeMaxMs) break
    const { id: requestId } = request
    if (isLiving(request, now) && !ended.has(requestId)) return { requestId, isLiving: true }
    newest ??= request
  }
  const isExhausted = newest?.failureReason === 'max_attempts' && newest.expiresAt > now
  return { requestId: newest && isExhausted ? newest.id : '', isLiving: false }
}

/** Finds the newest request that a façade made for a phone, in any state, without a lock. @throws INVALID_PHONE_NUMBER */
export async function findMadeBy(
  facade: Facade,
  needs: Pick<Needs, 'store' | 'keys'>,
  application: CallingApplication,
  phone: string,
): Promise<OtpRequest | undefined> {
  for await (const request of listRequests(needs, application, parsePhone(phone).phone))
    if (request.compat?.facade === facade) return request
  return undefined
}

/** Does the same for one that can still be verified. */
export async function findLivingMadeBy(
  facade: Facade,
  needs: Needs,
  application: CallingApplication,
  phone: string,
): Promise<OtpRequest | undefined> {
  const now = needs.clock.now()
  for await (const request of listRequests(needs, application, parsePhone(phone).phone)) {
    if (request.createdAt <= now - lifetimeMaxMs) break
    if (request.compat?.facade === facade && isLiving(request, now)) return request
  }
  return undefined
}

/** Lists the application's requests for a phone, newest first. Reads each one when it is asked for. */
async function* listRequests(
  { store, keys }: Pick<Needs, 'store' | 'keys'>,
  application: CallingApplication,
  phone: string,
): AsyncGenerator<OtpRequest> {
  let id = await findHead({ store, keys }, application, phone)
  for (let count = 0; id !== null && count < requestsReadMax; count++) {
    const request: OtpRequest | undefined = await store.read.otpRequests.find(id)
    if (!request) return
    if (request.appId === application.id) yield request
    id = request.previousRequest
  }
}

/** Finds the id of the newest request of the developer for a phone. */
export async function findHead(
  { store, keys }: Pick<Needs, 'store' | 'keys'>,
  { developerId, environment }: CallingApplication,
  phone: string,
): Promise<string | null> {
  const found = await findPhone(store.read, keys, { developerId, environment, phone })
  return found?.record.newestRequest ?? null
}
