import { afterAll, beforeAll, expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { createGuard } from '../../../src/domain/guard/guard.ts'
import { createGuardJudge, type GuardVerdict } from '../../../src/domain/guard/judge.ts'
import { namesOf, type GuardedMessage, type GuardKeys } from '../../../src/domain/guard/row-keys.ts'
import { GuardFault, type Sender } from '../../../src/domain/model/guard.ts'
import { noGuardChanges, type GuardChanges, type GuardRows } from '../../../src/domain/store/guard.ts'
import type { Store } from '../../../src/domain/store/store.ts'
import { mergeGuardChanges } from '../../../src/store/guard.ts'
import { createStore } from '../../../src/store/store.ts'
import { dayMs, hourMs, minuteMs } from '../../../src/shared/durations.ts'
import { openTestSqlite } from '../../helpers/databases.ts'
import { deepFreeze } from '../../helpers/freeze.ts'
import { guardOff, stranger } from '../../helpers/guard.ts'
import { testKeys } from '../../helpers/keys.ts'

let opened: Awaited<ReturnType<typeof openTestSqlite>>
let store: Store
beforeAll(async () => {
  opened = await openTestSqlite()
  store = createStore(opened.database, { keys: testKeys })
})
afterAll(() => opened.dispose())

const guardTables = () => {
  const { guardUsage, guardDecisions } = opened.database.tables
  return [guardUsage, guardDecisions]
}

type Call =
  | { kind: 'send'; message: Partial<GuardedMessage>; sender: Sender; times: number }
  | { kind: 'convert' | 'revert'; newest: number }
  | { kind: 'wait'; ms: number }

const call: fc.Arbitrary<Call> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('send' as const),
      message: fc.record({
        developerId: fc.constantFrom('dev_1', 'dev_1', 'dev_2'),
        country: fc.constantFrom('NL', 'NL', 'BE', 'CU', null),
        phone: fc.constantFrom('+31611110001', '+31611120001', '+31611130001'),
        clientIp: fc.constantFrom(null, '203.0.113.1', '203.0.114.1'),
        resends: fc.constantFrom(0, 0, 2),
      }),
      sender: fc.record({
        isKnownPhone: fc.constantFrom(false, false, false, true),
        contexts: fc.constantFrom([], ['home'], ['home', 'device']),
        sentAt: fc.constant(0),
        verifiedAt: fc.constantFrom(0, 0, Date.parse('2026-12-31T12:00:00Z')),
        verifiedFrom: fc.constant([]),
      }),
      times: fc.constantFrom(1, 3, 25),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom('convert' as const, 'convert' as const, 'revert' as const),
      newest: fc.nat(20),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('wait' as const),
      ms: fc.constantFrom(minuteMs, 3 * minuteMs, 11 * minuteMs, 7 * hourMs, dayMs),
    }),
  },
)
const calls = fc.array(call, { minLength: 5, maxLength: 30 })
const settings = fc.constantFrom(
  { ...guardOff, totalPerDay: 60 },
  { ...guardOff, deniedCountries: ['CU'] },
  { ...guardOff, deniedCountries: ['CU'], mode: 'monitor' as const, totalPerDay: 30 },
)

/** Reads and writes of the calls of one run: together, or each call at once. */
type Target = { rows: GuardRows; apply(changes: GuardChanges): Promise<void> }

/** Runs the calls. @param inspect called before each decision with all that it is given */
async function run(
  judge: ReturnType<typeof createGuardJudge>,
  list: readonly Call[],
  { rows, apply }: Target,
  inspect: (...inputs: unknown[]) => void = () => {},
): Promise<GuardVerdict[]> {
  const verdicts: GuardVerdict[] = []
  const sent: Array<{ message: GuardedMessage; sender: Sender }> = []
  let now = Date.parse('2027-01-01T21:00:00Z')
  const load = (keys: GuardKeys | undefined, message: GuardedMessage, sender: Sender): GuardRows => {
    const names = keys ? namesOf(rows, keys, now) : []
    inspect(keys, message, sender)
    return {
      row(key) {
        // On PostgreSQL, only rows that were named are there.
        expect(names).toContain(key)
        const row = rows.row(key)
        inspect(row)
        return row
      },
    }
  }
  for (const one of list) {
    if (one.kind === 'wait') {
      now += one.ms
      continue
    }
    if (one.kind !== 'send') {
      const [target] = sent.splice(-1 - one.newest, 1)
      if (!target) continue
      const { message, sender } = target
      const keys =
        one.kind === 'convert'
          ? judge.keysToConvert(message, sender, now)
          : judge.keysToRevert(message, sender)
      const loaded = load(keys, message, sender)
      await apply(
        one.kind === 'convert'
          ? judge.convert(loaded, keys, message, sender, now)
          : judge.revert(loaded, keys, message, now),
      )
      continue
    }
    const { sender } = one
    const base = { environment: 'live', provider: null, numberType: null } as const
    const unset = { developerId: '', phone: '', country: null, clientIp: null, resends: 0 }
    const message = { ...base, ...unset, ...one.message, createdAt: now }
    for (let time = 0; time < one.times; time++) {
      const keys = judge.keysToJudge(message, sender, now)
      const { verdict, changes } = judge.judge(load(keys, message, sender), keys, message, sender, now)
      await apply(changes)
      verdicts.push(verdict)
      if (!verdict.blocked) sent.push({ message, sender })
    }
  }
  return verdicts
}

