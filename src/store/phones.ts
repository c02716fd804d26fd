import { and, desc, eq, getTableColumns, isNotNull, lt } from 'drizzle-orm'
import {
  emptyRecord,
  missingPhone,
  type LocatedPhone,
  type PhoneRecord,
} from '../domain/model/phone-record.ts'
import type { PhoneHandle, PhoneStore } from '../domain/store/phones.ts'
import {
  type FilterPlaceholders,
  inJson,
  orderByLimit,
  prepareFiltered,
  textParam,
} from './engine/query-params.ts'
import { pageAfter } from './engine/page-after.ts'
import { onTable, prepareFind } from './engine/on-table.ts'
import type { Connection } from './engine/connection.ts'
import { inOrder, loadListed } from './list-reads.ts'
import {
  createPhoneLookup,
  createPhoneWrites,
  openRecord,
  toLoadedPhone,
  type PhoneRow,
} from './phone-rows.ts'
import type { Environment } from '../domain/model/application.ts'
import { userLists } from './sqlite/list-numbers.ts'
import { addToList, removeFromList, userKey, userKeyNumber } from './list-changes.ts'
import { environments } from '../shared/otp-values.ts'

/** Name of the row in `meta` that `notePseudonymRecords` adds. */
export const pseudonymRecords = 'phones_by_pseudonym'

/** Stores the records of phones. */
export function createPhoneStore(connection: Connection): PhoneStore {
  const { database, executor, sealing } = connection
  const toRecord = (row: PhoneRow) => openRecord(sealing, row)
  const writes = createPhoneWrites(database.tables, sealing)
  const { phones, meta } = database.tables
  const sqliteLookup = database.sqlite && createPhoneLookup(connection, database.sqlite)

  const insert = database.writeRows(executor, writes.insert)
  const update = database.writeRows(executor, writes.update)
  // PostgreSQL
  const insertMissing = database.writeRows(executor, writes.insertMissing)
  const findByHash = prepareFind(connection, phones, 'phoneHash')
  const findMeta = prepareFind(connection, meta, 'name')
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
  const listByKeys = database.prepare(() =>
    executor
      .select()
      .from(phones)
      .where(inJson(phones.key, textParam('keys'))),
  )

  type IdentityQuery = Omit<PageFilter, 'environment'> & { environment: Environment | undefined }

  async function listRows({ environment, ...filter }: IdentityQuery): Promise<PhoneRow[]> {
    const lists = database.sqlite?.lists
    const { developerId, limit, before } = filter
    const wanted: readonly Environment[] = environment === undefined ? environments : [environment]
    if (!lists) {
      const pages = await Promise.all(wanted.map((one) => listPage({ ...filter, environment: one })))
      const byIdentity = (a: PhoneRow, b: PhoneRow) => ((a.identityId ?? '') < (b.identityId ?? '') ? 1 : -1)
      return pages.flat().toSorted(byIdentity).slice(0, limit)
    }
    const sources = { owners: [developerId], lists: wanted.map((one) => userLists[one]) }
    return loadListed(lists, sources, { before }, limit, async (keys: string[]) => {
      const rows = await listByKeys({ keys: JSON.stringify(keys.map(userKeyNumber)) })
      return inOrder(keys, rows, ({ identityId, key }) => userKey(identityId ?? '', key))
    })
  }

  /** Condition that finds a record: on SQLite by its key, as its hash has no ordinary index. */
  const matchesHash = (hash: string) =>
    sqliteLookup ? eq(phones.key, sqliteLookup.find(hash)?.key ?? 0) : eq(phones.phoneHash, hash)

  const lockRow = (hash: string) => database.lock(executor, phones, phones.phoneHash, hash)

  /** Locks a record on PostgreSQL; one that is missing is made. */
  async function lock(hash: string, owned: LocatedPhone): Promise<void> {
    if ((await lockRow(hash)) === 'locked') return
    insertMissing([{ ...emptyRecord(owned), hash, key: 0 }])
    // A concurrent caller waits here until the first one has committed.
    await lockRow(hash)
  }

  async function findLoaded(hash: string) {
    const row = sqliteLookup ? sqliteLookup.find(hash) : await findByHash({ phoneHash: hash })
    return row && toLoadedPhone(sealing, row)
  }

  function saveAll(list: ReadonlyArray<{ handle: PhoneHandle; record: PhoneRecord }>): void {
    const added: Array<PhoneRecord & { hash: string; key: number }> = []
    const changed: typeof added = []
    for (const { handle, record } of list) {
      const { hash } = handle
      const row = handle.row ?? sqliteLookup?.findAdded(hash)
      const key = row?.key ?? sqliteLookup?.index.add(hash) ?? 0
      const { developerId, environment, identity } = record
      if (identity !== null && identity.id !== row?.identityId)
        addToList(database, userLists[environment], developerId, userKey(identity.id, key))
      const target = row ? changed : added
      target.push({ ...record, hash, key })
    }
    update(changed)
    insert(added)
  }

  return {
    find: async (hash) => (await findLoaded(hash))?.record,

    async load(hash, owned) {
      if (!sqliteLookup) await lock(hash, owned)
      return (await findLoaded(hash)) ?? missingPhone(hash, owned)
    },

    async loadKept(hash) {
      if (!sqliteLookup) await lockRow(hash)
      return findLoaded(hash)
    },

    save: (handle, record) => saveAll([{ handle, record }]),

    saveAll,

    async delete({ hash }) {
      const deleted = await onTable(executor, phones).take(matchesHash(hash))
      for (const { key, developerId, environment, identityId } of deleted) {
        sqliteLookup?.index.remove(hash, key)
        if (identityId !== null)
          removeFromList(database, userLists[environment], developerId, userKey(identityId, key))
      }
    },

    async listIdentities(developerId, { environment, limit, before }) {
      const rows = await listRows({ developerId: database.shortId(developerId), environment, limit, before })
      return rows.map(toRecord)
    },

    async scan(afterKey, limit) {
      const rows = await pageAfter(executor, getTableColumns(phones), phones.key, afterKey, limit)
      return rows.map((row) => ({ key: row.key, hash: row.phoneHash, record: toRecord(row) }))
    },

    hasPseudonymRecords: async () => (await findMeta({ name: pseudonymRecords })) !== undefined,

    async notePseudonymRecords() {
      await onTable(executor, meta).insertMissing({ name: pseudonymRecords, value: '1' })
    },
  }
}
