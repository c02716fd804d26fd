import { createGuard, type Guard } from '../../src/domain/guard/guard.ts'
import type { GuardVerdict } from '../../src/domain/guard/judge.ts'
import type { GuardChanges, GuardRows } from '../../src/domain/store/guard.ts'
import type { Operation, Rows } from '../../src/domain/store/operation.ts'
import {
  firstNames,
  namesOf,
  type GuardedMessage,
  type GuardedRequest,
  type GuardKeys,
} from '../../src/domain/guard/row-keys.ts'
import type { GuardAlert, GuardRow, Sender } from '../../src/domain/model/guard.ts'
import { Subject } from '../../src/domain/guard/subject.ts'
import type { GuardSettings } from '../../src/domain/guard/settings.ts'
import { testKeys } from './keys.ts'
import type { Store } from '../../src/domain/store/store.ts'
import { testClock } from './clock.ts'

/** Settings that block nothing by a list. The rules on unverified messages have no settings. */
export const guardOff: GuardSettings = {
  mode: 'enforce',
  countries: [],
  deniedCountries: [],
  allowedNumberTypes: [],
  trusted: { prefixes: [], addresses: [] },
  totalPerDay: 0,
  spendPerDay: 0,
  challenge: null,
}

export const usageOf = (row: GuardRow | undefined, now: number) => new Subject('', row, now).usage()

/** Keeps rows of the guard in memory: for months of traffic. `guard` reads them. */
export function createGuardRows() {
  const rows = new Map<string, GuardRow>()
  const guard: GuardRows = { row: (key) => rows.get(key) }
  return { rows, guard }
}

/** Creates a store of nothing but the guard's rows, in memory. */
export function createMemoryGuardStore() {
  const { rows, guard } = createGuardRows()
  return {
    rows,
    async decide<R>({ decide }: Operation<R>): Promise<R> {
      const { result, changes } = decide({ guard } as Rows)
      for (const change of changes)
        if (change.kind === 'guard') for (const [key, row] of change.changes.rows) rows.set(key, row)
      return result
    },
  }
}

/** Calls a guard on a real store as sends, verifications and failed deliveries do. */
export function createGuardCalls(store: Pick<Store, 'decide'>, guard: Guard) {
  const call = <R>(
    toKeys: () => GuardKeys | undefined,
    decide: (rows: GuardRows, keys: GuardKeys | undefined) => { result: R; changes: GuardChanges },
    now?: number,
  ): Promise<R> =>
    store.decide({
      preload: {
        first: () => ({}),
        next(rows) {
          const keys = toKeys()
          return keys && { guard: now === undefined ? firstNames(keys) : namesOf(rows.guard, keys, now) }
        },
      },
      decide(rows) {
        const { result, changes } = decide(rows.guard, toKeys())
        return { result, changes: [{ kind: 'guard', changes }] }
      },
    })
  return {
    evaluate: (message: GuardedMessage, sender: Sender, now: number): Promise<GuardVerdict> =>
      call(
        () => guard.keysToJudge(message, sender, now),
        (rows, keys) => {
          const { verdict, changes } = guard.judge(rows, keys, message, sender, now)
          return { result: verdict, changes }
        },
        now,
      ),
    convert: (request: GuardedRequest, sender: Sender, now: number): Promise<void> =>
      call(
        () => guard.keysToConvert(request, sender, now),
        (rows, keys) => ({ result: undefined, changes: guard.convert(rows, keys, request, sender, now) }),
      ),
    revert: (request: GuardedRequest, sender: Sender, now: number): Promise<void> =>
      call(
        () => guard.keysToRevert(request, sender),
        (rows, keys) => ({ result: undefined, changes: guard.revert(rows, keys, request, now) }),
      ),
  }
}

/** Creates a guard on a real store, called as sends and verifications call it. */
export function createGuardFixture(
  store: Pick<Store, 'decide'>,
  settings: GuardSettings,
  clock = testClock(),
) {
  const verified = new Map<string, Sender>()
  const faults: unknown[] = []
  const alerts: GuardAlert[] = []
  const keys = testKeys
  const guard = createGuard({ settings, keys, onFault: (error) => void faults.push(error) })
  let lastNumber = 0

  /** Creates a request with a phone of its own. Phones differ in the digits before the last four. */
  function createRequest(overrides: Partial<GuardedMessage> = {}): GuardedMessage {
    lastNumber++
    return {
      developerId: 'dev_1',
      environment: 'live',
      phone: `+316${String(lastNumber).padStart(4, '0')}0000`,
      country: 'NL',
      clientIp: null,
      provider: null,
      createdAt: clock.now(),
      resends: 0,
      numberType: null,
      ...overrides,
    }
  }

  const calls = createGuardCalls(store, guard)

  const evaluate = async (request: GuardedMessage, sender = stranger) => {
    const verdict = await calls.evaluate(request, sender, clock.now())
    if (verdict.alert) alerts.push(verdict.alert)
    return verdict
  }

  return {
    clock,
    keys,
    guard,
    faults,
    alerts,
    createRequest,
    evaluate,
    /** Sends `count` times. @returns the last request, and the verdict on each */
    async send(count: number, overrides: Partial<GuardedMessage> = {}, sender = stranger) {
      const rules: string[] = []
      let request = createRequest(overrides)
      for (let sent = 0; sent < count; sent++) {
        request = createRequest(overrides)
        rules.push((await evaluate(request, sender)).violatedRules.join(' '))
      }
      return { request, rules }
    },
    /** Verifies a request, and remembers its phone as records do. */
    async verify(request: GuardedMessage, sender = stranger) {
      const before = verified.get(request.phone) ?? stranger
      const told = { ...before, isKnownPhone: sender.isKnownPhone, contexts: sender.contexts }
      await calls.convert(request, told, clock.now())
      const network = guard.keysToConvert(request, stranger, clock.now())?.subjects?.network
      const from = [...sender.contexts, ...(network ? [network] : [])]
      verified.set(request.phone, {
        ...stranger,
        verifiedAt: clock.now(),
        verifiedFrom: [
          ...from.map((hash) => ({ hash, verifiedAt: clock.now() })),
          ...before.verifiedFrom.filter(({ hash }) => !from.includes(hash)),
        ],
      })
    },
    revert: (request: GuardedMessage) => calls.revert(request, stranger, clock.now()),
  }
}

/** An end user about whom nothing is known. */
export const stranger: Sender = {
  isKnownPhone: false,
  contexts: [],
  sentAt: 0,
  verifiedAt: 0,
  verifiedFrom: [],
}

/** A guard on rows in memory. */
export function createGuardBench(changes: Partial<GuardSettings> = {}) {
  const memory = createMemoryGuardStore()
  const fixture = createGuardFixture(memory, { ...guardOff, ...changes })
  const usage = (key: string) => usageOf(memory.rows.get(key), fixture.clock.now())
  return { ...fixture, memory, usage }
}
export type GuardBench = ReturnType<typeof createGuardBench>

/** Sends to different prefixes, one message in each `gapMs`. @returns the violated rules */
export async function sendSlowly(
  { send, clock }: GuardBench,
  count: number,
  gapMs: number,
  overrides: Partial<GuardedMessage> = {},
) {
  const rules: string[] = []
  for (let n = 0; n < count; n++) {
    rules.push(...(await send(1, overrides)).rules)
    clock.advance(gapMs)
  }
  return rules
}
