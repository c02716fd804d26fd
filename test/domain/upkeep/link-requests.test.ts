import { afterAll, beforeAll, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { createLinkBackfill } from '../../../src/domain/upkeep/link-requests.ts'
import { createStore } from '../../../src/store/store.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { testKeys } from '../../helpers/keys.ts'
import {
  createOtpClient,
  guardOffEnv,
  type OtpClient,
  type OtpRequestData,
} from '../../helpers/otp-client.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import { createTestService, type TestDeveloper, type TestService } from '../../helpers/service.ts'

describeEachDatabase('requests of 0.1.0', (database) => {
  let service: TestService
  let otp: OtpClient
  let ada: TestDeveloper
  beforeAll(async () => {
    service = await createTestService({ database: database(), plans: unlimitedPlans, env: guardOffEnv })
    otp = createOtpClient(service)
    ada = await service.createDeveloper()
  })
  afterAll(() => service.dispose())

  /** Makes a request look as 0.1.0 wrote it: in plain text, and without links. */
  const makeOld = (id: string, phone: string) =>
    database().write(async (tx) => {
      const { otpRequests } = database().tables
      await tx.update(otpRequests).set({ phone, previousRequest: null }).where(eq(otpRequests.id, id))
    })
  /** Forgets the phone's record, as a number that 0.1.0 sent to had none. */
  const forget = async (ids: readonly string[]) =>
    database().write(async (tx) => {
      const { phones } = database().tables
      for (const id of ids)
        await tx.update(phones).set({ newestRequest: null }).where(eq(phones.newestRequest, id))
    })
  const search = async (phone: string) => {
    const path = `/v1/otp?limit=200&phone=${encodeURIComponent(phone)}`
    const { data } = await service.request<OtpRequestData[]>('GET', path, { as: ada })
    return data.map(({ id }) => id)
  }
  const runBackfill = async (limit: number, steps = Infinity, from = '') => {
    const store = createStore(database(), { keys: testKeys })
    const backfill = createLinkBackfill(testKeys)
    let position: string | undefined = from
    for (let step = 0; position !== undefined && step < steps; step++) {
      const at: string = position
      position = await store.write((tx) => backfill.step(tx, at, limit))
    }
    return position
  }

  test('are found by phone once the backfill was there, newest first, with those sent since', async () => {
    const app = await service.createApplication(ada)
    const phones = ['+31612345601', '+31612345602', '+31612345603']
    const old: Record<string, string[]> = {}
    for (let n = 0; n < 9; n++) {
      service.clock.advance(1000)
      const phone = phones[n % 3] ?? ''
      const { requestId: id } = await otp.sendOrThrow(app, { phone })
      old[phone] = [id, ...(old[phone] ?? [])]
    }
    for (const [phone, ids] of Object.entries(old)) {
      await forget(ids)
      for (const id of ids) await makeOld(id, phone)
    }
    for (const phone of phones) expect(await search(phone)).toEqual([])
    // One number gets a code before the backfill, one while it runs, and one never again.
    const [before = '', during = '', never = ''] = phones
    service.clock.advance(1000)
    const { requestId: first } = await otp.sendOrThrow(app, { phone: before })
    const position = await runBackfill(2, 2)
    service.clock.advance(1000)
    const { requestId: second } = await otp.sendOrThrow(app, { phone: during })
    expect(await runBackfill(2, Infinity, position)).toBeUndefined()
    expect(await search(before)).toEqual([first, ...(old[before] ?? [])])
    expect(await search(during)).toEqual([second, ...(old[during] ?? [])])
    expect(await search(never)).toEqual(old[never] ?? [])
    // A backfill that is repeated, after its position was lost, changes nothing.
    await runBackfill(3)
    expect(await search(during)).toEqual([second, ...(old[during] ?? [])])
    expect(await search(before)).toEqual([first, ...(old[before] ?? [])])
  })
})
