import { Database as SqliteConnection } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { CallingApplication } from '../../src/domain/model/application.ts'
import type { Operation, Rows } from '../../src/domain/store/operation.ts'
import type { Store } from '../../src/domain/store/store.ts'
import { eventChange } from '../../src/domain/log/changes.ts'
import { createStore } from '../../src/store/store.ts'
import type { OtpRequest } from '../../src/domain/model/request.ts'
import { testClock } from '../helpers/clock.ts'
import { describeEachDatabase, openTestSqlite } from '../helpers/databases.ts'
import { deepFreeze } from '../helpers/freeze.ts'
import { testKeys } from '../helpers/keys.ts'
import * as operations from '../helpers/otp-operations.ts'
import { createPendingRequest } from '../helpers/otp-request.ts'
import { unlimitedPlan, unlimitedPlans } from '../helpers/plans.ts'
import { createTestService } from '../helpers/service.ts'

const withoutIds = (value: unknown) => JSON.stringify(value).replace(/\b(dlv|evt|idn|otp)_\w{26}/g, '$1_')

/** Freezes what a decision reads. */
const freezeRows = (rows: Rows): Rows =>
  Object.fromEntries(
    Object.entries(rows).map(([name, read]) => [
      name,
      typeof read === 'function'
        ? (...args: unknown[]) => deepFreeze((read as (...args: unknown[]) => unknown)(...args))
        : { row: (key: string) => deepFreeze(rows.guard.row(key)), fault: rows.guard.fault },
    ]),
  ) as unknown as Rows

/**
 * Checks each decision: it is no promise, changes nothing that it was given, and is made again from the same rows, but
 * for new ids.
 */
function checkDecisions(store: Store): { store: Store; decided: () => number } {
  let count = 0
  const checked: Store = {
    ...store,
    decide: <R>({ decide, ...operation }: Operation<R>) =>
      store.decide<R>({
        ...operation,
        decide(rows) {
          count++
          const frozen = freezeRows(rows)
          const decision = decide(frozen)
          for (const value of [decision, decision.result, ...decision.changes])
            if (typeof value === 'object' && value !== null && 'then' in value)
              throw new Error('a decision is a promise')
          expect(withoutIds(decide(frozen))).toBe(withoutIds(decision))
          return deepFreeze(decision)
        },
      }),
  }
  return { store: checked, decided: () => count }
}

