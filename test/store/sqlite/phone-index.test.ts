import { Database } from 'bun:sqlite'
import { afterAll, describe, expect, test } from 'bun:test'
import { emptyRecord, type PhoneRecord } from '../../../src/domain/model/phone-record.ts'
import type { Store, Stores } from '../../../src/domain/store/store.ts'
import { wrapReadonlySqlite } from '../../../src/store/sqlite/database.ts'
import { createStore } from '../../../src/store/store.ts'
import { openTestFile, openTestSqlite, registerShortIds } from '../../helpers/databases.ts'
import { testKeys } from '../../helpers/keys.ts'

const empty = emptyRecord({ developerId: 'dev_p', environment: 'live', phone: '+14155552671', country: 'US' })
const disposals: Array<() => Promise<void>> = []
afterAll(async () => {
  for (const dispose of disposals) await dispose()
})

/** Makes hashes: every eighth begins with the same 53 bits. */
const toHash = (n: number) => `${String(n % 8).padEnd(12, 'p')}${String(n).padStart(12, 'q')}`

const save = (store: Store, n: number, lastSentAt: number) =>
  store.write(async (tx) => {
    const loaded = await tx.phones.load(toHash(n), empty)
    await tx.phones.save(loaded, { ...loaded.record, lastSentAt })
  })

const remove = async (tx: Stores, n: number) => tx.phones.delete(await tx.phones.load(toHash(n), empty))

describe('a record that was deleted and made again', () => {
  async function openStore() {
    const { database, dispose } = await openTestSqlite()
    disposals.push(dispose)
    await registerShortIds(database, 'dev_p')
    const store = createStore(database, { keys: testKeys })
    await save(store, 1, 1)
    return store
  }
  const replace = async (tx: Stores) => {
    await remove(tx, 1)
    const loaded = await tx.phones.load(toHash(1), empty)
    await tx.phones.save(loaded, { ...loaded.record, lastSentAt: 2 })
    throw new Error('rolled back')
  }

  test('is found as it was if the batch is rolled back', async () => {
    const store = await openStore()
    const failing = [
      store.write(replace),
      // Fails the whole batch.
      store.write(() => new Promise(setImmediate)),
    ]
    for (const { status } of await Promise.allSettled(failing)) expect(status).toBe('rejected')
    expect((await store.read.phones.find(toHash(1)))?.lastSentAt).toBe(1)
  })

  test('is found as it was if its own job of the batch is rolled back', async () => {
    const store = await openStore()
    const replaced = store.write(replace)
    await Promise.all([expect(replaced).rejects.toThrow('rolled back'), save(store, 2, 2)])
    expect((await store.read.phones.find(toHash(1)))?.lastSentAt).toBe(1)
  })
})

test('a record that another process made is found by a read', async () => {
  const { path, database, dispose } = await openTestSqlite()
  disposals.push(dispose)
  await registerShortIds(database, 'dev_p')
  const store = createStore(database, { keys: testKeys })
  const readonly = wrapReadonlySqlite(new Database(path, { readonly: true }))
  const readonlyStore = createStore(readonly, { keys: testKeys })
  const other = openTestFile(path)
  for (const { read } of [store, readonlyStore]) expect(await read.phones.find(toHash(1))).toBeUndefined()
  await save(createStore(other, { keys: testKeys }), 1, 1)
  await new Promise(setImmediate)
  for (const { read } of [store, readonlyStore])
    expect((await read.phones.find(toHash(1)))?.lastSentAt).toBe(1)
  await other.close()
  await readonly.close()
})

test('a record that another process made again, and moved to the table, is found by a read', async () => {
  const { path, database, dispose } = await openTestSqlite({ phoneTailMax: 2 })
  disposals.push(dispose)
  await registerShortIds(database, 'dev_p')
  const store = createStore(database, { keys: testKeys })
  await save(store, 1, 1)
  const other = openTestFile(path)
  const { read } = createStore(other, { keys: testKeys })
  expect((await read.phones.find(toHash(1)))?.lastSentAt).toBe(1)
  await store.write(async (tx) => {
    await remove(tx, 1)
    for (const n of [1, 2])
      await tx.phones.save(await tx.phones.load(toHash(n), empty), { ...empty, lastSentAt: 2 })
  })
  for (let turn = 0; turn < 4; turn++) await store.write(async () => {})
  await new Promise(setImmediate)
  expect((await read.phones.find(toHash(1)))?.lastSentAt).toBe(2)
  await other.close()
})

