import {
  and,
  asc,
  desc,
  eq,
  getTableColumns,
  gt,
  isNotNull,
  lt,
  sql,
  type InferSelectModel,
} from 'drizzle-orm'
import {
  unusedLane,
  type CheckBudget,
  type KnownContext,
  type LaneUsage,
  type PhoneRecord,
} from '../domain/model/phone-record.ts'
import type { LoadedPhone, PhoneStore } from '../domain/store/phones.ts'
import { type FilterPlaceholders, orderByLimit, prepareFiltered } from './engine/query-params.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { loadListed } from './engine/list-index.ts'
import type { Sealing } from './engine/sealing.ts'
import type { Tables } from './engine/tables.ts'
import { noteOwned, userAdded, userDeleted, userKey, userList, userSlot } from './list-changes.ts'

type Row = InferSelectModel<Tables['phones']>

const pseudonymSlots = 'phones_by_pseudonym'

/**
 * Primary key of a hash: its first 53 bits, the most that a JavaScript number holds. With ten million phones the chance
 * that two share one is 1 in 200.
 */
export function slotKey(hash: string): number {
  const bytes = Buffer.from(hash.slice(0, 12), 'base64url')
  return bytes.readUIntBE(0, 6) * 32 + (bytes.readUInt8(6) >>> 3)
}

/** Stores the records of phones. */
export function createPhoneStore(database: Database, executor: QueryExecutor, sealing: Sealing): PhoneStore {
  const toRecord = (row: Row) => openRecord(sealing, row)
  const toColumns = (hash: string, record: PhoneRecord) => sealRecord(sealing, hash, record)
  const { phones, meta } = database.tables
  const p = sql.placeholder

  const findByKey = database.prepare(() =>
    executor
      .select()
      .from(phones)
      .where(eq(phones.key, p('key'))),
  )
  const columns = Object.entries(getTableColumns(phones)).filter(([name]) => name !== 'key')
  const placeholders = Object.fromEntries(columns.map(([name]) => [name, p(name)]))
  const values = { key: p('key'), ...placeholders } as unknown as typeof phones.$inferInsert
  const upsert = database.prepare(() =>
    executor
      .insert(phones)
      .values(values)
      .onConflictDoUpdate({
        target: phones.key,
        set: Object.fromEntries(
          columns.map(([name, { name: column }]) => [name, sql`excluded.${sql.identifier(column)}`]),
        ),
      }),
  )
  const insertIfMissing = database.prepare(() => executor.insert(phones).values(values).onConflictDoNothing())
  const findMeta = database.prepare(() =>
    executor
      .select({ value: meta.value })
      .from(meta)
      .where(eq(meta.name, p('name'))),
  )
  type PageFilter = { developerId: string | number; limit: number; before: string | undefined }
  // PostgreSQL
  const listPage = prepareFiltered(
    database,
    ({ developerId, limit, before }: FilterPlaceholders<PageFilter>) =>
      executor
        .select()
        .from(phones)
        .where(
          and(
            eq(phones.developerId, developerId),
            isNotNull(phones.identityId),
            before && lt(phones.identityId, before),
          ),
        )
        .orderBy(orderByLimit(desc(phones.identityId), limit)),
  )
  // SQLite
  const listSlots = prepareFiltered(database, ({ keys }: FilterPlaceholders<{ keys: readonly number[] }>) =>
    executor
      .select()
      .from(phones)
      .where(sql`${phones.key} in ${keys}`),
  )
  const findIdentity = database.prepare(() =>
    executor
      .select({ identityId: phones.identityId })
      .from(phones)
      .where(eq(phones.key, p('key'))),
  )

  async function listRows(filter: PageFilter): Promise<Row[]> {
    const { listIndex } = database
    if (!listIndex) return listPage(filter)
    const { developerId, limit, before } = filter
    return loadListed(listIndex.keys(developerId, [userList], { before }), limit, async (keys) => {
      const rows = await listSlots({ keys: keys.map(userSlot) })
      return new Map(rows.map((row) => [userKey(row.identityId ?? '', row.key), row]))
    })
  }

  /** Lists an identity whose record was saved under a key that did not have it. */
  async function noteIdentity(key: number, { developerId, identity }: PhoneRecord): Promise<void> {
    if (!database.listIndex || identity === null) return
    const [row] = await findIdentity({ key })
    if (row?.identityId === identity.id) return
    noteOwned(database, userAdded, { developerId, appId: null }, userKey(identity.id, key))
  }

  /** Reads the row at a key: on PostgreSQL locked, and inserted first if it is missing. */
  async function lockRow(key: number, hash: string, ifMissing: PhoneRecord): Promise<Row | undefined> {
    if ((await database.lock(executor, phones, phones.key, key)) === 'missing') {
      // A concurrent caller waits here until the first one has committed.
      await insertIfMissing({ key, ...toColumns(hash, ifMissing) })
      await database.lock(executor, phones, phones.key, key)
    }
    return (await findByKey({ key }))[0]
  }

  return {
    async find(hash) {
      for (let key = slotKey(hash); ; key++) {
        const [row] = await findByKey({ key })
        if (!row || row.phoneHash === hash) return row && toRecord(row)
      }
    },

    async load(hash, ifMissing, unsaved): Promise<LoadedPhone> {
      for (let key = slotKey(hash); ; key++) {
        const own = unsaved?.get(key)
        if (own?.hash === hash) return { key, hash, record: own.record, isNew: false }
        if (own) continue
        const row = await lockRow(key, hash, ifMissing)
        if (!row) return { key, hash, record: ifMissing, isNew: true }
        if (row.phoneHash === hash) return { key, hash, record: toRecord(row), isNew: isUnused(row) }
      }
    },

    async save({ key, hash }, record) {
      await noteIdentity(key, record)
      await upsert({ key, ...toColumns(hash, record) })
    },

    async delete({ key, hash }) {
      const deleted = await executor
        .delete(phones)
        .where(and(eq(phones.key, key), eq(phones.phoneHash, hash)))
        .returning({ developerId: phones.developerId, identityId: phones.identityId })
      for (const { developerId, identityId } of deleted) {
        if (identityId !== null)
          noteOwned(database, userDeleted, { developerId, appId: null }, userKey(identityId, key))
      }
      // A gap would hide the records that probing put behind it: the next one that belongs before it moves in.
      for (let gap = key, next = key + 1; ; next++) {
        const [row] = await findByKey({ key: next })
        if (!row) return
        if (slotKey(row.phoneHash) > gap) continue
        await executor.update(phones).set({ key: gap }).where(eq(phones.key, next))
        const { developerId, identityId } = row
        if (identityId !== null)
          noteOwned(database, userAdded, { developerId, appId: null }, userKey(identityId, gap))
        gap = next
      }
    },

    async listIdentities(developerId, limit, before) {
      const rows = await listRows({ developerId: database.shortId(developerId), limit, before })
      return rows.map(toRecord)
    },

    async scan(afterKey, limit) {
      const rows = await executor
        .select()
        .from(phones)
        .where(gt(phones.key, afterKey))
        .orderBy(asc(phones.key))
        .limit(limit)
      return rows.map((row) => ({ key: row.key, hash: row.phoneHash, record: toRecord(row) }))
    },

    async hasPseudonymSlots() {
      return (await findMeta({ name: pseudonymSlots })).length > 0
    },

    async notePseudonymSlots() {
      await executor.insert(meta).values({ name: pseudonymSlots, value: '1' }).onConflictDoNothing()
    },
  }
}

