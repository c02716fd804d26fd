import type { InferSelectModel } from 'drizzle-orm'
import {
  noUsage,
  type KnownContext,
  type TrustLevel,
  type PhoneUsage,
  type PhoneRecord,
} from '../domain/model/phone-record.ts'
import type { LoadedPhone } from '../domain/store/phones.ts'
import type { Connection } from './engine/connection.ts'
import type { SqliteParts } from './engine/database.ts'
import { isDuplicate, RaceLostError } from './engine/errors.ts'
import { prepareFindSync } from './engine/on-table.ts'
import { columnsOf, fieldsOf, insertInto, updateTable } from './engine/row-writes.ts'
import type { Sealing } from './engine/sealing.ts'
import type { Tables } from './engine/tables.ts'

export type PhoneRow = InferSelectModel<Tables['phones']>

/** Creates the look-up of records on SQLite. The index has the keys of hashes, whose column has no ordinary index. */
export function createPhoneLookup(connection: Connection, sqlite: SqliteParts) {
  const { database, executor } = connection
  const isReader = executor === database.read
  const index = sqlite.phoneIndex[isReader ? 'committed' : 'uncommitted']
  const findByKey = prepareFindSync(connection, sqlite, database.tables.phones, 'key')
  return {
    index,

    find(hash: string): PhoneRow | undefined {
      if (isReader) sqlite.refresh()
      // Other phones may have hashes that begin alike.
      const rows = index.keys(hash).map((key) => findByKey({ key }))
      return rows.find((row) => row?.phoneHash === hash)
    },

    /** Finds the record of a handle that was loaded, without a row, before this transaction inserted it. */
    findAdded(hash: string): PhoneRow | undefined {
      const key = index.recentKey(hash)
      return key === undefined ? undefined : findByKey({ key })
    },
  }
}

export const toLoadedPhone = (sealing: Sealing, row: PhoneRow): LoadedPhone => ({
  hash: row.phoneHash,
  row,
  record: openRecord(sealing, row),
  isNew: isUnused(row),
})

/** Tells whether a row was inserted for its lock alone. */
const isUnused = (row: PhoneRow) =>
  row.identityId === null &&
  row.newestRequest === null &&
  row.lastSentAt === 0 &&
  row.deviceRefilledAt === null &&
  row.knownRefilledAt === null &&
  row.strangerRefilledAt === null

export const openRecord = (sealing: Sealing, row: PhoneRow): PhoneRecord => ({
  developerId: row.developerId,
  environment: row.environment,
  phone: sealing.openPhone('phones.phone', row.phoneHash, row.phone),
  country: row.country,
  usages: {
    device: toUsage(row, 'device'),
    network: toUsage(row, 'known'),
    stranger: toUsage(row, 'stranger'),
  },
  contexts: parseContexts(row.contexts),
  identity: toIdentity(row),
  newestRequest: row.newestRequest,
  lastSentAt: row.lastSentAt,
})

/** Beginnings of the names of a usage's fields. `known` is the network. */
type UsagePrefix = 'device' | 'known' | 'stranger'

function toUsage(row: PhoneRow, prefix: UsagePrefix): PhoneUsage {
  const sends = row[`${prefix}Sends`]
  const refilledAt = row[`${prefix}RefilledAt`]
  if (sends === null && refilledAt === null) return noUsage
  const consecutiveFailures = row[`${prefix}Failures`] ?? 0
  const lockedUntil = row[`${prefix}LockedUntil`]
  const checks = refilledAt === null ? null : { refilledAt, consecutiveFailures, lockedUntil }
  return { sends: parseTimes(sends), checks }
}

const toIdentity = (row: PhoneRow): PhoneRecord['identity'] =>
  row.identityId === null
    ? null
    : {
        id: row.identityId,
        verificationCount: row.verificationCount ?? 0,
        firstVerifiedAt: row.firstVerifiedAt ?? 0,
        lastVerifiedAt: row.lastVerifiedAt ?? 0,
        applications: row.applications ?? [],
      }

/** A record to write, with its key. */
type NewRow = PhoneRecord & { hash: string; key: number }

/** Reads the fields of a usage. */
const usageReaders = <Prefix extends UsagePrefix>(prefix: Prefix, trust: TrustLevel) =>
  // TypeScript does not compute the names.
  ({
    [`${prefix}Sends`]: ({ usages }: NewRow) => formatTimes(usages[trust].sends),
    [`${prefix}RefilledAt`]: ({ usages }: NewRow) => usages[trust].checks?.refilledAt ?? null,
    [`${prefix}Failures`]: ({ usages }: NewRow) => usages[trust].checks?.consecutiveFailures ?? null,
    [`${prefix}LockedUntil`]: ({ usages }: NewRow) => usages[trust].checks?.lockedUntil ?? null,
  }) as Record<`${Prefix}Sends`, (row: NewRow) => string | null> &
    Record<`${Prefix}${'RefilledAt' | 'Failures' | 'LockedUntil'}`, (row: NewRow) => number | null>

/** Creates the statements that write records; the phone is encrypted. On PostgreSQL a new record has the key 0. */
export function createPhoneWrites({ phones }: Pick<Tables, 'phones'>, sealing: Sealing) {
  const columns = columnsOf<typeof phones, NewRow>(phones, {
    phoneHash: ({ hash }) => hash,
    phone: ({ hash, phone }) => sealing.sealPhone('phones.phone', hash, phone),
    ...usageReaders('device', 'device'),
    ...usageReaders('known', 'network'),
    ...usageReaders('stranger', 'stranger'),
    contexts: ({ contexts }) => formatContexts(contexts),
    identityId: ({ identity }) => identity?.id ?? null,
    verificationCount: ({ identity }) => identity?.verificationCount ?? null,
    firstVerifiedAt: ({ identity }) => identity?.firstVerifiedAt ?? null,
    lastVerifiedAt: ({ identity }) => identity?.lastVerifiedAt ?? null,
    applications: ({ identity }) => identity?.applications ?? null,
  })
  /** On PostgreSQL a sequence makes the keys. */
  const computed = { key: `nextval('phones_keys')` }
  return {
    /** @throws RaceLostError on PostgreSQL: another transaction has added one of the same hash */
    insert: insertInto(columns, {
      computed,
      toError: (error) => (isDuplicate(error) ? new RaceLostError(error) : error),
    }),
    /** Inserts records whose hash has none yet. On PostgreSQL only. */
    insertMissing: {
      ...insertInto(columns, { computed, onConflict: { key: ['phoneHash'], others: 'keep' } }),
      sqlite: undefined,
    },
    update: updateTable(columns, { set: fieldsOf(columns).filter((field) => field !== 'key'), key: ['key'] }),
  }
}

// Times and contexts are short lists that are always read and written whole: text in base 36 takes half of JSON's room.

const timeRadix = 36

const parseTimes = (text: string | null): number[] =>
  text === null ? [] : text.split(' ').map((time) => parseInt(time, timeRadix))

const formatTimes = (times: readonly number[]): string | null =>
  times.length === 0 ? null : times.map((time) => time.toString(timeRadix)).join(' ')

function parseContexts(text: string | null): KnownContext[] {
  if (text === null) return []
  return text.split(' ').map((entry) => {
    const [hash = '', time = ''] = entry.split(':')
    return { hash, verifiedAt: parseInt(time, timeRadix) }
  })
}

const formatContexts = (contexts: readonly KnownContext[]): string | null =>
  contexts.length === 0
    ? null
    : contexts.map(({ hash, verifiedAt }) => `${hash}:${verifiedAt.toString(timeRadix)}`).join(' ')
