import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { indexHash } from '../../../src/domain/model/keys.ts'
import { derivePseudonym } from '../../../src/domain/model/pseudonyms.ts'
import type { Stores } from '../../../src/domain/store/store.ts'
import { describeEachDatabase, raceRounds } from '../../helpers/databases.ts'
import {
  createOtpClient,
  type LogData,
  type OtpClient,
  type OtpRequestData,
} from '../../helpers/otp-client.ts'
import { testKeys } from '../../helpers/keys.ts'
import { createPurger } from '../../helpers/retention.ts'
import { readEverything, readOpened } from '../../helpers/sealed-rows.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../../helpers/service.ts'

const dayMs = 24 * 60 * 60 * 1000

describeEachDatabase('retention', (database, kind) => {
  let service: TestService
  let ada: TestDeveloper
  let app: TestApplication
  let otp: OtpClient
  let purge: ReturnType<typeof createPurger>
  beforeAll(async () => {
    service = await createTestService({
      database: database(),
      env: { OTPD_SEND_PER_MINUTE: '0', OTPD_VERIFY_PER_MINUTE: '0' },
    })
    ada = await service.createDeveloper()
    app = await service.createApplication(ada)
    otp = createOtpClient(service)
    purge = createPurger(service)
  })
  afterAll(() => service.dispose())

  const get = async <T>(path: string) => (await service.request<T>('GET', path, { as: ada })).data
  const verified = async (phone: string, extra: object = {}) => {
    const sent = await otp.send(app, { phone, ...extra })
    expect(sent.status).toBe(201)
    const { requestId } = sent.data
    expect((await otp.verify(app, requestId, await otp.getCode(requestId))).status).toBe(200)
    return requestId
  }
  /** Reads all texts of all tables. */
  const everything = () => readEverything(database())

  describe('of phone numbers', () => {
    test('pseudonymizes them after 30 days in every table, and no sooner', async () => {
      const phone = '+14155550201'
      await service.request('POST', '/v1/webhooks', {
        as: ada,
        body: { appId: app.id, url: 'https://hooks.example/otpd', events: ['*'] },
      })
      const sendBody = { metadata: { order: 'secret-order' }, clientIp: '203.0.113.77' }
      const requestId = await verified(phone, sendBody)
      const failing = await otp.send(app, { phone })
      await otp.verify(app, failing.data.requestId, await otp.getWrongCode(failing.data.requestId))
      service.clock.advance(30 * dayMs - 1)
      await purge()
      expect(await everything()).toContain(phone)
      // Records of phones are scanned once a day.
      service.clock.advance(dayMs)
      await purge()
      const remainingText = await everything()
      for (const trace of [phone, 'secret-order', '203.0.113.77', indexHash(testKeys.phone, phone)]) {
        expect(remainingText).not.toContain(trace)
      }

      const pseudonym = derivePseudonym(testKeys, ada.developer.id, phone)
      expect(pseudonym).toMatch(/^anon_[\w-]{14}$/)
      const request = await get<OtpRequestData>(`/v1/otp/${requestId}`)
      expect(request).toMatchObject({ phone: pseudonym, status: 'verified', country: 'US' })
      const log = await get<LogData[]>('/v1/logs?type=otp.verified')
      expect(log.map((entry) => entry.phone)).toEqual([pseudonym])
      const payloads = (await readOpened(database(), 'events')).flatMap(({ payload }) =>
        typeof payload === 'string' ? [payload] : [],
      )
      expect(payloads.length).toBeGreaterThan(2)
      for (const payload of payloads)
        expect(JSON.parse(payload)).toMatchObject({ data: { phone: pseudonym, metadata: null } })
    }, 300_000)

    test('keeps a number whose identity was verified within the period', async () => {
      const phone = '+14155550202'
      await verified(phone)
      service.clock.advance(20 * dayMs)
      await verified(phone)
      service.clock.advance(20 * dayMs)
      await purge()
      const users = await get<Array<{ phone: string }>>('/v1/users')
      expect(users.map((user) => user.phone)).toContain(phone)
    })

    test('still finds the identity by its number, and restores the number with the next verification', async () => {
      const phone = '+14155550203'
      const path = `/v1/users/${encodeURIComponent(phone)}`
      await verified(phone)
      const before = await get<{ id: string }>(path)
      service.clock.advance(31 * dayMs)
      await purge()
      const listed = async () =>
        (await get<Array<{ id: string; phone: string }>>('/v1/users')).filter(({ id }) => id === before.id)
      expect((await listed()).map((user) => user.phone)).toEqual([
        derivePseudonym(testKeys, ada.developer.id, phone),
      ])
      expect(await get(path)).toMatchObject({ id: before.id, phone, verificationCount: 1 })
      await verified(phone)
      expect((await listed()).map((user) => user.phone)).toEqual([phone])
      expect(await get(path)).toMatchObject({ id: before.id, phone, verificationCount: 2 })
    })

    test('leaves none that was written while the clock was ahead', async () => {
      const ahead = '+14155550207'
      service.clock.advance(20 * dayMs)
      await verified(ahead)
      service.clock.advance(-20 * dayMs)
      await verified('+14155550208')
      for (const days of [31, 20]) {
        service.clock.advance(days * dayMs)
        await purge()
      }
      expect(await everything()).not.toContain(ahead)
    })

    test('gives each developer a different pseudonym for a number', () => {
      const pseudonymFor = (developerId: string) => derivePseudonym(testKeys, developerId, '+14155550203')
      expect(pseudonymFor('dev_a')).not.toBe(pseudonymFor('dev_b'))
      expect(pseudonymFor('dev_a')).toBe(pseudonymFor('dev_a'))
    })

    test('loses no concurrent verification', async () => {
      const phones = Array.from({ length: raceRounds(kind) }, (_, i) => `+1415556${1000 + i}`)
      for (const phone of phones) await verified(phone)
      service.clock.advance(31 * dayMs)
      const codes = []
      for (const phone of phones) {
        const { requestId } = (await otp.send(app, { phone })).data
        codes.push({ requestId, code: await otp.getCode(requestId) })
      }
      const purging = purge()
      const responses = await Promise.all(
        codes.map(({ requestId, code }) => otp.verify(app, requestId, code)),
      )
      await purging
      expect(responses.map(({ status }) => status)).toEqual(phones.map(() => 200))
      const all = await readOpened(database(), 'phones')
      const found = all.filter((one) => phones.includes(String(one['phone'])))
      expect(found.map((one) => one['verificationCount'])).toEqual(phones.map(() => 2))
    }, 300_000)
  })

  test('deletes log entries and deliveries after 90 days, requests if configured, and counters never', async () => {
    const requestId = await verified('+14155550204')
    service.clock.advance(90 * dayMs - 1)
    await purge()
    const types = async () =>
      (await get<LogData[]>('/v1/logs')).filter((one) => one.requestId === requestId).map(({ type }) => type)
    expect(await types()).toEqual(['otp.sent', 'otp.verified'])
    service.clock.advance(1)
    await purge()
    expect(await types()).toEqual([])
    const { webhookDeliveries } = database().tables
    expect(await database().read.select().from(webhookDeliveries)).toEqual([])
    expect(await get(`/v1/otp/${requestId}`)).toMatchObject({ status: 'verified' })
    await createPurger(service, { phoneDays: 0, logDays: 0, requestDays: 90, auditDays: 0 })()
    expect((await service.request('GET', `/v1/otp/${requestId}`, { as: ada })).status).toBe(404)
    expect(await get<{ otpVerified: number }>('/v1/analytics/summary')).toMatchObject({
      otpVerified: expect.any(Number),
    })
    expect((await get<{ otpRequests: number }>('/v1/analytics/summary')).otpRequests).toBeGreaterThan(3)
  })

  test('of zero days keeps data indefinitely', async () => {
    const phone = '+14155550205'
    const requestId = await verified(phone)
    service.clock.advance(100 * dayMs)
    await createPurger(service, { phoneDays: 0, logDays: 0, requestDays: 0, auditDays: 0 })()
    expect(await get(`/v1/otp/${requestId}`)).toMatchObject({ phone })
    expect(await get<LogData[]>('/v1/logs')).not.toEqual([])
    await purge()
  })

  test('continues where it was interrupted, and keeps newer data', async () => {
    const phones = Array.from({ length: 10 }, (_, i) => `+1415555${3000 + i}`)
    for (const phone of phones) await verified(phone)
    service.clock.advance(31 * dayMs)
    const recentPhone = '+14155554000'
    await verified(recentPhone)
    const readPlainPhones = async () => {
      const found = new Set((await everything()).match(/\+1415555[34]\d{3}/g))
      return [...found].toSorted()
    }
    expect(await readPlainPhones()).toEqual([...phones, recentPhone])
    // Stops after every transaction, as a kill could.
    let steps = 0
    const before = async () => (await readPlainPhones()).length
    for (let remaining = await before(); remaining > 1; remaining = await before()) {
      let turns = ++steps
      await purge({ yieldToRequests: () => Promise.resolve(--turns > 0) })
      if (steps > 100) throw new Error('it does not come to an end')
    }
    expect(await readPlainPhones()).toEqual([recentPhone])
  }, 300_000)

  test('deletes one-day data and expired tokens, and nothing newer', async () => {
    const { store, clock } = service
    await purge()
    let messages = 0
    const fill = async (tx: Stores, name: string) => {
      const now = clock.now()
      const token = { hash: name, family: 'f', developerId: ada.developer.id, createdAt: now, usedAt: null }
      await tx.idempotency.claim(
        { caller: 'c', route: 'r', key: name, bodyHash: 'h', earlierBodyHashes: [] },
        now,
        0,
      )
      const { id: developerId } = ada.developer
      tx.inbox.insert([{ seq: ++messages, developerId, requestId: name, requestVisible: 1, sentAt: now }])
      await tx.refreshTokens.insert({ ...token, expiresAt: now + dayMs, sessionEndsAt: now + dayMs })
    }
    const namesIn = async () => {
      const { read, tables } = database()
      const { idempotencyKeys, inboxMessages, refreshTokens } = tables
      const names = [
        (await read.select().from(idempotencyKeys)).map(({ key }) => key),
        (await read.select().from(inboxMessages)).map(({ requestId }) => requestId),
        (await read.select().from(refreshTokens)).map(({ hash }) => hash),
      ]
      return names.map((some) => some.filter((name) => /^(aged|new)\d/.test(name)).toSorted())
    }
    const names = (prefix: string) => Array.from({ length: 25 }, (_, i) => `${prefix}${10 + i}`)
    for (const name of names('aged')) {
      await store.write((tx) => fill(tx, name))
      // Some in the same millisecond, some not.
      if (name.endsWith('5')) clock.advance(1)
    }
    clock.advance(dayMs - 1)
    for (const name of names('new')) await store.write((tx) => fill(tx, name))
    clock.advance(1)
    await purge({ batchSize: 4 })
    expect(await namesIn()).toEqual(Array(3).fill(names('new')))
    await purge({ batchSize: 4 })
    expect(await namesIn()).toEqual(Array(3).fill(names('new')))
  })

  test('deletes unused counts of the guard once a day, and goes on where it was interrupted', async () => {
    const { store, clock } = service
    const today = Math.floor(clock.now() / dayMs)
    const put = (subject: string, until: number) =>
      store.write((tx) =>
        tx.guard.apply({
          rows: new Map([[subject, { windows: { unverified: [1, 2] }, alertedAt: 0, until }]]),
          decisions: new Map(),
        }),
      )
    const left = async () => [...(await store.read.guard.named('gone ')).keys()].toSorted()
    for (const n of [1, 2, 3]) await put(`gone ${n}`, today + 1)
    await put('gone 4', today + 9)
    clock.advance(dayMs)
    await purge({ batchSize: 1, yieldToRequests: async () => (await left()).length === 4 })
    expect(await left()).toEqual(['gone 2', 'gone 3', 'gone 4'])
    await purge({ batchSize: 1 })
    expect(await left()).toEqual(['gone 4'])
    await put('gone 5', today)
    await purge()
    expect(await left()).toEqual(['gone 4', 'gone 5'])
    clock.advance(dayMs)
    await purge()
    expect(await left()).toEqual(['gone 4'])
  })
})
