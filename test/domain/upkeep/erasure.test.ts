import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { erasePhone } from '../../../src/domain/upkeep/erasure.ts'
import { indexHash } from '../../../src/domain/model/keys.ts'
import { derivePseudonym } from '../../../src/domain/model/pseudonyms.ts'
import { unlock } from '../../../src/domain/upkeep/unlock.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
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

describeEachDatabase('a phone number', (database) => {
  let service: TestService
  let ada: TestDeveloper
  let eve: TestDeveloper
  let app: TestApplication
  let evesApplication: TestApplication
  let otp: OtpClient
  beforeAll(async () => {
    service = await createTestService({
      database: database(),
      env: { OTPD_SEND_PER_MINUTE: '0', OTPD_VERIFY_PER_MINUTE: '0', OTPD_PHONE_SEND_BUDGET: 'enforce' },
    })
    ada = await service.createDeveloper()
    eve = await service.createDeveloper()
    app = await service.createApplication(ada)
    evesApplication = await service.createApplication(eve)
    otp = createOtpClient(service)
  })
  afterAll(() => service.dispose())

  const needs = () => ({ ...service, newId: service.services.newId, keys: testKeys })
  const erase = (phone: string) => erasePhone(needs(), phone)
  const get = async <T>(path: string, as = ada) => (await service.request<T>('GET', path, { as })).data
  const everything = () => readEverything(database())
  const wrong = async (as: TestApplication, phone: string, times: number) => {
    for (let remaining = times; remaining > 0; remaining -= 5) {
      const { requestId } = (await otp.send(as, { phone })).data
      for (let i = 1; i <= Math.min(5, remaining); i++)
        await otp.verify(as, requestId, await otp.getWrongCode(requestId, i))
      service.clock.advance(3 * 60_000)
    }
  }

  describe('the erasure', () => {
    test('leaves no trace in any table, of any developer, and cancels its codes', async () => {
      const phone = '+14155550301'
      await service.request('POST', '/v1/webhooks', {
        as: ada,
        body: { appId: app.id, url: 'https://hooks.example/otpd', events: ['*'] },
      })
      const sendBody = { phone, metadata: { order: 'secret-order' }, clientIp: '203.0.113.78' }
      // Some records are old enough to be pseudonymized.
      const old = await otp.send(app, sendBody)
      await otp.verify(app, old.data.requestId, await otp.getCode(old.data.requestId))
      service.clock.advance(31 * dayMs)
      await createPurger(service)()
      const pseudonyms = [ada, eve].map(({ developer }) => derivePseudonym(testKeys, developer.id, phone))
      expect(await everything()).toContain(pseudonyms[0] ?? '')
      await wrong(evesApplication, phone, 3)
      const pending = await otp.send(app, sendBody, { 'idempotency-key': 'k1' })
      expect(await everything()).toContain(phone)

      expect(await erase(phone)).toEqual({ otpRequests: 3, logEntries: expect.any(Number), users: 1 })
      const remainingText = await everything()
      for (const trace of [
        phone,
        ...pseudonyms,
        indexHash(testKeys.phone, phone),
        'secret-order',
        '203.0.113.78',
      ])
        expect(remainingText).not.toContain(trace)
      const request = await get<OtpRequestData>(`/v1/otp/${pending.data.requestId}`)
      expect(request).toMatchObject({ status: 'canceled', phone: 'erased', country: 'US' })
      expect(await get<unknown[]>('/v1/inbox')).toEqual([])
      expect(await get<unknown[]>('/v1/users')).toEqual([])
      const log = await get<LogData[]>('/v1/logs?type=otp.canceled')
      expect(log.map((entry) => entry.phone)).toEqual(['erased'])
      for (const as of [ada, eve]) {
        const trail = await get<Array<{ action: string; source: string; actorId: null }>>(
          '/v1/audit?limit=1',
          as,
        )
        expect(trail).toMatchObject([
          { action: 'phone.erased', source: 'host', actorId: null, targetId: null },
        ])
      }
      expect(await erase(phone)).toEqual({ otpRequests: 0, logEntries: 0, users: 0 })
      // The same person may come back as a new user.
      const retryResponse = await otp.send(app, { phone })
      expect(retryResponse.status).toBe(201)
      expect(
        (await otp.verify(app, retryResponse.data.requestId, await otp.getCode(retryResponse.data.requestId)))
          .status,
      ).toBe(200)
    })

    test('erases an identity that is verified while it runs', async () => {
      const phone = '+14155550307'
      const { requestId } = (await otp.send(app, { phone })).data
      const code = await otp.getCode(requestId)
      const { read } = service.store
      let isVerified = false
      const listRequests: typeof read.retention.listRequests = async (...args) => {
        if (!isVerified) isVerified = (await otp.verify(app, requestId, code)).status === 200
        return read.retention.listRequests(...args)
      }
      const store = { ...service.store, read: { ...read, retention: { ...read.retention, listRequests } } }
      await erasePhone({ ...needs(), store }, phone)
      expect(isVerified).toBe(true)
      expect(await everything()).not.toContain(phone)
    })

    test.each([
      ['phones', '+14155550308'],
      ['requests', '+14155550309'],
      ['events', '+14155550310'],
    ] as const)('is not undone by a purge that has read the %s before', async (rows, phone) => {
      const { requestId } = (await otp.send(app, { phone })).data
      await otp.verify(app, requestId, await otp.getCode(requestId))
      service.clock.advance(31 * dayMs)
      const { read } = service.store
      let isErased = false
      const andErase =
        <Args extends unknown[], Row>(list: (...args: Args) => Promise<Row[]>) =>
        async (...args: Args) => {
          const found = await list(...args)
          if (found.length > 0 && !isErased) {
            isErased = true
            await erase(phone)
          }
          return found
        }
      const { phones, retention } = read
      const store = {
        ...service.store,
        read: {
          ...read,
          ...(rows === 'phones' && { phones: { ...phones, scan: andErase(phones.scan) } }),
          ...(rows === 'requests' && {
            retention: { ...retention, listRequests: andErase(retention.listRequests) },
          }),
          ...(rows === 'events' && {
            retention: { ...retention, listEvents: andErase(retention.listEvents) },
          }),
        },
      }
      await createPurger({ ...service, store })({ batchSize: 100 })
      expect(isErased).toBe(true)
      const remainingText = await everything()
      for (const trace of [
        phone,
        derivePseudonym(testKeys, ada.developer.id, phone),
        indexHash(testKeys.phone, phone),
      ])
        expect(remainingText).not.toContain(trace)
    })

    test('changes no other phone number', async () => {
      const [erasedPhone, otherPhone] = ['+14155550302', '+14155550303']
      for (const phone of [erasedPhone, otherPhone]) {
        const { requestId } = (await otp.send(app, { phone })).data
        await otp.verify(app, requestId, await otp.getCode(requestId))
      }
      const readOtherRows = async () => {
        const rows = []
        for (const table of ['otpRequests', 'events', 'phones'] as const)
          rows.push(...(await readOpened(database(), table)))
        return rows.filter((row) => row['phone'] === otherPhone)
      }
      const before = await readOtherRows()
      expect(before).toHaveLength(4)
      await erase(erasedPhone)
      expect(await readOtherRows()).toEqual(before)
    })

    test('covers every spelling of the number', async () => {
      const [one, other] = ['+5491123456789', '+541123456789']
      for (const phone of [one, other]) {
        const { requestId } = (await otp.send(app, { phone })).data
        await otp.verify(app, requestId, await otp.getCode(requestId))
      }
      expect(await erase(other)).toMatchObject({ otpRequests: 2, users: 1 })
      const remainingText = await everything()
      for (const phone of [one, other]) expect(remainingText).not.toContain(phone)
    })

    test('requires a phone number', async () => {
      await expect(erase('nobody')).rejects.toMatchObject({ code: 'INVALID_PHONE_NUMBER' })
    })
  })

  describe('a developer with an API token for support', () => {
    const tokenOf = async (as: TestDeveloper) => {
      const body = { name: 'helpdesk', scopes: ['support'] }
      const { data } = await service.request<{ id: string; token: string }>('POST', '/v1/tokens', {
        as,
        body,
      })
      return { id: data.id, headers: { authorization: `Bearer ${data.token}` } }
    }
    let adas: Awaited<ReturnType<typeof tokenOf>>
    let eves: typeof adas
    beforeAll(async () => {
      adas = await tokenOf(ada)
      eves = await tokenOf(eve)
    })
    const path = (phone: string) => `/v1/users/${encodeURIComponent(phone)}`
    const call = (as: { headers: Record<string, string> }, method: string, to: string) =>
      service.request<Record<string, unknown>>(method, to, { as })
    const eraseAs = (as: typeof adas, phone: string) => call(as, 'DELETE', `${path(phone)}?erase=true`)
    const unlockAs = (as: typeof adas, phone: string) => call(as, 'POST', `${path(phone)}/unlock`)
    const verify = async (as: TestApplication, phone: string, headers = {}) => {
      const { requestId } = (await otp.send(as, { phone, metadata: { order: 'm1' } }, headers)).data
      await otp.verify(as, requestId, await otp.getCode(requestId))
      return requestId
    }
    const newest = async (as: TestDeveloper) =>
      (await get<Array<Record<string, unknown>>>('/v1/audit?limit=1', as))[0]

    test('erases as completely as the operator, and nothing of another developer', async () => {
      const [one, other] = ['+5491123456701', '+541123456701']
      await verify(app, one)
      service.clock.advance(31 * dayMs)
      await createPurger(service)()
      await verify(app, other, { 'idempotency-key': 'e1' })
      const pseudonym = derivePseudonym(testKeys, ada.developer.id, one)
      expect(await everything()).toContain(pseudonym)
      expect((await eraseAs(eves, one)).status).toBe(404)
      expect(await newest(eve)).not.toMatchObject({ action: 'phone.erased', source: 'api' })

      const erased = await eraseAs(adas, one)
      const counts = { otpRequests: 2, logEntries: expect.any(Number), users: 1 }
      expect([erased.status, erased.data]).toEqual([200, { erased: true, ...counts }])
      const remainingText = await everything()
      for (const trace of [one, other, pseudonym]) expect(remainingText).not.toContain(trace)
      const { tokenId, ...entry } = (await newest(ada)) ?? {}
      expect([tokenId, entry]).toEqual([
        adas.id,
        expect.objectContaining({
          action: 'phone.erased',
          source: 'api',
          actorId: ada.developer.id,
          targetId: null,
          targetName: null,
        }),
      ])
      expect((await eraseAs(adas, one)).status).toBe(404)
    })

    test('leaves the same number of another developer', async () => {
      const phone = '+14155550311'
      for (const as of [app, evesApplication]) await verify(as, phone)
      expect((await eraseAs(adas, phone)).status).toBe(200)
      expect((await call(ada, 'GET', path(phone))).status).toBe(404)
      expect((await call(eve, 'GET', path(phone))).data).toMatchObject({ phone })
      expect(await get<unknown[]>(`/v1/otp?phone=${encodeURIComponent(phone)}`, eve)).toHaveLength(1)
    })

    test('erases one number at a time, and only when asked to', async () => {
      const phone = '+14155550312'
      await verify(app, phone)
      expect((await call(adas, 'DELETE', path(phone))).error.details).toMatchObject([
        { in: 'query', path: 'erase', code: 'REQUIRED' },
      ])
      expect((await eraseAs(adas, '12')).status).toBe(404)
      // Not by the API, where a call may come when the other one has ended.
      const eraseNow = () => service.services.phones.erase(ada.developer, phone)
      expect(await Promise.allSettled([eraseNow(), eraseNow()])).toMatchObject([
        { status: 'fulfilled' },
        { status: 'rejected', reason: { code: 'CONFLICT', reason: 'ERASURE_IN_PROGRESS' } },
      ])
    })

    test('unlocks its own phones only', async () => {
      const phone = '+14155550313'
      await wrong(app, phone, 25)
      const check = async () => {
        const { requestId } = (await otp.send(app, { phone })).data
        return (await otp.verify(app, requestId, await otp.getCode(requestId))).status
      }
      expect(await check()).toBe(429)
      expect((await unlockAs(eves, phone)).status).toBe(404)
      expect(await check()).toBe(429)
      expect((await unlockAs(adas, phone)).data).toMatchObject({ unlocked: true, checkBudgets: 1 })
      expect(await newest(ada)).toMatchObject({
        action: 'phone.unlocked',
        source: 'api',
        tokenId: adas.id,
        targetName: null,
      })
      expect(await check()).toBe(200)
      expect((await unlockAs(adas, '+14155550314')).status).toBe(404)
      await unlockAs(adas, phone)
      expect((await unlockAs(adas, phone)).data).toEqual({ unlocked: false, checkBudgets: 0, admissions: 0 })
    })
  })

  describe('the unlocking', () => {
    test('of a phone resets failed checks and send limits for all developers', async () => {
      const phone = '+14155550304'
      for (const as of [app, evesApplication]) await wrong(as, phone, 25)
      const check = async (as: TestApplication) => {
        const { requestId } = (await otp.send(as, { phone })).data
        return (await otp.verify(as, requestId, await otp.getCode(requestId))).status
      }
      for (const as of [app, evesApplication]) expect(await check(as)).toBe(429)
      expect(await unlock(needs(), '(415) 555-0304', 'US')).toEqual({
        checkBudgets: 2,
        admissions: expect.any(Number),
      })
      for (const as of [app, evesApplication]) expect(await check(as)).toBe(200)
      const trail = await get<Array<{ action: string; targetId: string }>>('/v1/audit?limit=1')
      expect(trail).toMatchObject([{ action: 'phone.unlocked', targetId: null }])

      const sends = []
      for (let i = 0; i < 6; i++) sends.push((await otp.send(app, { phone })).status)
      expect(sends.at(-1)).toBe(429)
      expect((await unlock(needs(), phone)).admissions).toBeGreaterThan(0)
      expect((await otp.send(app, { phone })).status).toBe(201)
    })

    test('is audited for every developer whose limits it changes, atomically', async () => {
      const phone = '+14155550308'
      for (const as of [app, evesApplication]) await otp.send(as, { phone })
      const { phones } = database().tables
      const counted = async () => JSON.stringify(await database().read.select().from(phones))
      const before = await counted()
      const write: typeof service.store.write = (body) =>
        service.store.write((tx) =>
          body({ ...tx, audit: { ...tx.audit, insert: () => Promise.reject(new Error('no entry')) } }),
        )
      const broken = { ...needs(), store: { ...service.store, write } }
      await expect(unlock(broken, phone)).rejects.toThrow('no entry')
      expect(await counted()).toBe(before)

      expect(await unlock(needs(), phone)).toMatchObject({ checkBudgets: 0 })
      for (const as of [ada, eve]) {
        const [entry] = await get<Array<{ action: string; targetId: string }>>('/v1/audit?limit=1', as)
        expect(entry).toMatchObject({ action: 'phone.unlocked', targetId: null })
      }
    })

    test('of an application resets the limits of all phones of its developer, and of no other developer', async () => {
      const phones = ['+14155550305', '+14155550306']
      for (const phone of phones) await wrong(app, phone, 25)
      await wrong(evesApplication, '+14155550305', 25)
      const ownersOfLimits = async () => {
        const rows = await database().read.select().from(database().tables.phones)
        return new Set(rows.filter((row) => row.strangerRefilledAt !== null).map((row) => row.developerId))
      }
      expect(await ownersOfLimits()).toEqual(new Set([ada.developer.id, eve.developer.id]))
      expect(await unlock(needs(), app.id)).toMatchObject({ checkBudgets: 2 })
      expect(await ownersOfLimits()).toEqual(new Set([eve.developer.id]))
      const [entry] = await get<Array<{ action: string; targetId: string }>>('/v1/audit?limit=1')
      expect(entry).toMatchObject({
        action: 'application.unlocked',
        targetId: app.id,
        targetName: 'Application',
      })
    }, 300_000)

    test('of a phone covers all budgets and every spelling', async () => {
      const [one, other] = ['+5511987654321', '+551187654321']
      const sendBody = { phone: one, deviceId: 'owner-phone' }
      const { requestId } = (await otp.send(app, sendBody)).data
      await otp.verify(app, requestId, await otp.getCode(requestId))
      for (const body of [sendBody, { phone: one }]) {
        const sent = await otp.send(app, body)
        await otp.verify(app, sent.data.requestId, await otp.getWrongCode(sent.data.requestId))
      }
      expect(await unlock(needs(), other)).toEqual({ checkBudgets: 2, admissions: 3 })
      expect(await unlock(needs(), one)).toEqual({ checkBudgets: 0, admissions: 0 })
    })

    test('of an unknown target fails, or reports that nothing was reset', async () => {
      expect(await unlock(needs(), '+14155550399')).toEqual({ checkBudgets: 0, admissions: 0 })
      await expect(unlock(needs(), 'app_01h455vb4pex5vsknk084sn02q')).rejects.toMatchObject({
        code: 'NOT_FOUND',
      })
      await expect(unlock(needs(), '07700 900123', 'ZZ')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
      await expect(unlock(needs(), 'app_x')).rejects.toMatchObject({ code: 'INVALID_PHONE_NUMBER' })
    })
  })
})