describeEachDatabase('a decision', (database) => {
  let clock: ReturnType<typeof testClock>
  let application: CallingApplication
  let otp: operations.OtpOperations
  let decided: () => number
  let numbers = 0

  beforeAll(async () => {
    const service = await createTestService({ database: database(), plans: unlimitedPlans })
    clock = service.clock
    const developer = await service.createDeveloper()
    const created = await service.createApplication(developer)
    const body = { appId: created.id, url: 'https://example.com/', events: ['*'] }
    expect((await service.request('POST', '/v1/webhooks', { as: developer, body })).status).toBe(201)
    application = await service.services.appAuth.authenticate(created)
    const checked = checkDecisions(service.store)
    const plans = { free: { ...unlimitedPlan, sendPerMinute: 9, verifyPerMinute: 9 } }
    otp = operations.createOtpOperations({ store: checked.store, clock, plans })
    decided = checked.decided
  })
  const newPhone = () => `+1415${2_000_000 + numbers++}`
  const send = async () => (await otp.send(application, { phone: newPhone() })).requestId
  const refusal = (call: Promise<unknown>) =>
    call.then(
      () => 'ok',
      (error: unknown) => (error instanceof Error && 'code' in error ? String(error.code) : String(error)),
    )
  const verify = async (id: string, distance = 0) =>
    refusal(otp.verify(application, id, await otp.code(id, distance)))

  /** Each kind of call, and what it comes to. */
  const cases: Array<[string, () => Promise<string[]>, string[]]> = [
    [
      'of a send',
      async () => {
        const scope = {
          caller: application.id,
          route: 'send',
          key: '1',
          bodyHash: '1',
          earlierBodyHashes: [],
        }
        const phone = newPhone()
        const first = await otp.send(application, { phone, clientIp: '203.0.113.1', deviceId: 'one' }, scope)
        const inProgress = await refusal(otp.send(application, { phone }, scope))
        await otp.attempt(otp.firstClaim(first.requestId), operations.accepted('one'), {
          scope,
          value: first,
        })
        const replayed = await otp.send(application, { phone }, scope)
        return [inProgress, String(replayed.requestId === first.requestId)]
      },
      ['CONFLICT', 'true'],
    ],
    [
      'of more sends than the budget of the phone allows',
      async () => {
        const phone = newPhone()
        const outcomes = Array.from({ length: 6 }, () => refusal(otp.send(application, { phone })))
        return (await Promise.all(outcomes)).toSorted()
      },
      ['RATE_LIMITED', ...Array<string>(5).fill('ok')],
    ],
    [
      'of more sends than the plan allows',
      async () => {
        const outcomes = Array.from({ length: 10 }, () => refusal(send()))
        return (await Promise.all(outcomes)).toSorted()
      },
      ['RATE_LIMITED', ...Array<string>(9).fill('ok')],
    ],
    [
      'of a resend',
      async () => {
        const requestId = await send()
        const tooSoon = await refusal(otp.resend(application, { requestId }))
        clock.advance(31_000)
        const resent = await refusal(otp.resend(application, { requestId }))
        await otp.cancel(application, requestId)
        return [tooSoon, resent, await refusal(otp.resend(application, { requestId }))]
      },
      ['RATE_LIMITED', 'ok', 'OTP_CANCELED'],
    ],
    [
      'of a verification',
      async () => {
        const id = await send()
        return [await verify(id, 1), await verify(id), await verify(id)]
      },
      ['INVALID_CODE', 'ok', 'ALREADY_VERIFIED'],
    ],
    [
      'of the last wrong code',
      async () => {
        const id = await send()
        const codes = await Promise.all(Array.from({ length: 6 }, () => otp.code(id, 1)))
        const outcomes = codes.map((code) => refusal(otp.verify(application, id, code)))
        return (await Promise.all(outcomes)).toSorted()
      },
      ['ATTEMPTS_EXHAUSTED', ...Array<string>(5).fill('INVALID_CODE')],
    ],
    [
      'of a cancellation, and of an unknown request',
      async () => {
        const id = await send()
        const unknown = otp.newId('otp')
        const calls = [
          otp.cancel(application, id),
          otp.cancel(application, id),
          otp.cancel(application, unknown),
        ]
        return (await Promise.all(calls.map(refusal))).toSorted()
      },
      ['NOT_FOUND', 'OTP_CANCELED', 'ok'],
    ],
    [
      'of an expiry',
      async () => {
        const id = await send()
        clock.advance(300_000)
        return [String((await otp.expireRequests()) > 0), await verify(id)]
      },
      ['true', 'OTP_EXPIRED'],
    ],
    [
      'of the end of an attempt, and of a receipt',
      async () => {
        const answers = [
          operations.uncertain,
          operations.refused,
          operations.deferred,
          operations.accepted('two'),
        ]
        const rejected: string[] = []
        for (const answer of answers) {
          const id = await send()
          const rejection = await otp.attempt(otp.firstClaim(id), answer)
          rejected.push(rejection ? rejection.rejected.code : 'ok')
          await otp.revert(id)
        }
        for (const status of ['undelivered', 'delivered'] as const)
          await otp.receive(operations.receipt(status, 'two'))
        return rejected
      },
      ['ok', 'DELIVERY_FAILED', 'ok', 'ok'],
    ],
  ]

  test.each(cases)('%s is made at once, and changes none of its facts', async (_, run, expected) => {
    clock.advance(120_000)
    const before = decided()
    expect(await run()).toEqual(expected)
    expect(decided()).toBeGreaterThan(before)
    expect(otp.errors).toEqual([])
  })
})

