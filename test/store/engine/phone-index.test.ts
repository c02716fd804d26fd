import { Database } from 'bun:sqlite'
import { afterAll, expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { emptyRecord, type PhoneRecord } from '../../../src/domain/model/phone-record.ts'
import type { Store } from '../../../src/domain/store/store.ts'
import { createStore } from '../../../src/store/store.ts'
import { openTestFile, openTestSqlite, registerShortIds } from '../../helpers/databases.ts'
import { testKeys } from '../../helpers/keys.ts'

const empty = emptyRecord({ developerId: 'dev_p', environment: 'live', phone: '+14155552671' }, 'US')
/** Few enough that the table is filled every few steps. */
const phoneTailMax = 5

const disposals: Array<() => Promise<void>> = []
afterAll(async () => {
  for (const dispose of disposals) await dispose()
})

/** Makes hashes: every eighth begins with the same 53 bits. */
const toHash = (n: number) => `${String(n % 8).padStart(12, 'p')}${String(n).padStart(12, 'q')}`

type Step = { kind: 'save' | 'delete' | 'roll back'; n: number } | { kind: 'restart' | 'another process' }

const phone = fc.nat({ max: 23 })
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('save' as const), n: phone }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('delete' as const), n: phone }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('roll back' as const), n: phone }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constantFrom('restart' as const, 'another process' as const) }),
  },
)

const save = (store: Store, n: number, lastSentAt: number) =>
  store.write(async (tx) => {
    const loaded = await tx.phones.load(toHash(n), empty)
    await tx.phones.save(loaded, { ...loaded.record, lastSentAt })
  })

test('finds every record after any saves, deletions, rollbacks, fills, restarts and writes of other processes', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const { path, database, dispose } = await openTestSqlite({ phoneTailMax })
      await registerShortIds(database, 'dev_p')
      let open = database
      let store = createStore(open, { keys: testKeys })
      const model = new Map<number, number>()
      for (const [time, next] of steps.entries()) {
        if (next.kind === 'save') {
          await save(store, next.n, time + 1)
          model.set(next.n, time + 1)
        } else if (next.kind === 'delete') {
          await store.write(async (tx) => tx.phones.delete(await tx.phones.load(toHash(next.n), empty)))
          model.delete(next.n)
        } else if (next.kind === 'roll back') {
          const failing = store.write(async (tx) => {
            const loaded = await tx.phones.load(toHash(next.n), empty)
            await tx.phones.save(loaded, { ...loaded.record, lastSentAt: 99_999 })
            throw new Error('rolled back')
          })
          await failing.catch(() => {})
        } else if (next.kind === 'restart') {
          await open.close()
          open = openTestFile(path, { phoneTailMax })
          store = createStore(open, { keys: testKeys })
        } else {
          const other = openTestFile(path)
          await save(createStore(other, { keys: testKeys }), time % 24, time + 1)
          model.set(time % 24, time + 1)
          await other.close()
        }
        const found = new Map<number, number>()
        for (let n = 0; n < 24; n++) {
          const record = await store.write((tx) => tx.phones.find(toHash(n)))
          if (record) found.set(n, record.lastSentAt)
        }
        expect(found).toEqual(new Map([...model].toSorted(([a], [b]) => a - b)))
      }
      await open.close()
      await dispose().catch(() => {})
    }),
    { numRuns: 40 },
  )
}, 120_000)

test('keeps the record of each phone once when several are saved in one transaction', async () => {
  const { database, dispose } = await openTestSqlite()
  disposals.push(dispose)
  await registerShortIds(database, 'dev_p')
  const store = createStore(database, { keys: testKeys })
  const record = (lastSentAt: number): PhoneRecord => ({ ...empty, lastSentAt })
  await store.write(async (tx) => {
    const loaded = await tx.phones.load(toHash(1), empty)
    await tx.phones.save(loaded, record(1))
    // The slot was loaded before the record was inserted.
    await tx.phones.save(loaded, record(2))
  })
  expect(await store.read.phones.scan(0, 10)).toMatchObject([{ hash: toHash(1), record: { lastSentAt: 2 } }])
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
  file.close()
})