test('keeps the record of each phone once when several are saved in one transaction', async () => {
  const { database, dispose } = await openTestSqlite()
  disposals.push(dispose)
  await registerShortIds(database, 'dev_p')
  const store = createStore(database, { keys: testKeys })
  const record = (lastSentAt: number): PhoneRecord => ({ ...empty, lastSentAt })
  await store.write(async (tx) => {
    const loaded = await tx.phones.load(toHash(1), empty)
    await tx.phones.save(loaded, record(1))
    // The handle was loaded before the record was inserted.
    await tx.phones.save(loaded, record(2))
  })
  expect(await store.read.phones.scan(0, 10)).toMatchObject([{ hash: toHash(1), record: { lastSentAt: 2 } }])
})

test('has every record after a restart if a fill begins while others are being added', async () => {
  const { path, database, dispose } = await openTestSqlite({ phoneTailMax: 100 })
  disposals.push(dispose)
  await registerShortIds(database, 'dev_p')
  const store = createStore(database, { keys: testKeys })
  // More than a batch: the fill that the first one starts is behind those of the second one.
  const numbers = Array.from({ length: 300 }, (_, n) => n)
  await Promise.all(numbers.map((n) => save(store, n, 1)))
  for (let turn = 0; turn < 4; turn++) await store.write(async () => {})
  await database.close()
  const reopened = openTestFile(path)
  const { read } = createStore(reopened, { keys: testKeys })
  for (const n of numbers) expect((await read.phones.find(toHash(n)))?.lastSentAt).toBe(1)
  await reopened.close()
})

test('never uses a key again that another process deleted while the table is filled', async () => {
  const { path, database, dispose } = await openTestSqlite({ phoneTailMax: 2 })
  disposals.push(dispose)
  await registerShortIds(database, 'dev_p')
  const store = createStore(database, { keys: testKeys })
  await Promise.all([1, 2].map((n) => save(store, n, 1)))
  // The fill has begun: it will say that the table has all records up to the second.
  const other = openTestFile(path)
  await createStore(other, { keys: testKeys }).write(async (tx) => {
    await remove(tx, 2)
    await tx.phones.save(await tx.phones.load(toHash(3), empty), { ...empty, lastSentAt: 1 })
  })
  await other.close()
  for (let turn = 0; turn < 3; turn++) await store.write(async () => {})
  await database.close()
  const reopened = openTestFile(path)
  const { read } = createStore(reopened, { keys: testKeys })
  expect((await read.phones.find(toHash(3)))?.lastSentAt).toBe(1)
  await reopened.close()
})

test('never uses a key again that the table may have', async () => {
  const { path, database, dispose } = await openTestSqlite({ phoneTailMax: 1 })
  disposals.push(dispose)
  await registerShortIds(database, 'dev_p')
  const store = createStore(database, { keys: testKeys })
  await save(store, 1, 1)
  // The fill runs after the commit, in transactions of its own.
  await store.write(async () => {})
  await store.write(async () => {})
  await store.write(async (tx) => tx.phones.delete(await tx.phones.load(toHash(1), empty)))
  await database.close()
  const reopened = openTestFile(path)
  const reopenedStore = createStore(reopened, { keys: testKeys })
  await save(reopenedStore, 2, 2)
  await reopened.close()
  const file = new Database(path, { readonly: true })
  expect(file.query('select key from phones').all()).toEqual([{ key: 2 }])
  // Readers skip keys of deleted records, but the table would grow without end.
  expect(file.query('select key from phone_index').all()).toEqual([])
  file.close()
})
