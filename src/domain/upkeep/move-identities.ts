import { inEnvironment } from '../log/changes.ts'
import { createIds } from '../model/ids.ts'
import type { Keys } from '../model/keys.ts'
import { hashOwnedPhone, type PhoneIdentity } from '../model/phone-record.ts'
import { isPlainPhone } from '../model/pseudonyms.ts'
import type { Random } from '../model/random.ts'
import type { OldIdentity } from '../store/identities.ts'
import type { Store, Stores } from '../store/store.ts'
import type { Environment } from '../../shared/otp-values.ts'
import { utcDay } from '../../shared/durations.ts'

const batchRows = 20_000

type MoveTables = 'analytics' | 'oldIdentities' | 'phones'

/**
 * Moves the identities of 0.1.0 to the records of phones. Call it before the first request is served: until it has
 * ended, users are missing. Each batch is one transaction, so a start that was killed goes on where it stopped.
 *
 * An identity that was verified in both environments becomes two; the live one keeps the id. Spellings of one
 * phone become one identity, with the id of the first. A number that is only a pseudonym by now gets a record under
 * the pseudonym's hash, until the number comes back.
 *
 * @returns how many identities of 0.1.0 there were
 */
export async function moveIdentities(needs: {
  store: Store<MoveTables>
  keys: Pick<Keys, 'phone'>
  random: Random
}): Promise<number> {
  const { store, keys, random } = needs
  let moved = 0
  while (await store.read.oldIdentities.hasAny()) {
    moved += await store.write(async (tx) => {
      const batch = await tx.oldIdentities.take(batchRows)
      const parts = batch
        .flatMap((old) => splitByEnvironment(old, random))
        .map((part) => ({ ...part, hash: hashOwnedPhone(keys, part) }))
      // Neighbors in the table are written together.
      for (const part of parts.toSorted((a, b) => (a.hash < b.hash ? -1 : 1))) await moveOne(tx, part)
      if (batch.some(({ phone }) => !isPlainPhone(phone))) await tx.phones.notePseudonymRecords()
      return batch.length
    })
  }
  return moved
}

/** The part of an identity that one environment gets. */
type Part = Pick<OldIdentity, 'developerId' | 'phone' | 'country'> & {
  environment: Environment
  identity: PhoneIdentity
  isSecond: boolean
}

function splitByEnvironment({ applications, ...old }: OldIdentity, random: Random): Part[] {
  const { id, developerId, phone, country, verificationCount, firstVerifiedAt, lastVerifiedAt } = old
  const idsIn = (environment: Environment) =>
    applications.filter((one) => one.environment === environment).map((one) => one.id)
  const [live, test] = [idsIn('live'), idsIn('test')]
  const common = { developerId, phone, country }
  const times = { firstVerifiedAt, lastVerifiedAt }
  const isBoth = live.length > 0 && test.length > 0
  const first = { id, verificationCount, ...times, applications: live.length > 0 ? live : test }
  const environment = test.length > 0 && !isBoth ? 'test' : 'live'
  const parts: Part[] = [{ ...common, environment, identity: first, isSecond: false }]
  if (!isBoth) return parts
  // At its old place in lists. Nothing tells how often it was verified: each application did at least once.
  const second = createIds({ now: () => firstVerifiedAt }, random)('idn')
  const identity = { id: second, verificationCount: test.length, ...times, applications: test }
  return [...parts, { ...common, environment: 'test', identity, isSecond: true }]
}

async function moveOne(
  tx: Pick<Stores, 'analytics' | 'phones'>,
  { hash, identity, isSecond, ...owned }: Part & { hash: string },
): Promise<void> {
  const loaded = await tx.phones.load(hash, owned)
  const { record } = loaded
  const other = record.identity
  const lastDay = utcDay(identity.lastVerifiedAt)
  const { developerId, environment } = owned
  // 0.1.0 counted one user for both environments.
  const all = isSecond ? { active: 1 } : {}
  const added = environment === 'test' ? { ...all, testActive: 1 } : all
  if (Object.keys(added).length > 0) tx.analytics.add([{ developerId, day: lastDay, counts: added }])
  if (!other) return tx.phones.save(loaded, { ...record, phone: owned.phone, identity })
  // Another spelling of the same phone.
  const isLater = identity.lastVerifiedAt > other.lastVerifiedAt
  await tx.phones.save(loaded, {
    ...record,
    phone: isLater ? owned.phone : record.phone,
    identity: mergeIdentities(other, identity),
  })
  const earlierDay = Math.min(utcDay(other.lastVerifiedAt), lastDay)
  const counts = inEnvironment(environment, { active: -1 })
  tx.analytics.add([{ developerId, day: earlierDay, counts }])
}

const mergeIdentities = (one: PhoneIdentity, other: PhoneIdentity): PhoneIdentity => ({
  id: one.id < other.id ? one.id : other.id,
  verificationCount: one.verificationCount + other.verificationCount,
  firstVerifiedAt: Math.min(one.firstVerifiedAt, other.firstVerifiedAt),
  lastVerifiedAt: Math.max(one.lastVerifiedAt, other.lastVerifiedAt),
  applications: [...new Set([...one.applications, ...other.applications])],
})
