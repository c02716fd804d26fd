import { expect } from 'bun:test'
import * as fc from 'fast-check'
import type { CodeSource } from '../../../src/domain/model/code.ts'
import { ServiceError } from '../../../src/domain/model/errors.ts'
import { createIds } from '../../../src/domain/model/ids.ts'
import type { Random } from '../../../src/domain/model/random.ts'
import type { Operation } from '../../../src/domain/store/operation.ts'
import type { Store } from '../../../src/domain/store/store.ts'
import { dayMs, hourMs, minuteMs, secondMs } from '../../../src/shared/durations.ts'
import { testClock, type TestClock } from '../../helpers/clock.ts'
import * as operations from '../../helpers/otp-operations.ts'
import { readOpened } from '../../helpers/sealed-rows.ts'
import { seededRandom } from '../../helpers/seeded-random.ts'
import { defineModel, type Session } from './model.ts'
import {
  createOtpContent,
  otpCall,
  perform,
  plans,
  wrongIsVerified,
  type OtpCall,
  type OtpContent,
} from './otp-calls.ts'
import { createProcesses, type Process } from './processes.ts'

/** A call, and how long the clock moves before it, if it is the first of those that run at the same time. */
type Call = OtpCall & { waitMs: number }

const waitMs = fc.constantFrom(
  0,
  0,
  0,
  secondMs,
  31 * secondMs,
  31 * secondMs,
  6 * minuteMs,
  3 * hourMs,
  dayMs,
)
const call: fc.Arbitrary<Call> = fc.tuple(otpCall, waitMs).map(([one, wait]) => ({ ...one, waitMs: wait }))

const seededBytes = (seed: number): Random => {
  const next = seededRandom(seed)
  return (bytes) => {
    for (let i = 0; i < bytes.length; i++) bytes[i] = Math.floor(next() * 256)
  }
}

type Outcome = { value: unknown } | { error: unknown }

/** Result or refusal of a call, comparable between runs. */
const toOutcome = (error: unknown): unknown =>
  error instanceof ServiceError ? { code: error.code, reason: error.reason, rate: error.rate } : String(error)

/** A call that has begun, with ids of its own, and waits to begin its transaction. */
type Started = {
  /** Resolves when the call waits for `release`, or ends without a transaction. */
  ready: Promise<unknown>
  release(): void
  done: Promise<{ outcome: Outcome; errors: string[] }>
  /** When each of its transactions ran, in the order of all. */
  ranAt: readonly number[]
}

/** Tells whether a transaction ran between two of the same call, as no call does that runs alone. */
function areInterleaved(calls: readonly Started[]): boolean {
  const isBetween = (at: number, { ranAt }: Started) =>
    ranAt.some((one) => one < at) && ranAt.some((one) => one > at)
  return calls.some((one) =>
    calls.some((other) => other !== one && other.ranAt.some((at) => isBetween(at, one))),
  )
}

type StartNeeds = {
  applications: OtpContent['applications']
  clock: TestClock
  /** Newest first. */
  requests: CodeSource[]
  isPlain: boolean
}

let transactions = 0

function start(one: Call, number: number, { store, appAuth }: Process, needs: StartNeeds): Started {
  const { clock, requests, isPlain } = needs
  const startIds = createIds(clock, seededBytes(number))
  let newId = startIds
  const ranAt: number[] = []
  let release = () => {}
  const arrived = Promise.withResolvers<void>()
  let isReleased = false
  const held = <T>(begin: () => Promise<T>): Promise<T> => {
    // A later transaction of the same call.
    if (isReleased) return begin()
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    release = () => {
      isReleased = true
      void begin().then(resolve, reject)
    }
    arrived.resolve()
    return promise
  }
  /** A transaction that runs again makes the same ids again. */
  function beginTransaction(index: number) {
    ranAt[index] = ++transactions
    newId = createIds(clock, seededBytes(number + 1_000_000))
  }
  const heldStore: Store = {
    read: store.read,
    changes: undefined,
    whenDurable: store.whenDurable,
    write: (body) =>
      held(() => {
        const index = ranAt.push(0) - 1
        return store.write((tx) => {
          beginTransaction(index)
          return body(tx)
        })
      }),
    decide: <R>(operation: Operation<R>) =>
      held(() => {
        const index = ranAt.push(0) - 1
        return store.decide({
          ...operation,
          decide(rows) {
            beginTransaction(index)
            return operation.decide(rows)
          },
        })
      }),
  }
  const own = operations.createOtpOperations({
    store: heldStore,
    clock,
    newId(prefix) {
      const id = newId(prefix)
      if (newId === startIds && one.kind === 'send') {
        const salt = new Uint8Array(16)
        seededBytes(number + 2_000_000)(salt)
        const codeSalt = salt.toBase64({ alphabet: 'base64url', omitPadding: true })
        const template = one.payment && { variables: one.payment }
        requests.unshift({ id, codeSalt, phone: one.phone, environment: 'live', template })
      }
      return id
    },
    random: seededBytes(number + 2_000_000),
    plans,
  })
  const done = perform(one, own, {
    store: heldStore,
    applications: needs.applications,
    requests,
    async authenticate({ credentials }) {
      const caller = await appAuth.authenticate(credentials)
      // The plain model reads the row of the application each time.
      return isPlain ? { ...caller, configurationVersion: undefined } : caller
    },
  })
    .then(
      (value): Outcome => ({ value: withoutHistory(value) }),
      (error: unknown): Outcome => ({ error: toOutcome(error) }),
    )
    .then((outcome) => ({ outcome, errors: own.errors.map(String) }))
  return { done, ready: Promise.race([arrived.promise, done]), release: () => release(), ranAt }
}