/** Runs the calls in one transaction on empty tables. @returns their verdicts, and the tables after them */
async function runOnDatabase(
  list: readonly Call[],
  judge: ReturnType<typeof createGuardJudge>,
  isTogether: boolean,
) {
  await store.write(async ({ guard }) => {
    for (const key of await guard.listKeys('', 1_000)) await guard.delete(key)
  })
  await opened.database.write((tx) => tx.delete(opened.database.tables.guardDecisions))
  const verdicts = await store.write(async ({ guard }) => {
    const stored: GuardRows = { row: (key) => opened.database.sqlite?.guardRows?.get(key) }
    if (!isTogether) return run(judge, list, { rows: stored, apply: guard.apply })
    const pending = noGuardChanges()
    const rows: GuardRows = { row: (key) => pending.rows.get(key) ?? stored.row(key) }
    const found = await run(judge, list, {
      rows,
      apply: (changes) => Promise.resolve(mergeGuardChanges(pending, changes)),
    })
    await guard.apply(pending)
    return found
  })
  await store.write(async ({ guard }) => void (await guard.listKeys('', 1)))
  const tables = await Promise.all(guardTables().map((table) => opened.database.read.select().from(table)))
  return { verdicts, tables }
}

test('calls that are written together decide and count as calls that are written at once', async () => {
  await fc.assert(
    fc.asyncProperty(settings, calls, async (chosen, list) => {
      const judge = createGuardJudge(chosen, testKeys)
      const direct = await runOnDatabase(list, judge, false)
      expect(await runOnDatabase(list, judge, true)).toEqual(direct)
    }),
    { numRuns: 60 },
  )
}, 120_000)

test('decisions change neither the rows that they read nor their inputs, and return no promise', async () => {
  await fc.assert(
    fc.asyncProperty(settings, calls, async (chosen, list) => {
      const plain = createGuardJudge(chosen, testKeys)
      const withoutPromise = <T>(value: T): T => {
        expect(value).not.toBeInstanceOf(Promise)
        return value
      }
      const judge: typeof plain = {
        ...plain,
        judge: (...args) => withoutPromise(plain.judge(...args)),
        convert: (...args) => withoutPromise(plain.convert(...args)),
        revert: (...args) => withoutPromise(plain.revert(...args)),
      }
      const pending = noGuardChanges()
      const apply = (changes: GuardChanges) => Promise.resolve(mergeGuardChanges(pending, changes))
      await run(judge, list, { rows: { row: (key) => pending.rows.get(key) }, apply }, (...inputs) =>
        inputs.forEach(deepFreeze),
      )
    }),
    { numRuns: 100 },
  )
})

test('changes that wait add decisions up and keep the newest rows', () => {
  const decision = { hour: 1, rule: 'NUMBER_TYPE', country: 'NL', flagged: 1, blocked: 2 } as const
  const pending = noGuardChanges()
  mergeGuardChanges(pending, { ...noGuardChanges(), decisions: new Map([['key', decision]]) })
  const row = { windows: { unverified: [1, 2] }, alertedAt: 0, until: 5 }
  mergeGuardChanges(pending, {
    decisions: new Map([['key', decision]]),
    rows: new Map([['home', row]]),
  })
  expect(pending.decisions.get('key')).toEqual({ ...decision, flagged: 2, blocked: 4 })
  expect(pending.rows).toEqual(new Map([['home', row]]))
  expect(decision.flagged).toBe(1)
})

test('without keys every message passes, and nothing is counted', () => {
  const judge = createGuardJudge({ ...guardOff, deniedCountries: ['CU'] }, testKeys)
  const message: GuardedMessage = {
    developerId: 'dev_1',
    environment: 'live',
    phone: '+5351234567',
    country: 'CU',
    clientIp: null,
    provider: null,
    createdAt: 0,
    resends: 0,
    numberType: null,
  }
  const sender = { ...stranger, contexts: ['home'] }
  const rows: GuardRows = { row: () => undefined }
  const { verdict, changes } = judge.judge(rows, undefined, message, sender, 0)
  expect(verdict).toEqual({ blocked: false, violatedRules: [] })
  for (const each of [
    changes,
    judge.convert(rows, undefined, message, sender, 0),
    judge.revert(rows, undefined, message, 0),
  ])
    expect(each).toEqual(noGuardChanges())
})

test('a guard that fails lets the message pass, and reports it', () => {
  const faults: unknown[] = []
  const guard = createGuard({
    settings: { ...guardOff, totalPerDay: 1 },
    keys: testKeys,
    onFault: (error) => void faults.push(error),
  })
  const keys = { total: 'total 20000' }
  const message = {
    developerId: 'dev_1',
    phone: '+31612345678',
    country: 'NL',
    numberType: null,
  } as GuardedMessage
  const failing = (error: Error) => ({
    row() {
      throw error
    },
  })
  const damaged = new Error('a damaged row')
  const judge = (rows: GuardRows) => guard.judge(rows, keys, message, stranger, 0).verdict.blocked
  expect(judge(failing(damaged))).toBe(false)
  expect(faults).toEqual([damaged])
  // The store runs the operation again, and tells why.
  const fault = new GuardFault(new Error('no such table'))
  expect(() => judge(failing(fault))).toThrow(fault)
  expect(judge({ ...failing(fault), fault })).toBe(false)
  expect(faults).toEqual([damaged, fault.cause])
})
