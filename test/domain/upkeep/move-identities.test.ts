import { afterAll, beforeAll, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { indexHash } from '../../../src/domain/model/keys.ts'
import { derivePseudonym } from '../../../src/domain/model/pseudonyms.ts'
import { moveIdentities } from '../../../src/domain/upkeep/move-identities.ts'
import { unlock } from '../../../src/domain/upkeep/unlock.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { createOtpClient, guardOffEnv, type OtpClient } from '../../helpers/otp-client.ts'
import { testKeys } from '../../helpers/keys.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../../helpers/service.ts'

const dayMs = 24 * 60 * 60 * 1000

type UserData = { id: string; phone: string; verificationCount: number; applications: string[] }

describeEachDatabase('the identities of 0.1.0', (database) => {
  let service: TestService
  let otp: OtpClient
  let ada: TestDeveloper
  let live: TestApplication
  let second: TestApplication
  let sandbox: TestApplication
  /** Starts a server, which reads once what 0.1.0 left. */
  async function start() {
    service = await createTestService({ database: database(), plans: unlimitedPlans, env: guardOffEnv })
    otp = createOtpClient(service)
  }
  beforeAll(async () => {
    await start()
    ada = await service.createDeveloper()
    live = await service.createApplication(ada)
    second = await service.createApplication(ada)
    sandbox = await service.createApplication(ada, { environment: 'test' })
  })
  afterAll(() => service.dispose())

  /** Stores an identity as 0.1.0 did. */
  const insertOld = (id: string, phone: string, count: number, apps: TestApplication[], daysAgo = 1) =>
    database().write(async (tx) => {
      const { identities, identityApplications } = database().tables
      const at = service.clock.now() - daysAgo * dayMs
      await tx.insert(identities).values({
        id,
        developerId: ada.developer.id,
        phone,
        country: 'US',
        verificationCount: count,
        firstVerifiedAt: at - 1,
        lastVerifiedAt: at,
      })
      for (const app of apps) await tx.insert(identityApplications).values({ identityId: id, appId: app.id })
    })
  const oldId = (n: number) => `idn_01k4282jeme2yb8tqmmgk${String(n).padStart(4, '0')}`
  /** Moves the identities as a server does when it starts. */
  async function move() {
    await start()
    return moveIdentities({ store: service.store, keys: testKeys, random: service.random })
  }
  const list = async () => (await service.request<UserData[]>('GET', '/v1/users?limit=200', { as: ada })).data
  const get = async (phone: string, as = ada) =>
    (await service.request<UserData>('GET', `/v1/users/${encodeURIComponent(phone)}`, { as })).data

  test('keep ids, counts, order and applications', async () => {
    for (let n = 1; n <= 3; n++) await insertOld(oldId(n), `+1415555600${n}`, n, [live, second])
    expect(await move()).toBe(3)
    expect(await move()).toBe(0)
    expect(await list()).toMatchObject(
      [3, 2, 1].map((n) => ({
        id: oldId(n),
        phone: `+1415555600${n}`,
        verificationCount: n,
        applications: [live.id, second.id].toSorted(),
      })),
    )
    const { requestId } = await otp.sendOrThrow(live, { phone: '+14155556002' })
    expect((await otp.verifyRightCode(live, requestId)).status).toBe(200)
    expect(await get('+14155556002')).toMatchObject({ id: oldId(2), verificationCount: 3 })
  })

  test('that were verified in both environments become two, and the live one keeps the id', async () => {
    const activeBefore = (await service.services.analytics.summary(ada.developer)).activeUsers
    await insertOld(oldId(10), '+14155556010', 5, [live, sandbox])
    await insertOld(oldId(11), '+14155556011', 2, [sandbox])
    await move()
    const users = (await list()).filter(({ phone }) => /\+1415555601[01]/.test(phone))
    expect(users).toHaveLength(3)
    expect(await get('+14155556010')).toMatchObject({
      id: oldId(10),
      verificationCount: 5,
      applications: [live.id],
    })
    const key = { headers: { 'x-api-key': sandbox.apiKey } }
    const ofSandbox = await get('+14155556010', { ...ada, ...key })
    expect(ofSandbox).toMatchObject({ verificationCount: 1, applications: [sandbox.id] })
    expect(ofSandbox.id).not.toBe(oldId(10))
    expect(await get('+14155556011')).toMatchObject({ id: oldId(11), applications: [sandbox.id] })
    // 0.1.0 counted both when it verified them.
    expect((await service.services.analytics.summary(ada.developer)).activeUsers).toBe(activeBefore + 1)
  })

  test('that are spellings of one subscriber become one, with the older id', async () => {
    await insertOld(oldId(20), '+5491123456020', 2, [live], 9)
    await insertOld(oldId(21), '+541123456020', 3, [second], 4)
    await move()
    for (const phone of ['+5491123456020', '+541123456020']) {
      expect(await get(phone)).toMatchObject({
        id: oldId(20),
        phone: '+541123456020',
        verificationCount: 5,
        applications: [live.id, second.id].toSorted(),
      })
    }
  })

  test('whose number is a pseudonym are found by the number, and get it back when it is verified', async () => {
    const phone = '+5511987656030'
    const pseudonym = derivePseudonym(testKeys, ada.developer.id, phone)
    await insertOld(oldId(30), pseudonym, 4, [live], 100)
    await move()
    expect(await get(phone)).toMatchObject({ id: oldId(30), phone, verificationCount: 4 })
    expect((await list()).find(({ id }) => id === oldId(30))?.phone).toBe(pseudonym)
    const { requestId } = await otp.sendOrThrow(live, { phone: '+551187656030' })
    expect(await get(phone)).toMatchObject({ id: oldId(30), verificationCount: 4 })
    expect((await otp.verifyRightCode(live, requestId)).status).toBe(200)
    expect(await get(phone)).toMatchObject({ id: oldId(30), phone: '+551187656030', verificationCount: 5 })
    const { phones } = database().tables
    const rows = await database()
      .read.select()
      .from(phones)
      .where(eq(phones.identityId, oldId(30)))
    expect(rows).toHaveLength(1)
  })

  test('leave the limits of their phones spent: the strictest of the applications holds for strangers', async () => {
    const phone = '+14155556040'
    await insertOld(oldId(40), phone, 1, [live])
    const now = service.clock.now()
    const insertBudget = (app: TestApplication, failures: number, lockedUntil: number | null) =>
      database().write(async (tx) => {
        await tx.insert(database().tables.phoneCheckBudgets).values({
          appId: app.id,
          phoneHash: indexHash(testKeys.phone, phone),
          refilledAt: now + failures * 3_600_000,
          consecutiveFailures: failures,
          lockedUntil,
        })
      })
    await insertBudget(live, 3, null)
    await insertBudget(second, 24, now + dayMs)
    await move()
    const check = async (as: TestApplication) => {
      const { requestId } = await otp.sendOrThrow(as, { phone })
      return (await otp.verifyRightCode(as, requestId)).status
    }
    for (const as of [live, second]) expect(await check(as)).toBe(429)
    expect(await database().read.select().from(database().tables.phoneCheckBudgets)).toEqual([])
    for (const as of [live, second]) expect(await check(as)).toBe(429)
    await insertBudget(live, 25, now + dayMs)
    const needs = { ...service, newId: service.services.newId, keys: testKeys }
    expect(await unlock(needs, phone)).toMatchObject({ checkBudgets: 2 })
    expect(await check(live)).toBe(200)
  })
})
