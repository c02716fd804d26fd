import { Database as SqliteConnection } from 'bun:sqlite'
import { expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import { ServiceError } from '../../../src/domain/model/errors.ts'
import type { CallingApplication } from '../../../src/domain/model/application.ts'
import type { DispatchResult } from '../../../src/domain/model/delivery.ts'
import { deriveCode, type CodeSource } from '../../../src/domain/model/code.ts'
import { createIds } from '../../../src/domain/model/ids.ts'
import type { Random } from '../../../src/domain/model/random.ts'
import type { ClaimedMessage } from '../../../src/domain/model/message.ts'
import { cancelRequest } from '../../../src/domain/otp/lifecycle.ts'
import type { Operation } from '../../../src/domain/store/operation.ts'
import type { Store } from '../../../src/domain/store/store.ts'
import { createStore } from '../../../src/store/store.ts'
import { dayMs, hourMs, minuteMs, secondMs } from '../../../src/shared/durations.ts'
import { seededRandom } from '../fuzz-part.ts'
import { defineProperty } from '../property.ts'
import { testClock } from '../../helpers/clock.ts'
import { openTestSqlite } from '../../helpers/databases.ts'
import { testKeys } from '../../helpers/keys.ts'
import { unlimitedPlans } from '../../helpers/otp-client.ts'
import * as operations from '../../helpers/otp-operations.ts'
import { readOpened } from '../../helpers/sealed-rows.ts'
import { createTestService } from '../../helpers/service.ts'

/** A call or, from `disable` on, an ordinary transaction. `target` counts back from the newest request. */
type Step =
  | { kind: 'send'; app: number; phone: string; clientIp: string | null; key: number | null; fails: Fails }
  | { kind: 'resend' | 'cancel' | 'revert' | 'cancel in a body'; app: number; target: number }
  | { kind: 'verify'; app: number; target: number; distance: number }
  | { kind: 'attempt'; target: number; message: number; result: DispatchResult; key: number | null }
  | { kind: 'receipt'; target: number; status: 'sent' | 'delivered' | 'undelivered' }
  | { kind: 'disable' | 'enable' | 'fail in a body'; app: number }

/** Whether the database refuses the request, or refuses it once it has changed. */
type Fails = 'never' | 'insert' | 'change'
const locales: Record<Fails, string> = { never: 'en', insert: 'nl', change: 'be' }

const app = fc.constantFrom(0, 0, 0, 1)
const target = fc.nat(4)
const key = fc.constantFrom(null, null, 1, 2)

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('send' as const),
      app,
      phone: fc.constantFrom('+31611110001', '+31611110002', '+31611120003', '+14155552671'),
      clientIp: fc.constantFrom(null, '203.0.113.1'),
      key,
      fails: fc.constantFrom<Fails>('never', 'never', 'never', 'never', 'never', 'never', 'insert', 'change'),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('verify' as const),
      app,
      target,
      distance: fc.constantFrom(0, 0, 1, 1, 1),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constantFrom('resend', 'resend', 'resend', 'cancel', 'revert', 'cancel in a body'),
      app,
      target,
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('attempt' as const),
      target,
      message: fc.constantFrom(0, 0, 1),
      result: fc.constantFrom(
        operations.accepted('one'),
        operations.uncertain,
        operations.refused,
        operations.deferred,
      ),
      key,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('receipt' as const),
      target,
      status: fc.constantFrom('sent', 'delivered', 'undelivered'),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constantFrom('disable', 'enable', 'enable', 'fail in a body'), app }),
  },
)

/** Steps at the same time, and how long the clock moves after them. */
type Batch = { steps: Step[]; waitMs: number }

const batch: fc.Arbitrary<Batch> = fc.record({
  steps: fc.array(step, { minLength: 1, maxLength: 12 }),
  waitMs: fc.constantFrom(0, 0, secondMs, 31 * secondMs, 31 * secondMs, 6 * minuteMs, 3 * hourMs, dayMs),
})

const plans = { free: { ...unlimitedPlans.free, sendPerMinute: 12, verifyPerMinute: 12 } }

type Template = { file: Uint8Array; applications: readonly CallingApplication[] }

