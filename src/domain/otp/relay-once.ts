import { idempotencyInProgress, readEarlierResult, resultChanges } from '../limits/idempotency.ts'
import type { RelayedFacts } from '../log/relay-events.ts'
import { inboxProvider, type DispatchResult } from '../model/delivery.ts'
import type { GuardAlert } from '../model/guard.ts'
import type { IdempotencyScope } from '../model/idempotency.ts'
import { indexHash, type Keys } from '../model/keys.ts'
import type { RateState } from '../model/rate-limit.ts'
import { isRejected, reject, type Rejected } from '../model/rejected.ts'
import type { Channel } from '../model/request.ts'
import type { Change, Rows } from '../store/operation.ts'
import type { JudgedMessage } from './judge-message.ts'
import type { RefusedSend } from './refused-sends.ts'
import { minuteMs } from '../../shared/durations.ts'
import type { TypedPhone } from './phones.ts'

/** Characters of a code that another system made. */
export const relayedCodePattern = '^[0-9A-Za-z]{4,10}$'

export type RelayInput = TypedPhone & {
  /** Made and checked by the caller; matches `relayedCodePattern`. */
  code: string
  channel?: Channel | undefined
  locale?: string | undefined
  /** End user's IP address. */
  clientIp?: string | undefined
}

export type RelayResult = Relayed & { replayed: boolean; rate: RateState | undefined }

/** A relayed message as its sender is answered. */
export type Relayed = {
  id: string
  phone: string
  channel: Channel
  /** `unknown`: the provider may have the message, for example after a timeout. */
  status: 'sent' | 'unknown'
}

/** For how long the same code for the same phone is answered again after it was sent. */
const repeatMs = minuteMs

/** A call that is older has died with its process: longer than any attempt takes. */
const inProgressMs = 10_000

/** The decision on a call: its result, or a message to dispatch. */
export type RelayDecision = { rate: RateState | undefined; alert?: GuardAlert | undefined } & (
  | {
      kind: 'ended'
      result: Relayed | Rejected
      replayed: boolean
      refusedSend?: RefusedSend | undefined
      /** Set if the guard has counted the message. */
      judged?: JudgedMessage
    }
  | {
      kind: 'dispatch'
      message: RelayedFacts
      channels: readonly Channel[]
      otpTtlSeconds: number
      judged: JudgedMessage
    }
)

/** Result of a message of a test application, or to a virtual number: nothing is sent. */
export const heldBack = (channel: Channel): DispatchResult => ({
  kind: 'accepted',
  candidate: { channel, provider: inboxProvider },
  messageId: null,
})

/** Result of a message that no provider can take. */
export const noRoute: DispatchResult = {
  kind: 'refused',
  failure: { class: 'no_route', permanent: true, at: 'route', providerCode: null },
}

/**
 * Names two calls that are the same: by the key of the call, if it has one, and by a keyed hash of the phone and the code.
 */
export type RelayScopes = { repeat: IdempotencyScope; call: IdempotencyScope | undefined }

/** Returns the scopes of a call. */
export const relayScopes = (
  keys: Pick<Keys, 'idempotency'>,
  appId: string,
  { phone, code }: { phone: string; code: string },
  call: IdempotencyScope | undefined,
): RelayScopes => ({
  repeat: {
    caller: appId,
    route: 'phone and code',
    key: indexHash(keys.idempotency, `relay\n${appId}\n${phone}\n${code}`),
    bodyHash: '',
    earlierBodyHashes: [],
  },
  call,
})

/** The earlier result that a call repeats; a refusal while that call is under way, or if its key was used otherwise. */
type EarlierRelay = { replayed: Relayed | Rejected } | Rejected | undefined

/** Reads the result of an earlier call: with the same key, or with the same phone and code. */
export function readEarlierRelay(
  rows: Pick<Rows, 'idempotencyRecord'>,
  { repeat, call }: RelayScopes,
  now: number,
): EarlierRelay {
  const ofRepeat = rows.idempotencyRecord(repeat)
  const ofCall = call && rows.idempotencyRecord(call)
  if (call && ofCall) {
    const earlier = readEarlierResult<Relayed>(ofCall, call, now)
    if (earlier && isRejected(earlier)) return earlier
    if (earlier && !earlier.isPending) return { replayed: earlier.value }
    if (earlier && isUnderWay(ofCall, now)) return reject(idempotencyInProgress())
  }
  if (!ofRepeat) return undefined
  const earlier = readEarlierResult<Relayed>(ofRepeat, repeat, now)
  if (!earlier || isRejected(earlier) || isRejected(earlier.value)) return undefined
  if (earlier.isPending)
    return isUnderWay(ofRepeat, now) ? reject(idempotencyInProgress(earlierRequest)) : undefined
  return ofRepeat.createdAt > now - repeatMs ? { replayed: earlier.value } : undefined
}

const earlierRequest = 'An earlier request with this code for this phone'

const isUnderWay = ({ createdAt }: { createdAt: number }, now: number) => createdAt > now - inProgressMs

/** Marks a call as under way: equal ones wait for its result. */
export const claimRelay = ({ repeat, call }: RelayScopes, now: number): Change[] =>
  [repeat, call].flatMap((scope) => resultChanges(scope, null, now, { isPending: true }))

/** Saves the result of a call. After a refusal, the same code may be sent again at once. */
export const saveRelay = (
  { repeat, call }: Partial<RelayScopes>,
  result: Relayed | Rejected,
  now: number,
): Change[] => [repeat, call].flatMap((scope) => resultChanges(scope, result, now))
