import { readRefusal } from '../apps/authentication.ts'
import { findListing, withListing } from '../guard/listing.ts'
import { firstNames } from '../guard/row-keys.ts'
import { relayEventChange } from '../log/relay-events.ts'
import type { CallingApplication } from '../model/application.ts'
import { hashContexts } from '../model/context.ts'
import { notFound, ServiceError } from '../model/errors.ts'
import { isId } from '../model/ids.ts'
import { trustOfCall, type PhoneRecord } from '../model/phone-record.ts'
import { reject, unwrap, type Rejected } from '../model/rejected.ts'
import { relayedLifetimeMs, type RelayedMessage, type RelayOutcome } from '../model/relayed-message.ts'
import type { Change, Decision, NamedRows, Rows } from '../store/operation.ts'
import { afterVerification } from './identities.ts'
import { senderOf } from './judge-message.ts'
import type { OtpNeeds } from './needs.ts'
import { namePhoneRows, readRequestPhone } from './phones.ts'

/** The outcome of a message, as it is stored. */
type ReportedOutcome = { id: string; phone: string; outcome: RelayOutcome }

/**
 * Creates the function that records whether the code of a relayed message was entered, which its caller alone knows. A
 * verified one counts as a verification does: the message is no longer unverified, and its phone is evidence and known.
 *
 * `verified` is final, and `failed` is not: a user who mistypes a code may enter it again.
 *
 * @returns a function that throws NOT_FOUND for a message of another application or of more than a day ago, and
 *   ALREADY_VERIFIED for `failed` after `verified`; the same outcome again changes nothing
 */
export function createRelayOutcomes(needs: Pick<OtpNeeds, 'store' | 'newId' | 'keys' | 'guard'>) {
  const { store, newId, keys, guard } = needs

  return async (
    application: CallingApplication,
    id: string,
    outcome: RelayOutcome,
  ): Promise<ReportedOutcome> =>
    unwrap(
      await store.decide<ReportedOutcome | Rejected>({
        preload: {
          first: () => ({ application, relayed: isId('msg', id) ? id : undefined }),
          next: (rows) => nameRows(rows, id),
        },
        decide: (rows) => recordOutcome(rows, application, id, outcome),
      }),
    )

  function recordOutcome(
    rows: Rows,
    application: CallingApplication,
    id: string,
    outcome: RelayOutcome,
  ): Decision<ReportedOutcome | Rejected> {
    const refusal = readRefusal(rows, application)
    if (refusal) return { result: refusal, changes: [] }
    const now = rows.now()
    const message = isId('msg', id) ? rows.relayed(id) : undefined
    const isOwn = message?.appId === application.id && message.createdAt > now - relayedLifetimeMs
    if (!message || !isOwn) return { result: reject(notFound('relayedMessage')), changes: [] }
    const result = { id, phone: message.phone, outcome }
    if (message.outcome === outcome) return { result, changes: [] }
    if (message.outcome === 'verified') return { result: reject(alreadyVerified()), changes: [] }
    return {
      result,
      changes: [
        { kind: 'relayed', message: { ...message, outcome }, isNew: false },
        ...(outcome === 'verified' ? countVerified(rows, message, now) : []),
        relayEventChange(newId, `message.${outcome}`, message, [], now),
      ],
    }
  }

  /** Counts a verification of the phone, for the guard and for the limits. There is no request to count. */
  function countVerified(rows: Rows, message: RelayedMessage, now: number): Change[] {
    const { record, ...handle } = readRequestPhone(rows, keys, message)
    const { counted, sender, contexts } = describe(rows, message, record, now)
    const guardKeys = guard.keysToConvert(counted, sender, now)
    const trust = trustOfCall(record, { clientIp: message.clientIp, contexts }, now)
    const network = guardKeys?.subjects?.network
    const after = afterVerification(record, newId, { ...message, contexts }, trust, now, network)
    return [
      { kind: 'phone', handle, record: after.record },
      { kind: 'guard', changes: guard.convert(rows.guard, guardKeys, counted, sender, now) },
      ...after.activeChanges,
    ]
  }

  /** Names the rows of a verified outcome, once its message is there. */
  function nameRows(rows: Rows, id: string): NamedRows | undefined {
    const message = isId('msg', id) ? rows.relayed(id) : undefined
    if (!message) return undefined
    const now = rows.now()
    const { counted, sender } = describe(rows, message, readRequestPhone(rows, keys, message).record, now)
    const guardKeys = guard.keysToConvert(counted, sender, now)
    return { ...namePhoneRows(rows, keys, message), guard: guardKeys && firstNames(guardKeys) }
  }

  /** Describes the message and its end user to the guard. */
  function describe(rows: Rows, message: RelayedMessage, record: PhoneRecord, now: number) {
    const { appId, developerId, clientIp, createdAt } = message
    const contexts = hashContexts(keys, developerId, { clientIp, deviceId: null })
    const listing = findListing(rows.listRules({ id: appId, developerId }), message, now)
    const sender = withListing(senderOf(record, { contexts, createdAt }), listing)
    return { counted: { ...message, resends: 0, isRelayed: true }, sender, contexts }
  }
}

const alreadyVerified = () =>
  new ServiceError(
    'ALREADY_VERIFIED',
    'The code of this message was reported as verified before. There is nothing left to do.',
  )