/** Creates two applications with webhooks, and triggers that refuse requests with a locale. @returns the file */
async function createTemplate(): Promise<Template> {
  const { database, path, dispose } = await openTestSqlite()
  const service = await createTestService({ database, plans })
  const developer = await service.createDeveloper()
  const applications = []
  for (let i = 0; i < 2; i++) {
    const created = await service.createApplication(developer)
    applications.push(await service.services.appAuth.authenticate(created))
    const body = { appId: created.id, url: 'https://example.com/', events: ['*'] }
    expect((await service.request('POST', '/v1/webhooks', { as: developer, body })).status).toBe(201)
  }
  const connection = new SqliteConnection(path)
  const isChanged = `new.attempts > 0 or new.resends > 0 or new.status <> 'pending' or new.provider is not null`
  for (const event of ['insert', 'update']) {
    connection.run(
      `create trigger fail_${event} before ${event} on otp_requests
       when new.locale = '${locales.insert}' or new.locale = '${locales.change}' and (${isChanged})
       begin select raise(abort, 'chosen by the test'); end`,
    )
  }
  connection.run('pragma wal_checkpoint(truncate)')
  connection.close()
  const file = readFileSync(path)
  await dispose()
  return { file, applications }
}

const seededBytes = (seed: number): Random => {
  const next = seededRandom(seed)
  return (bytes) => {
    for (let i = 0; i < bytes.length; i++) bytes[i] = Math.floor(next() * 256)
  }
}

/** Result or refusal of a step, comparable between runs. */
const toOutcome = (settled: PromiseSettledResult<unknown>): unknown => {
  if (settled.status === 'fulfilled') return settled.value
  const error: unknown = settled.reason
  if (error instanceof ServiceError) return { code: error.code, reason: error.reason, rate: error.rate }
  return String(error)
}

/**
 * Runs the batches on a copy of the database: the steps of a batch at once, or one after the other. Either way the
 * ordinary transactions of a batch come first, and what calls read before their transaction is read before the batch.
 *
 * @returns the outcome of each step, and all tables at the end
 */
async function run({ file, ...template }: Template, batches: readonly Batch[], isBatched: boolean) {
  const { database, dispose } = await openTestSqlite({ content: file })
  const store = createStore(database, { keys: testKeys })
  // Authenticated by this server.
  const epoch = store.read.applications.credentialEpoch()
  const applications = template.applications.map((one) => ({ ...one, epoch }))
  const clock = testClock()
  const requests: CodeSource[] = []
  const outcomes: unknown[] = []
  let index = 0

  /** Starts a step with ids of its own. `release` lets it begin its transaction, if it got that far. */
  function start(one: Step) {
    index++
    const seed = index
    const startIds = createIds(clock, seededBytes(seed))
    let newId = startIds
    let release = () => {}
    const arrived = Promise.withResolvers<void>()
    const held = <T>(begin: () => Promise<T>): Promise<T> => {
      const { promise, resolve, reject } = Promise.withResolvers<T>()
      release = () => void begin().then(resolve, reject)
      arrived.resolve()
      return promise
    }
    /** A transaction that runs again makes the same ids again. */
    const beginTransaction = () => (newId = createIds(clock, seededBytes(seed + 1_000_000)))
    const heldStore: Store = {
      read: store.read,
      write: (body) =>
        held(() =>
          store.write((tx) => {
            beginTransaction()
            return body(tx)
          }),
        ),
      decide: <F, R>(operation: Operation<F, R>) =>
        held(() =>
          store.decide({
            read(rows) {
              beginTransaction()
              return operation.read(rows)
            },
            decide: (facts: F) => operation.decide(facts),
          }),
        ),
    }
    const own = operations.createOtpOperations({
      store: heldStore,
      clock,
      newId(prefix) {
        const id = newId(prefix)
        if (newId === startIds && one.kind === 'send') {
          const salt = new Uint8Array(16)
          seededBytes(seed + 2_000_000)(salt)
          const codeSalt = salt.toBase64({ alphabet: 'base64url', omitPadding: true })
          requests.unshift({ id, codeSalt, phone: one.phone, environment: 'live' })
        }
        return id
      },
      random: seededBytes(seed + 2_000_000),
      plans,
    })
    const done = perform(one, own, { store: heldStore, applications, requests }).then(
      (value): PromiseSettledResult<unknown> => ({ status: 'fulfilled', value }),
      (reason: unknown): PromiseSettledResult<unknown> => ({ status: 'rejected', reason }),
    )
    const isBody = bodies.has(one.kind)
    return { done, isBody, ready: Promise.race([arrived.promise, done]), release: () => release(), own }
  }

  try {
    for (const { steps, waitMs } of batches) {
      const started = steps.map(start)
      await Promise.all(started.map(({ ready }) => ready))
      const ordered = [...started.filter(({ isBody }) => isBody), ...started.filter(({ isBody }) => !isBody)]
      for (const { release, done } of ordered) {
        release()
        if (!isBatched) await done
      }
      for (const { done, own } of started) outcomes.push(toOutcome(await done), own.errors.map(String))
      clock.advance(waitMs)
    }
    const rows: Record<string, string[]> = {}
    for (const table of Object.keys(database.tables) as Array<keyof typeof database.tables>)
      rows[table] = (await readOpened(database, table)).map((row) => JSON.stringify(row)).toSorted()
    const { peekRate } = operations.createOtpOperations({ store, clock, plans })
    const rates = []
    for (const application of applications)
      rates.push(await peekRate(application, 'send'), await peekRate(application, 'verify'))
    return { outcomes, rows, rates }
  } finally {
    await dispose()
  }
}

