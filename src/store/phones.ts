import { and, asc, desc, eq, getTableColumns, gt, isNotNull, lt, sql } from 'drizzle-orm'
import type { PhoneRecord } from '../domain/model/phone-record.ts'
import type { LoadedPhone, PhoneStore } from '../domain/store/phones.ts'
import {
  type FilterPlaceholders,
  inJson,
  orderByLimit,
  prepareFiltered,
  textParam,
} from './engine/query-params.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { inOrder, loadListed } from './engine/key-cursors.ts'
import { isDuplicate, RowAddedError } from './engine/errors.ts'
import { columnNames } from './engine/row-writes.ts'
import type { Sealing } from './engine/sealing.ts'
import { isUnused, openRecord, sealRecord, type PhoneRow } from './phone-rows.ts'
import type { Environment } from '../domain/model/application.ts'
import { noteUser, userAdded, userDeleted, userKey, userLists, userSlot } from './list-changes.ts'

const pseudonymSlots = 'phones_by_pseudonym'

/** Stores the records of phones. */
export function createPhoneStore(database: Database, executor: QueryExecutor, sealing: Sealing): PhoneStore {
  const toRecord = (row: PhoneRow) => openRecord(sealing, row)
  const toColumns = (hash: string, record: PhoneRecord) => sealRecord(sealing, hash, record)
  const { phones, meta } = database.tables
  const isReader = executor === database.read
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
  const update = database.writeRows(executor, {
    kind: 'update',
    table: phones,
    key: ['key'],
    set: columnNames(phones).filter((name) => name !== 'key'),
  })
  // SQLite
  const insert = database.writeRows(executor, { kind: 'insert', table: phones, columns: columnNames(phones) })
  // PostgreSQL, where a sequence makes the key.
  const { key: _key, ...valuesWithoutKey } = values
  const insertIfMissing = database.prepare(() =>
    executor
      .insert(phones)
      .values(valuesWithoutKey as typeof values)
      .onConflictDoNothing({ target: phones.phoneHash }),
  )
  const insertNew = database.writeRows(executor, {
    kind: 'insert',
    table: phones,
    columns: columnNames(phones).filter((name) => name !== 'key'),
    computed: { key: () => sql`nextval('phones_keys')` },
    toError: (error) => (isDuplicate(error) ? new RowAddedError(error) : error),
  })
  const findByHash = database.prepare(() =>
    executor
      .select()
      .from(phones)
      .where(eq(phones.phoneHash, p('hash'))),
  )
  const findMeta = database.prepare(() =>
    executor
      .select({ value: meta.value })
      .from(meta)
      .where(eq(meta.name, p('name'))),
  )
  type PageFilter = {
    developerId: string | number
    environment: Environment
    limit: number
    before: string | undefined
  }
  // PostgreSQL
  const listPage = prepareFiltered(
    database,
    ({ developerId, environment, limit, before }: FilterPlaceholders<PageFilter>) =>
      executor
        .select()
        .from(phones)
        .where(
          and(
            eq(phones.developerId, developerId),
            eq(phones.environment, environment),
            isNotNull(phones.identityId),
            before && lt(phones.identityId, before),
          ),
        )
        .orderBy(orderByLimit(desc(phones.identityId), limit)),
  )
  // SQLite
  const listSlots = database.prepare(() =>
    executor
      .select()
      .from(phones)
      .where(inJson(phones.key, textParam('slots'))),
  )

  type IdentityQuery = Omit<PageFilter, 'environment'> & { environment: Environment | undefined }

  async function listRows({ environment, ...filter }: IdentityQuery): Promise<PhoneRow[]> {
    const { listIndex } = database
    const { developerId, limit, before } = filter
    if (!listIndex) {
      const wanted: Environment[] = environment === undefined ? ['live', 'test'] : [environment]
      const pages = await Promise.all(wanted.map((one) => listPage({ ...filter, environment: one })))
      const byIdentity = (a: PhoneRow, b: PhoneRow) => ((a.identityId ?? '') < (b.identityId ?? '') ? 1 : -1)
      return pages.flat().toSorted(byIdentity).slice(0, limit)
    }
    const listed = listIndex.keys(developerId, userLists(environment), { before }, !isReader)
    return loadListed(listed, limit, async (keys) => {
      const rows = await listSlots({ slots: JSON.stringify(keys.map(userSlot)) })
      return inOrder(keys, rows, ({ identityId, key }) => userKey(identityId ?? '', key))
    })
  }

  /** Condition that finds a record: on SQLite by its key, as its hash has no ordinary index. */
  const matchesHash = async (hash: string) =>
    index ? eq(phones.key, (await findRow(hash))?.key ?? 0) : eq(phones.phoneHash, hash)

  const index = isReader ? database.phoneIndex?.committed : database.phoneIndex?.uncommitted

  async function findRow(hash: string): Promise<PhoneRow | undefined> {
    if (!index) return (await findByHash({ hash }))[0]
    if (isReader) database.memory?.refresh()
    for (const key of index.keys(hash)) {
      const [row] = await findByKey({ key })
      if (row?.phoneHash === hash) return row
    }
    return undefined
  }

  return {
    async find(hash) {
      const row = await findRow(hash)
      return row && toRecord(row)
    },

    async load(hash, ifMissing): Promise<LoadedPhone> {
      if ((await database.lock(executor, phones, phones.phoneHash, hash)) === 'missing') {
        // A concurrent caller waits here until the first one has committed.
        await insertIfMissing(toColumns(hash, ifMissing))
        await database.lock(executor, phones, phones.phoneHash, hash)
      }
      const row = await findRow(hash)
      return { hash, row, record: row ? toRecord(row) : ifMissing, isNew: !row || isUnused(row) }
    },

    async save(slot, record) {
      const { hash } = slot
      if (!index) {
        const columns = toColumns(hash, record)
        await (slot.row ? update({ key: slot.row.key, ...columns }) : insertNew(columns))
        return
      }
      // A slot that was loaded before its record was inserted has no row.
      const row = slot.row ?? (await findRow(hash))
      const key = row?.key ?? index.add(hash)
      const { developerId, identity } = record
      if (identity !== null && identity.id !== row?.identityId)
        noteUser(database, userAdded[record.environment], developerId, identity.id, key)
      await (row ? update : insert)({ key, ...toColumns(hash, record) })
    },

    async delete({ hash }) {
      const deleted = await executor
        .delete(phones)
        .where(await matchesHash(hash))
        .returning({
          key: phones.key,
          developerId: phones.developerId,
          environment: phones.environment,
          identityId: phones.identityId,
        })
      for (const { key, developerId, environment, identityId } of deleted) {
        index?.remove(hash, key)
        if (identityId !== null) noteUser(database, userDeleted[environment], developerId, identityId, key)
      }
    },

    async listIdentities(developerId, { environment, limit, before }) {
      const rows = await listRows({ developerId: database.shortId(developerId), environment, limit, before })
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
