import { countryKey, historyKey, prefixKey, relayKey } from '../guard/row-keys.ts'
import { openLedger, type Ledger } from '../guard/subject.ts'
import type { Clock } from '../model/clock.ts'
import { contextHashForm, upgradeContext } from '../model/context.ts'
import { evidenceDays, guardHashForm } from '../model/guard.ts'
import { upgradeHash, type Keys } from '../model/keys.ts'
import { idTime } from '../model/ids.ts'
import { isVirtualPhone, tryParsePhone } from '../model/phone.ts'
import { dayMs, utcDay } from '../../shared/durations.ts'
import type { PhoneRecord } from '../model/phone-record.ts'
import { isPlainPhone } from '../model/pseudonyms.ts'
import type { Stores } from '../store/store.ts'
import type { Backfill } from './backfills.ts'

const isContext = (subject: string) =>
  subject.replace(/~\d+$/, '').length === contextHashForm(Buffer.alloc(32)).length

/** Creates the backfill that brings the guard's hashes to the newest key, so that no count restarts. */
export const createGuardBackfill = (keys: Pick<Keys, 'guard' | 'context'>, clock: Clock): Backfill => ({
  name: 'guard.usage',
  purpose: 'phone-index',
  async step(tx, position, limit) {
    // Version 1 has nothing to bring up.
    if (keys.guard.length === 1) return undefined
    const subjects = await tx.guard.listKeys(position, limit)
    for (const subject of subjects) {
      // Those with a space name a developer or a day.
      if (subject.includes(' ')) continue
      const upgraded = isContext(subject)
        ? upgradeContext(keys, subject)
        : upgradeHash(keys.guard, subject, guardHashForm)
      if (upgraded === subject) continue
      const rows = await tx.guard.rows([subject, upgraded].toSorted())
      const stored = rows.get(subject)
      const ledger = openLedger({ row: (key) => rows.get(key) }, clock.now())
      if (stored) ledger.open(upgraded).absorb(stored)
      await tx.guard.apply(ledger.close())
      await tx.guard.delete(subject)
    }
    return subjects.at(-1)
  },
})

/**
 * Creates the backfill that counts the codes of other systems of the last day as each of the last 14 days, by country: a database
 * that was made without the counts must not begin with the least allowance.
 */
export const createRelayBackfill = ({ clock }: { clock: Clock }): Backfill => ({
  name: relayBackfill,
  purpose: 'client-ids',
  async step(tx, position, limit) {
    const now = clock.now()
    const messages = await tx.relayedMessages.listPhones(position, limit)
    const added = new Map<string, number[]>()
    for (const { id, developerId, phone } of messages) {
      const country = tryParsePhone(phone ?? '')?.country
      if (country === undefined) continue
      const key = historyKey(relayKey(developerId, country))
      for (let days = 1; days <= evidenceDays; days++) addTime(added, key, idTime(id) - days * dayMs)
    }
    await changeRows(tx, added, now, (ledger, key, at) => ledger.open(key).add('hours', at, 1))
    return messages.at(-1)?.id
  },
})

/** Name of that backfill. */
export const relayBackfill = 'guard.relays'
/** Name of the backfill that builds the evidence of a database that was made without it. */
export const evidenceBackfill = 'guard.evidence'

/**
 * Creates the backfill that counts the phones that were verified in the last 14 days as evidence, by country, prefix and
 * device. Networks begin with what is verified from now on: records hold no wide networks yet.
 */
export const createEvidenceBackfill = ({ keys, clock }: { keys: Keys; clock: Clock }): Backfill => ({
  name: evidenceBackfill,
  // Never replaced, so that the backfill runs once.
  purpose: 'client-ids',
  async step(tx, position, limit) {
    const now = clock.now()
    const phones = await tx.phones.scan(position === '' ? -1 : Number(position), limit)
    const added = new Map<string, number[]>()
    for (const { record } of phones) addEvidence(added, keys, record, now)
    await changeRows(tx, added, now, (ledger, key, at) => ledger.open(key).add('evidence', at, 1))
    const last = phones.at(-1)
    return last && String(last.key)
  },
})

/** Takes the evidence of a phone that is erased back: verified again, it would be evidence twice. */
export async function takeEvidenceBack(
  tx: Pick<Stores, 'guard'>,
  keys: Keys,
  record: PhoneRecord,
  now: number,
): Promise<void> {
  const added = new Map<string, number[]>()
  addEvidence(added, keys, record, now)
  await changeRows(tx, added, now, (ledger, key, at) => {
    const subject = ledger.open(key)
    if (subject.total('evidence') > 0) subject.add('evidence', at, -1)
  })
}

/** Adds the times at which a phone became evidence, by country, prefix, network and device. */
function addEvidence(added: Map<string, number[]>, keys: Keys, record: PhoneRecord, now: number): void {
  const { developerId, environment, phone, country, identity, contexts } = record
  const isEvidence = (at: number) => utcDay(at) > utcDay(now) - evidenceDays
  const at = identity?.lastVerifiedAt ?? 0
  if (environment !== 'live' || isVirtualPhone(phone) || !isPlainPhone(phone) || !isEvidence(at)) return
  addTime(added, countryKey(developerId, country), at)
  addTime(added, prefixKey(keys, developerId, phone), at)
  for (const { hash, verifiedAt } of contexts) if (isEvidence(verifiedAt)) addTime(added, hash, verifiedAt)
}

function addTime(added: Map<string, number[]>, subject: string, at: number): void {
  const times = added.get(subject)
  if (times) times.push(at)
  else added.set(subject, [at])
}

/**
 * Adds to rows in the order of their keys, in which calls lock them: on PostgreSQL another node may already serve, and its
 * messages wait for the backfill's transaction instead of being lost. Only a phone that it verifies before the backfill reaches
 * it counts twice, for two weeks at most.
 */
async function changeRows(
  tx: Pick<Stores, 'guard'>,
  added: ReadonlyMap<string, readonly number[]>,
  now: number,
  change: (ledger: Ledger, key: string, at: number) => void,
): Promise<void> {
  const rows = await tx.guard.rows([...added.keys()].toSorted())
  const ledger = openLedger({ row: (key) => rows.get(key) }, now)
  for (const [key, times] of added) for (const at of times) change(ledger, key, at)
  await tx.guard.apply(ledger.close())
}