const bodies: ReadonlySet<string> = new Set(['cancel in a body', 'disable', 'enable', 'fail in a body'])

const toCode = (request: CodeSource, distance: number) =>
  String((Number(deriveCode(testKeys, request)) + distance) % 1_000_000).padStart(6, '0')

/** Makes the call, or the transaction, of a step. */
async function perform(
  one: Step,
  own: operations.OtpOperations,
  given: { store: Store; applications: readonly CallingApplication[]; requests: readonly CodeSource[] },
): Promise<unknown> {
  const { store, applications, requests } = given
  const application = applications['app' in one ? one.app : 0]
  if (!application) throw new Error('no application')
  const request = 'target' in one ? requests[one.target] : undefined
  const requestId = request?.id ?? 'otp_none'
  const scope =
    'key' in one && one.key !== null
      ? {
          caller: application.id,
          route: 'send',
          key: `key ${one.key}`,
          bodyHash: 'hash',
          earlierBodyHashes: [],
        }
      : undefined
  const { developerId, id: appId } = application
  switch (one.kind) {
    case 'send': {
      const { phone, clientIp, fails } = one
      const input = { phone, locale: locales[fails], ...(clientIp !== null && { clientIp }) }
      return own.send(application, input, scope)
    }
    case 'resend':
      return own.resend(application, { requestId })
    case 'verify':
      return own.verify(application, requestId, request ? toCode(request, one.distance) : '000000')
    case 'cancel':
      return own.cancel(application, requestId)
    case 'revert':
      return own.revert(requestId)
    case 'attempt': {
      const claim: ClaimedMessage = own.firstClaim(requestId, one.message)
      return own.attempt(claim, one.result, scope && { scope, value: 'sent' })
    }
    case 'receipt':
      return own.receive(operations.receipt(one.status, 'one'))
    case 'cancel in a body':
      return store.write((tx) => cancelRequest(tx, own.newId, requestId, own.now()))
    case 'disable':
    case 'enable':
      return store.write(async (tx) => {
        const status = one.kind === 'enable' ? 'active' : 'disabled'
        await tx.applications.update(developerId, appId, { status }, own.now())
      })
    case 'fail in a body':
      return store.write(async (tx) => {
        await tx.applications.update(developerId, appId, { name: 'lost' }, own.now())
        throw new Error('a body failed after it wrote')
      })
  }
}

const holds = defineProperty(
  'calls that share transactions get the results, and leave the rows, of calls that do not',
  20,
  async () => {
    const template = await createTemplate()
    const batches = fc.array(batch, { minLength: 1, maxLength: 12 })
    const property = fc.asyncProperty(batches, async (list) => {
      const alone = await run(template, list, false)
      expect(await run(template, list, true)).toEqual(alone)
    })
    return { property }
  },
)

export const overlayProperties = [holds]
