import { beforeAll, describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { createBackfills } from '../../src/domain/upkeep/backfills.ts'
import { seal } from '../../src/domain/model/sealed.ts'
import { erasePhone } from '../../src/domain/upkeep/erasure.ts'
import { createSealTask, sealBackfills } from '../../src/domain/upkeep/seal-backfills.ts'
import { createStore } from '../../src/store/store.ts'
import { describeEachDatabase } from '../helpers/databases.ts'
import { testKeys } from '../helpers/keys.ts'
import { createOtpClient, type OtpClient } from '../helpers/otp-client.ts'
import { readEverything, readOpened, readStored } from '../helpers/sealed-rows.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../helpers/service.ts'
import { unsharedPermits } from '../domain/webhooks/fixture.ts'

const phone = '+14155550301'
const clientIp = '203.0.113.78'
const order = 'secret-order'
const headerValue = 's3cret-of-the-receiver'
const sealedTables = [
  'applications',
  'webhookEndpoints',
  'idempotencyKeys',
  'webhookAttempts',
  'otpRequests',
  'events',
] as const

const secondSealKey = Buffer.alloc(32, 2)
const rotatedKeys = {
  audit: testKeys.audit,
  webhookHeader: testKeys.webhookHeader,
  seals: {
    version: 2,
    find: (version: number) => (version === 2 ? secondSealKey : testKeys.seals.find(version)),
  },
}

describeEachDatabase('sealed columns', (database) => {
  let service: TestService
  let ada: TestDeveloper
  let app: TestApplication
  let otp: OtpClient
  let webhookId: string
  let secrets: string[]

  beforeAll(async () => {
    service = await createTestService({
      database: database(),
      env: { OTPD_SEND_PER_MINUTE: '0', OTPD_VERIFY_PER_MINUTE: '0', OTPD_WEBHOOK_ALLOW: '127.0.0.1/32' },
    })
    ada = await service.createDeveloper()
    app = await service.createApplication(ada)
    otp = createOtpClient(service)
    const created = await service.request<{ id: string }>('POST', '/v1/webhooks', {
      as: ada,
      body: { appId: app.id, url: 'http://127.0.0.1:9/', events: ['*'], headers: { 'x-key': headerValue } },
    })
    webhookId = created.data.id
    const sent = await otp.send(app, { phone, clientIp, metadata: { order } }, { 'idempotency-key': 'k1' })
    await otp.verify(app, sent.data.requestId, await otp.getCode(sent.data.requestId))
    await otp.send(app, { phone: '+14155550302' })
    await service.store.write(async (tx) => {
      const [claimed] = await tx.webhookOutbox.claim({
        owner: 'a',
        now: service.clock.now(),
        leaseUntil: service.clock.now() + 1,
        permits: unsharedPermits(1),
      })
      if (!claimed) throw new Error('nothing to deliver')
      const attempt = {
        at: 0,
        statusCode: 500,
        error: 'bad_status' as const,
        request: null,
        durationMs: 1,
        body: `got ${phone}`,
      }
      await tx.webhookOutbox.finish({ ...claimed, owner: 'a', attempt, retryAt: 1, now: service.clock.now() })
    })
    secrets = [
      phone,
      phone.slice(1),
      clientIp,
      order,
      headerValue,
      app.webhookSecret,
      app.webhookSecret.slice(6),
    ]
  })

  const storedText = async () => {
    const rows = []
    for (const table of sealedTables) rows.push(await readStored(database(), table))
    return JSON.stringify(rows)
  }

  const openBackfills = (keys: typeof rotatedKeys) => {
    const store = createStore(database(), { keys })
    const keyring = {
      newestVersion: () => keys.seals.version,
      hasOldVersions: () => false,
      refresh: () => {},
    }
    return { store, ...createBackfills({ store, keyring, backfills: sealBackfills }) }
  }
  const wholeRun = { batchSize: 2, yieldToRequests: () => Promise.resolve(true) }

  test('hold no phone, address, metadata, header or secret in plain text', async () => {
    const stored = await storedText()
    for (const secret of secrets) expect(stored).not.toContain(secret)
    const opened = await readEverything(database())
    for (const secret of secrets) expect(opened).toContain(secret)
  })

  /** Turns the rows into those of 0.1.0, with headers as it sealed them. */
  async function storePlainRows() {
    const { otpRequests, events, applications, idempotencyKeys, webhookAttempts, webhookEndpoints } =
      database().tables
    const text = (value: unknown) => (typeof value === 'string' ? value : null)
    const random = (bytes: Uint8Array) => crypto.getRandomValues(bytes)
    const sealedHeader = seal(testKeys.webhookHeader, `${webhookId} x-key`, headerValue, random)
    const opened = new Map(
      await Promise.all(
        sealedTables.map(async (table) => [table, await readOpened(database(), table)] as const),
      ),
    )
    await database().write(async (tx) => {
      for (const row of opened.get('otpRequests') ?? [])
        await tx
          .update(otpRequests)
          .set({
            phone: String(row['phone']),
            clientIp: text(row['clientIp']),
            metadata: text(row['metadata']),
          })
          .where(eq(otpRequests.id, String(row['id'])))
      for (const row of opened.get('events') ?? [])
        await tx
          .update(events)
          .set({ phone: text(row['phone']), payload: text(row['payload']) })
          .where(eq(events.seq, Number(row['seq'])))
      for (const row of opened.get('applications') ?? [])
        await tx
          .update(applications)
          .set({ webhookSecret: String(row['webhookSecret']) })
          .where(eq(applications.id, String(row['id'])))
      for (const row of opened.get('idempotencyKeys') ?? [])
        await tx
          .update(idempotencyKeys)
          .set({ answer: text(row['answer']) })
          .where(eq(idempotencyKeys.key, String(row['key'])))
      for (const row of opened.get('webhookAttempts') ?? [])
        await tx
          .update(webhookAttempts)
          .set({ body: text(row['body']) })
          .where(eq(webhookAttempts.deliveryId, String(row['deliveryId'])))
      await tx.update(webhookEndpoints).set({ headers: JSON.stringify({ 'x-key': sealedHeader }) })
    })
  }

  test('of 0.1.0 work while they are plain, and are sealed in the background', async () => {
    const before = await readEverything(database())
    await storePlainRows()
    expect(await storedText()).toContain(phone)
    const listed = await service.request<Array<{ phone: string }>>('GET', '/v1/logs', { as: ada })
    expect(listed.data.map((entry) => entry.phone)).toContain(phone)
    expect((await readMessage()).headers).toEqual({ 'x-key': headerValue })

    // Killed after each batch, and started again.
    let runs = 0
    for (const isSealed = async () => !(await storedText()).includes(phone); !(await isSealed()); runs++) {
      const { run } = openBackfills({ ...rotatedKeys, seals: testKeys.seals })
      await run({ batchSize: 2, yieldToRequests: () => Promise.resolve(false) })
      expect(runs).toBeLessThan(200)
    }
    await openBackfills({ ...rotatedKeys, seals: testKeys.seals }).run(wholeRun)
    expect(runs).toBeGreaterThan(5)
    const stored = await storedText()
    for (const secret of secrets) expect(stored).not.toContain(secret)
    expect(withoutBackfills(await readEverything(database()))).toBe(withoutBackfills(before))
    expect((await readMessage()).headers).toEqual({ 'x-key': headerValue })
  })

  const withoutBackfills = (text: string) =>
    text.replaceAll(/\{"backfill":[^}]*\},?/g, '').replaceAll('[,', '[')

  async function readMessage() {
    const [row] = await readStored(database(), 'webhookDeliveries')
    const [message] = await service.store.read.webhookOutbox.load([
      { id: String(row?.['id']), endpointId: String(row?.['endpointId']) },
    ])
    if (!message) throw new Error('no message')
    return message
  }

  test('are sealed again with a new version of the key, and a second run changes nothing', async () => {
    const { store, run } = openBackfills(rotatedKeys)
    await run(wholeRun)
    const stored = await storedText()
    expect(stored).not.toMatch(/"[sp]1\./)
    expect(stored).toMatch(/"[sp]2\./)
    const requests = await store.read.otpRequests.list({
      developerId: ada.developer.id,
      now: service.clock.now(),
      limit: 10,
    })
    expect(requests.map((request) => request.phone)).toContain(phone)
    await openBackfills(rotatedKeys).run(wholeRun)
    expect(await storedText()).toBe(stored)
    await openBackfills({ ...rotatedKeys, seals: { ...rotatedKeys.seals, version: 1 } }).run(wholeRun)
  })

  test('finish with the free space, once', async () => {
    const { store, run } = openBackfills({ ...rotatedKeys, seals: testKeys.seals })
    const calls: string[] = []
    let isBusy = true
    const createTask = () =>
      createSealTask({
        store,
        keys: testKeys,
        runBackfills: (throttle) => (calls.push('backfills'), run(throttle)),
        database: {
          secureDelete: (on) => void calls.push(`secure ${on}`),
          overwriteFreeSpace: () => (calls.push('overwrite'), Promise.resolve(!isBusy)),
        },
        onStart: () => void calls.push('start'),
        onSealed: () => void calls.push('sealed'),
      })
    const task = createTask()
    await task(wholeRun)
    expect(calls.splice(0)).toEqual(['secure true', 'backfills', 'overwrite', 'secure false'])
    isBusy = false
    await task(wholeRun)
    expect(calls.splice(0)).toEqual(['secure true', 'backfills', 'overwrite', 'sealed', 'secure false'])
    await task(wholeRun)
    await createTask()(wholeRun)
    expect(calls).toEqual(['backfills', 'backfills'])
  })

  describe('that were tampered with', () => {
    const flip = (stored: unknown) => {
      const text = String(stored)
      return text.slice(0, 8) + (text[8] === 'A' ? 'B' : 'A') + text.slice(9)
    }
    const list = async (path: string) =>
      (await service.request<Array<{ id: string; phone: string }>>('GET', path, { as: ada })).data

    test('are answered as unreadable, in a list that shows all others', async () => {
      const { otpRequests, events } = database().tables
      const victim = (await otp.send(app, { phone: '+14155550303', clientIp, metadata: { order } })).data
      const [row] = (await readStored(database(), 'otpRequests')).filter(({ id }) => id === victim.requestId)
      await database().write(async (tx) => {
        await tx
          .update(otpRequests)
          .set({
            phone: flip(row?.['phone']),
            clientIp: flip(row?.['clientIp']),
            metadata: flip(row?.['metadata']),
          })
          .where(eq(otpRequests.id, victim.requestId))
        await tx
          .update(events)
          .set({ phone: flip(row?.['phone']) })
          .where(eq(events.requestId, victim.requestId))
      })
      for (const path of ['/v1/otp', '/v1/logs']) {
        const phones = (await list(path)).map((entry) => entry.phone)
        expect(phones).toContain('unreadable')
        expect(phones).toContain(phone)
      }
      const unreadable: unknown[] = []
      const { read } = createStore(database(), {
        keys: testKeys,
        onUnreadable: (value) => void unreadable.push(value),
      })
      expect(await read.otpRequests.find(victim.requestId)).toMatchObject({ clientIp: null, metadata: null })
      expect(unreadable).toContainEqual({ column: 'otp_requests.phone', row: victim.requestId })

      // Otherwise it would count for a number that all unreadable ones share.
      const code = await otp.getCode(victim.requestId)
      expect((await otp.verify(app, victim.requestId, code)).status).toBe(500)
      expect((await otp.resend(app, victim.requestId)).status).toBe(500)
      expect((await otp.cancel(app, victim.requestId)).status).toBe(200)
      const users = await list('/v1/users')
      expect(users.map((user) => user.phone)).toEqual([phone])
      await expect(service.dispose()).rejects.toThrow(AggregateError)
    })

    test('do not open in another row', async () => {
      const { otpRequests } = database().tables
      const rows = await readStored(database(), 'otpRequests')
      const [one, two] = rows.filter(({ phone: stored }) => String(stored).startsWith('p1.'))
      await database().write((tx) =>
        tx
          .update(otpRequests)
          .set({ phone: String(two?.['phone']) })
          .where(eq(otpRequests.id, String(one?.['id']))),
      )
      const moved = (await list('/v1/otp')).find(({ id }) => id === one?.['id'])
      expect(moved?.phone).toBe('unreadable')
    })

    test('stay as they are, neither sealed again nor in the way of an erasure', async () => {
      const { run } = openBackfills(rotatedKeys)
      await run(wholeRun)
      expect((await storedText()).match(/"p1\./g)?.length).toBeGreaterThan(1)
      await openBackfills({ ...rotatedKeys, seals: { ...rotatedKeys.seals, version: 1 } }).run(wholeRun)
      const needs = { ...service, newId: service.services.newId, keys: testKeys }
      expect(await erasePhone(needs, phone)).toMatchObject({ users: 1 })
    })

    test('fail the delivery that needs them, and no other', async () => {
      const { webhookEndpoints, applications } = database().tables
      const newSecret = () =>
        service.request('POST', `/v1/applications/${app.id}/rotate/webhook_secret`, { as: ada })
      const testEvent = async () => {
        service.clock.advance(60_000)
        return (await service.request('POST', `/v1/webhooks/${webhookId}/test`, { as: ada })).data
      }
      expect(await testEvent()).toMatchObject({ error: 'connect' })
      await database().write((tx) => tx.update(applications).set({ webhookSecret: 's1.AAAA' }))
      expect(await testEvent()).toEqual({ delivered: false, statusCode: 0, error: 'unreadable' })
      const path = `/v1/applications/${app.id}/webhook-secret`
      expect((await service.request('GET', path, { as: ada })).error).toMatchObject({
        code: 'CONFLICT',
        reason: 'WEBHOOK_SECRET_UNREADABLE',
      })
      expect((await newSecret()).status).toBe(200)
      expect(await testEvent()).toMatchObject({ error: 'connect' })
      await database().write((tx) => tx.update(webhookEndpoints).set({ headers: 's1.AAAA' }))
      expect(await testEvent()).toMatchObject({ error: 'unreadable' })
      const body = { headers: { 'x-key': 'new' } }
      expect((await service.request('PATCH', `/v1/webhooks/${webhookId}`, { as: ada, body })).status).toBe(
        200,
      )
      expect(await testEvent()).toMatchObject({ error: 'connect' })
    })
  })
})