const isUnused = ({ identityId, lastSentAt, knownRefilledAt, strangerRefilledAt }: Row) =>
  identityId === null && lastSentAt === 0 && knownRefilledAt === null && strangerRefilledAt === null

const openRecord = (sealing: Sealing, row: Row): PhoneRecord => ({
  developerId: row.developerId,
  environment: row.environment,
  phone: sealing.openPhone('phones.phone', row.phoneHash, row.phone),
  country: row.country,
  lanes: {
    known: toUsage(row.knownSends, row.knownRefilledAt, row.knownFailures, row.knownLockedUntil),
    stranger: toUsage(
      row.strangerSends,
      row.strangerRefilledAt,
      row.strangerFailures,
      row.strangerLockedUntil,
    ),
  },
  contexts: parseContexts(row.contexts),
  identity:
    row.identityId === null
      ? null
      : {
          id: row.identityId,
          verificationCount: row.verificationCount ?? 0,
          firstVerifiedAt: row.firstVerifiedAt ?? 0,
          lastVerifiedAt: row.lastVerifiedAt ?? 0,
          applications: row.applications ?? [],
        },
  newestRequest: row.newestRequest,
  lastSentAt: row.lastSentAt,
})

const toUsage = (
  sends: string | null,
  refilledAt: number | null,
  consecutiveFailures: number | null,
  lockedUntil: number | null,
): LaneUsage =>
  sends === null && refilledAt === null
    ? unusedLane
    : {
        sends: parseTimes(sends),
        checks:
          refilledAt === null
            ? null
            : { refilledAt, consecutiveFailures: consecutiveFailures ?? 0, lockedUntil },
      }

function sealRecord(sealing: Sealing, hash: string, record: PhoneRecord): Omit<Row, 'key'> {
  const { known, stranger } = record.lanes
  const { identity } = record
  return {
    phoneHash: hash,
    developerId: record.developerId,
    environment: record.environment,
    phone: sealing.sealPhone('phones.phone', hash, record.phone),
    country: record.country,
    knownSends: formatTimes(known.sends),
    knownRefilledAt: checksField(known.checks, 'refilledAt'),
    knownFailures: checksField(known.checks, 'consecutiveFailures'),
    knownLockedUntil: checksField(known.checks, 'lockedUntil'),
    strangerSends: formatTimes(stranger.sends),
    strangerRefilledAt: checksField(stranger.checks, 'refilledAt'),
    strangerFailures: checksField(stranger.checks, 'consecutiveFailures'),
    strangerLockedUntil: checksField(stranger.checks, 'lockedUntil'),
    contexts: formatContexts(record.contexts),
    newestRequest: record.newestRequest,
    lastSentAt: record.lastSentAt,
    identityId: identity?.id ?? null,
    verificationCount: identity?.verificationCount ?? null,
    firstVerifiedAt: identity?.firstVerifiedAt ?? null,
    lastVerifiedAt: identity?.lastVerifiedAt ?? null,
    applications: identity?.applications ?? null,
  }
}

const checksField = (checks: CheckBudget | null, field: keyof CheckBudget) => checks?.[field] ?? null

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
