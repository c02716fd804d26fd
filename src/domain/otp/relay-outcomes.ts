import { readRefusal } from '../apps/authentication.ts'
import { withGuard } from '../guard/fail-open.ts'
import { firstNames, readGuardFacts } from '../guard/facts.ts'
import type { GuardJudge } from '../guard/judge.ts'
import { findListing, withListing } from '../guard/listing.ts'
import { countChange } from '../log/counts.ts'
import { relayEventChange } from '../log/relay-events.ts'
import type { CallingApplication } from '../model/application.ts'
import { hashContexts } from '../model/context.ts'
import { notFound, ServiceError } from '../model/errors.ts'
import { isId, type NewId } from '../model/ids.ts'
import type { Keys } from '../model/keys.ts'
import { laneFor } from '../model/phone-record.ts'
import { reject, unwrap, type Rejected } from '../model/rejected.ts'
import { relayedLifetimeMs, type RelayedMessage, type RelayOutcome } from '../model/relayed-message.ts'
import { requireReadablePhone } from '../model/request.ts'
import type { Guard } from '../guard/guard.ts'
import type { Change } from '../store/operation.ts'
import type { Store, Stores } from '../store/store.ts'
import { afterVerification } from './identities.ts'
import { loadPhone } from './phones.ts'
import { senderOf } from './sender.ts'

/** The outcome of a message, as it is stored. */
export type ReportedOutcome = { id: string; phone: string; outcome: RelayOutcome }

/** Names of the stores that outcomes read and write. */
export type OutcomeTables =
  | 'applications'
  | 'changes'
  | 'checkBudgets'
  | 'guard'
  | 'leases'
  | 'listRules'
  | 'phones'
  | 'relayedMessages'

/**
 * Creates the function that records whether the code of a relayed message was entered, which its caller alone knows. A
 * verified one counts as a verification does: the message is no longer unverified, and its phone is evidence and known.
 *
 * `verified` is final, and `failed` is not: a user who mistypes a code may enter it again.
 *
 * @returns a function that throws NOT_FOUND for a message of another application or of more than a day ago, and
 *   ALREADY_VERIFIED for `failed` after `verified`; the same outcome again changes nothing
 */
export function createRelayOutcomes(needs: {
  store: Store<OutcomeTables>
  newId: NewId
  keys: Keys
  guard: Guard
}) {
  const { store, newId, keys } = needs

  return async (
    application: CallingApplication,
    id: string,
    outcome: RelayOutcome,
  ): Promise<ReportedOutcome> =>
    unwrap(
      await withGuard(needs.guard, (guard) =>
        store.write((tx) => recordOutcome(tx, guard, application, id, outcome)),
      ),
    )

  async function recordOutcome(
    tx: Pick<Stores, OutcomeTables>,
    guard: GuardJudge,
    application: CallingApplication,
    id: string,
    outcome: RelayOutcome,
  ): Promise<ReportedOutcome | Rejected> {
    const { credentialsVersion, epoch } = application
    const state = await tx.applications.lockAndCheckCredentials(application.id, credentialsVersion, epoch)
    const refusal = readRefusal({ credentialState: () => state }, application)
    if (refusal) return refusal
    const message = isId('msg', id) ? await tx.relayedMessages.lock(id) : undefined
    const now = await tx.leases.now()
    const isOwn = message?.appId === application.id && message.createdAt > now - relayedLifetimeMs
    if (!message || !isOwn) return reject(notFound('relayedMessage'))
    const result = { id, phone: message.phone, outcome }
    if (message.outcome === outcome) return result
    if (message.outcome === 'verified') return reject(alreadyVerified())
    await tx.relayedMessages.setOutcome({ id, outcome })
    const entry = relayEventChange(newId, `message.${outcome}`, message, [], now)
    const changes = outcome === 'verified' ? await countVerified(tx, guard, message, now) : []
    await tx.changes.apply([...changes, entry])
    return result
  }

  /** Counts a verification of the phone, for the guard and for the limits. There is no request to count. */
  async function countVerified(
    tx: Pick<Stores, OutcomeTables>,
    guard: GuardJudge,
    message: RelayedMessage,
    now: number,
  ): Promise<Change[]> {
    requireReadablePhone(message)
    const { developerId, clientIp, createdAt } = message
    const { record, ...slot } = await loadPhone(tx, keys, message)
    const contexts = hashContexts(keys, developerId, { clientIp, deviceId: null })
    const listing = findListing(await tx.listRules.list(developerId), message, now)
    const sender = withListing(senderOf(record, { contexts, createdAt }), listing)
    const counted = { ...message, resends: 0, isRelayed: true }
    const guardKeys = guard.keysToConvert(counted, sender, now)
    const rows = await tx.guard.rows(guardKeys ? firstNames(guardKeys).toSorted() : [])
    const guardFacts = readGuardFacts({ rows: () => rows }, guardKeys)
    const network = guardFacts?.keys.subjects?.network
    const lane = laneFor(record, { clientIp, contexts }, now)
    const verified = { ...message, contexts }
    const after = afterVerification(record, newId, verified, lane, now, network)
    const { removedFromDay, addedToDay } = after
    return [
      { kind: 'phone', slot, record: after.record },
      { kind: 'guard', changes: guard.convert(guardFacts, counted, sender, now) },
      ...(removedFromDay === undefined ? [] : [countChange(message, { active: -1 }, removedFromDay)]),
      ...(addedToDay === undefined ? [] : [countChange(message, { active: 1 }, addedToDay)]),
    ]
  }
}

const alreadyVerified = () =>
  new ServiceError(
    'ALREADY_VERIFIED',
    'The code of this message was reported as verified before. There is nothing left to do.',
  )