/** Removes the histories of requests: a batch writes them with the rows, once its calls have their results. */
const withoutHistory = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value ?? null, (name, part: unknown) => (name === 'history' ? undefined : part)))

/** Begins calls one after the other, up to their transactions, so that none reads what another one of them writes. */
async function startAll(
  calls: ReadonlyArray<{ call: Call; number: number; process: Process }>,
  needs: StartNeeds,
): Promise<Started[]> {
  const started: Started[] = []
  for (const { call: one, number, process } of calls) {
    const next = start(one, number, process, needs)
    await next.ready
    started.push(next)
  }
  return started
}

/** Reads all rows, the lists of the calling applications, and their limits. */
async function readAll(process: Process, needs: StartNeeds) {
  const { database } = process
  const rows: Record<string, string[]> = {}
  for (const table of Object.keys(database.tables) as Array<keyof typeof database.tables>) {
    // How far the indexes are filled; and which receipts still wait for their message, which depends on whose transactions
    // come in between: an attempt takes one.
    if (table === 'meta' || table === 'earlyReceipts') continue
    // Keys of phones depend on transactions that were rolled back.
    const stored = (await readOpened(database, table)).map((row) => ({ ...row, key: undefined }))
    rows[table] = stored.map((row) => JSON.stringify(row)).toSorted()
  }
  return [rows, await readLists(process, needs)]
}

async function readLists({ store }: Process, { applications, clock }: StartNeeds) {
  const { peekRate } = operations.createOtpOperations({ store, clock, plans })
  const lists: unknown[] = []
  for (const application of applications) {
    const owner = { developerId: application.caller.developerId, appId: application.caller.id }
    for (const status of [undefined, 'pending', 'verified'] as const)
      lists.push(await store.read.otpRequests.list({ ...owner, status, now: clock.now(), limit: 5 }))
    lists.push(
      await store.read.events.list(owner.developerId, { appId: owner.appId, limit: 20 }),
      await store.read.phones.listIdentities(owner.developerId, { limit: 20 }),
      await peekRate(application.caller, 'send'),
      await peekRate(application.caller, 'verify'),
    )
  }
  return lists
}

function startSession({ content, applications }: OtpContent): Session<Call> {
  const clock = testClock()
  /** The plain model: a file of its own, on which each call runs alone, in a process that remembers nothing from before. */
  const limits = { listLimits: { recentMax: 1, sliceRows: 3 }, phoneTailMax: 1 }
  const plain = createProcesses(content, limits, clock)
  const real = { applications, clock, requests: [] as CodeSource[], isPlain: false }
  const model = { applications, clock, requests: [] as CodeSource[], isPlain: true }

  return {
    clock,

    async run(calls) {
      clock.advance(calls[0]?.call.waitMs ?? 0)
      const started = await startAll(calls, real)
      for (const { release } of started) release()
      const ends = await Promise.all(started.map(({ done }) => done))
      for (const { outcome } of ends) expect(toText(outcome)).not.toContain(wrongIsVerified)
      // An attempt and its early receipt have several transactions each, whose order may decide between two receipts.
      fc.pre(!areInterleaved(started))
      const order = started
        .map(({ ranAt }, index) => ({ index, ranAt: ranAt.at(-1) ?? 0 }))
        .toSorted((a, b) => a.ranAt - b.ranAt)

      return async () => {
        await plain.exitAll()
        const process = plain.get('server')
        // A batch that failed as a whole has changed nothing.
        const isLost = (index: number) =>
          ends[index]?.errors.concat(toText(ends[index]?.outcome)).some((text) => text.includes(stalled)) ??
          true
        const alone = await startAll(
          calls.map((one) => ({ ...one, process })),
          model,
        )
        for (const { index } of order) {
          if (isLost(index)) continue
          alone[index]?.release()
          expect(ends[index]).toEqual(await alone[index]?.done)
        }
      }
    },

    async check(process, pick) {
      const read = pick === undefined ? readAll : readLists
      expect(await read(process, real)).toEqual(await read(plain.get('server'), model))
    },

    save() {
      const saved = [...real.requests]
      const putBack = plain.backUp()
      return async () => {
        real.requests = [...saved]
        model.requests = [...saved]
        await putBack()
      }
    },

    close: () => plain[Symbol.asyncDispose](),
  }
}

const stalled = 'awaited something other than its transaction'

const toText = (outcome: Outcome | undefined) => JSON.stringify(outcome ?? null)

export const sharedTransactionModel = defineModel<Call>({
  name: 'calls that share transactions get the results, and leave the rows, of calls that do not',
  shortRuns: 15,
  options: { listLimits: { recentMax: 20, sliceRows: 3 }, phoneTailMax: 3 },
  call,
  callsMax: 12,
  async open() {
    const content = await createOtpContent()
    return { content: content.content, start: () => startSession(content) }
  },
})