describe('a transaction of several calls, on SQLite', () => {
  const clock = testClock()
  let opened: Awaited<ReturnType<typeof openTestSqlite>>
  let store: Store
  let application: CallingApplication
  let otp: operations.OtpOperations

  beforeAll(async () => {
    opened = await openTestSqlite()
    const service = await createTestService({ database: opened.database, plans: unlimitedPlans })
    application = await service.services.appAuth.authenticate(
      await service.createApplication(await service.createDeveloper()),
    )
    store = createStore(opened.database, { keys: testKeys })
    otp = operations.createOtpOperations({ store, clock })
  })
  afterAll(() => opened.dispose())

  const runOnFile = (statement: string) => {
    const connection = new SqliteConnection(opened.path)
    connection.run(statement)
    connection.close()
  }
  const createRequest = (appId: string) => {
    const { developerId, projectId } = application
    return createPendingRequest(clock.now(), { id: otp.newId('otp'), developerId, projectId, appId })
  }
  const count = async () =>
    (await opened.database.read.select().from(opened.database.tables.otpRequests)).length

  test('that fails leaves none of its changes to the calls that follow', async () => {
    const lost = createRequest('app_unknown')
    const change = { kind: 'request', request: lost, isNew: true } as const
    const failed = store.write((tx) => tx.changes.apply([change])).catch(() => 'failed')
    const together = otp.send(application, { phone: '+14152000001' })
    expect(await failed).toBe('failed')
    const { requestId } = await together
    const later = await otp.send(application, { phone: '+14152000002' })
    for (const id of [requestId, later.requestId]) expect(await store.read.otpRequests.find(id)).toBeDefined()
    expect(await store.read.otpRequests.find(lost.id)).toBeUndefined()
    expect(await count()).toBe(2)
  })

  test('that fails because a call could not be decided takes no other call with it', async () => {
    const failing = store.decide<never>({
      preload: { first: () => ({}) },
      decide() {
        throw new Error('cannot be decided')
      },
    })
    const before = await count()
    const settled = await Promise.allSettled([
      otp.send(application, { phone: '+14152000003' }),
      failing,
      otp.send(application, { phone: '+14152000004' }),
    ])
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(await count()).toBe(before + 2)
  })

  test('that fails because the limit cannot be charged leaves nothing of its call', async () => {
    const before = await count()
    const request = createRequest(application.id)
    const admission = { subject: 'app_unknown', policy: 'otp-send', at: 1, seq: 1 } as const
    const failing = store.decide({
      preload: { first: () => ({}) },
      decide: () => ({
        result: undefined,
        changes: [
          { kind: 'request', request, isNew: true },
          eventChange(otp.newId, 'otp.sent', request, [], clock.now()),
          { kind: 'admission', admission: { ...admission, replacesLater: false, expiredUntil: 0 } },
        ],
      }),
    })
    const settled = await Promise.allSettled([failing, otp.send(application, { phone: '+14152000005' })])
    expect(settled.map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
    expect(await count()).toBe(before + 1)
    expect(await store.read.otpRequests.find(request.id)).toBeUndefined()
  })

  test("that fails because the guard's counts cannot be written is made again without the guard", async () => {
    runOnFile(
      `create trigger broken_guard before insert on guard_usage begin select raise(abort, 'broken'); end`,
    )
    const before = await count()
    const phones = ['+14152000006', '+14152000007', '+14152000008']
    const sent = await Promise.all(phones.map((phone) => otp.send(application, { phone })))
    runOnFile('drop trigger broken_guard')
    expect(new Set(sent.map(({ requestId }) => requestId)).size).toBe(3)
    expect(otp.errors).toHaveLength(3)
    expect(await count()).toBe(before + 3)
  })

  test('keeps the trace of one call from the others', async () => {
    const request = {
      ...createRequest(application.id),
      traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
    }
    const made = store.decide<void>({
      preload: { first: () => ({}) },
      decide: () => ({ result: undefined, changes: [{ kind: 'request', request, isNew: true }] }),
    })
    const read = store.decide<OtpRequest | undefined>({
      preload: { first: () => ({ request: request.id }) },
      decide: (rows) => ({ result: rows.request(request.id), changes: [] }),
    })
    await made
    expect((await read)?.id).toBe(request.id)
    expect((await read)?.traceparent).toBeUndefined()
  })

  test('does not fail if a call changes the request that another one makes', async () => {
    const request = createRequest(application.id)
    const change = (find: (rows: Rows) => typeof request | undefined, isNew: boolean) =>
      store.decide<void>({
        preload: { first: () => ({ request: request.id }) },
        decide(rows) {
          const found = find(rows)
          return { result: undefined, changes: found ? [{ kind: 'request', request: found, isNew }] : [] }
        },
      })
    await Promise.all([
      change(() => request, true),
      change((rows) => {
        const found = rows.request(request.id)
        return found && { ...found, deliveryStatus: 'sent' }
      }, false),
    ])
    expect((await store.read.otpRequests.find(request.id))?.deliveryStatus).toBe('sent')
  })
})
