import { afterAll, describe, expect, test } from 'bun:test'
import { hashOwnedPhone } from '../../../src/domain/model/phone-record.ts'
import { createOtpTestService, guardOffEnv, createOtpClient } from '../../helpers/otp-client.ts'
import { testKeys } from '../../helpers/keys.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import { createTestService, type TestApplication } from '../../helpers/service.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const ownDevice = { deviceId: 'owner-device', clientIp: '203.0.113.5' }

// The send budget off: these attacks need many requests. It has tests of its own below.
const {
  service,
  otp,
  owner: developer,
  application: app,
} = await createOtpTestService({
  env: { ...guardOffEnv, OTPD_PHONE_SEND_BUDGET: 'off' },
})
afterAll(() => service.dispose())

let phones = 0
const newPhone = () => `+1415555${3000 + phones++}`

/** Sends codes and guesses wrong. @returns how often a guess was compared */
async function guess(as: TestApplication, body: object, times: number): Promise<number> {
  let compared = 0
  for (let done = 0; done < times; done += 5) {
    const sent = await otp.send(as, body)
    if (sent.status !== 201) return compared
    for (let i = 0; i < Math.min(5, times - done); i++) {
      const { status } = await otp.verifyWrongCode(as, sent.data.requestId)
      if (status === 400) compared++
    }
  }
  return compared
}

const verify = async (as: TestApplication, body: object, client = otp) =>
  (await client.verifyRightCode(as, (await client.sendOrThrow(as, body)).requestId)).status

describe("a stranger's wrong guesses", () => {
  test('leave the owner, whose context verified the phone before, all of the own attempts', async () => {
    const phone = newPhone()
    expect(await verify(app, { phone, ...ownDevice })).toBe(200)
    expect(await guess(app, { phone }, 30)).toBe(25)
    expect(await verify(app, { phone })).toBe(429)
    expect(await verify(app, { phone, deviceId: 'another' })).toBe(429)
    expect(await verify(app, { phone, deviceId: ownDevice.deviceId })).toBe(200)
    expect(await verify(app, { phone, clientIp: ownDevice.clientIp })).toBe(200)
  })

  test('by the phone spend the budget of strangers, if the checks tell who guesses', async () => {
    const phone = newPhone()
    expect(await verify(app, { phone, ...ownDevice })).toBe(200)
    const check = (body: object) => service.request('POST', '/v1/otp/verify', { as: app, body })
    for (let round = 0; round < 6; round++) {
      await otp.sendOrThrow(app, { phone, ...ownDevice })
      for (let i = 0; i < 5; i++)
        await check({ phone, code: '000000', clientIp: `198.51.100.${i}`, deviceId: 'guesser' })
    }
    const { status, error } = await check({ phone, code: '000000', clientIp: '198.51.100.9' })
    expect([status, error.reason]).toEqual([429, 'PHONE_CHECK_BUDGET'])
    const { requestId } = await otp.sendOrThrow(app, { phone, ...ownDevice })
    const code = await otp.getCode(requestId)
    expect((await check({ phone, code, ...ownDevice })).status).toBe(200)
  })

  test('behind the address of the owner spend the budget of the network, and never that of the device', async () => {
    const phone = newPhone()
    const { clientIp } = ownDevice
    expect(await verify(app, { phone, ...ownDevice })).toBe(200)
    expect(await guess(app, { phone, clientIp, deviceId: 'neighbor' }, 30)).toBe(25)
    expect(await verify(app, { phone, clientIp })).toBe(429)
    expect(await verify(app, { phone, ...ownDevice })).toBe(200)
    expect(await verify(app, { phone })).toBe(200)
  })

  test('once an hour for days do not keep the owner out', async () => {
    const phone = newPhone()
    expect(await verify(app, { phone, ...ownDevice })).toBe(200)
    await guess(app, { phone }, 25)
    for (let hour = 0; hour < 72; hour++) {
      service.clock.advance(hourMs)
      expect(await guess(app, { phone, clientIp: `198.51.100.${hour}` }, 1)).toBe(1)
      if (hour % 24 === 0) expect(await verify(app, { phone, ...ownDevice })).toBe(200)
    }
    expect(await verify(app, { phone })).toBe(429)
    expect(await verify(app, { phone, ...ownDevice })).toBe(200)
  })

  test('100 in a row stop strangers alone', async () => {
    const phone = newPhone()
    expect(await verify(app, { phone, ...ownDevice })).toBe(200)
    for (let i = 0; i < 100; i++) {
      expect(await guess(app, { phone }, 1)).toBe(1)
      service.clock.advance(hourMs)
    }
    const { requestId } = await otp.sendOrThrow(app, { phone })
    const refused = await otp.verifyRightCode(app, requestId)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, String(23 * 3600)])
    expect(await verify(app, { phone, ...ownDevice })).toBe(200)
  })

  test('get nothing more from another spelling or a second application', async () => {
    const second = await service.createApplication(developer)
    for (const [one, other] of [
      ['+5491123450001', '+541123450001'],
      ['+5511987650001', '+551187650001'],
    ] as const) {
      expect(await guess(app, { phone: one }, 15)).toBe(15)
      expect(await guess(second, { phone: other }, 15)).toBe(10)
      expect(await guess(second, { phone: one }, 5)).toBe(0)
      expect(await verify(app, { phone: other })).toBe(429)
    }
  })

  test('do not count for another developer', async () => {
    const phone = newPhone()
    await guess(app, { phone }, 25)
    const other = await service.createApplication(await service.createDeveloper())
    expect(await verify(other, { phone })).toBe(200)
  })

  test('are not limited in test applications and for virtual numbers', async () => {
    const testApp = await service.createApplication(developer, { environment: 'test' })
    const { virtualPhone } = developer.developer
    for (const [as, phone] of [
      [testApp, newPhone()],
      [app, virtualPhone],
    ] as const) {
      expect(await guess(as, { phone }, 30)).toBe(30)
      expect(await verify(as, { phone })).toBe(200)
    }
  })
})

describe('a context', () => {
  test('is known for 180 days after its last verification, and for its phone alone', async () => {
    const [phone, otherPhone] = [newPhone(), newPhone()]
    const sender = { deviceId: 'aging' }
    expect(await verify(app, { phone, ...sender })).toBe(200)
    service.clock.advance(180 * dayMs - 1)
    const startedBy = async (body: object) => {
      const { requestId } = await otp.sendOrThrow(app, body)
      return (await service.store.read.otpRequests.find(requestId))?.startedBy
    }
    expect(await startedBy({ phone, ...sender })).toBe('known')
    expect(await startedBy({ phone: otherPhone, ...sender })).toBe('stranger')
    service.clock.advance(1)
    expect(await startedBy({ phone, ...sender })).toBe('stranger')
  })

  test('makes way for newer ones: the record keeps eight', async () => {
    const phone = newPhone()
    for (let i = 1; i <= 9; i++) expect(await verify(app, { phone, deviceId: `device-${i}` })).toBe(200)
    const hash = hashOwnedPhone(testKeys, {
      developerId: developer.developer.id,
      environment: 'live',
      phone,
    })
    expect((await service.store.read.phones.find(hash))?.contexts).toHaveLength(8)
    await guess(app, { phone }, 25)
    expect(await verify(app, { phone, deviceId: 'device-1' })).toBe(429)
    expect(await verify(app, { phone, deviceId: 'device-2' })).toBe(200)
  })

  test('does not become known by a wrong code or by another code than its own', async () => {
    const phone = newPhone()
    await guess(app, { phone, deviceId: 'attacker' }, 25)
    expect(await verify(app, { phone, deviceId: 'attacker' })).toBe(429)
  })

  test('is stored as a keyed hash only', async () => {
    const phone = newPhone()
    const { requestId } = await otp.sendOrThrow(app, { phone, deviceId: 'visible-device-name' })
    const rows = []
    for (const table of Object.values(service.database.tables))
      rows.push(await service.database.read.select().from(table))
    expect(JSON.stringify(rows)).not.toContain('visible-device-name')
    expect((await service.store.read.otpRequests.find(requestId))?.contexts).toHaveLength(1)
  })
})

describe('deviceId', () => {
  test.each(['', 'x'.repeat(129), 'with space', 'tab\t', 'ünicode', 17, null])(
    '%p is refused',
    async (deviceId) => {
      const { status, error } = await otp.send(app, { deviceId })
      expect([status, error.code, error.details?.[0]?.path]).toEqual([400, 'INVALID_ARGUMENT', 'deviceId'])
    },
  )

  test.each(['x', 'x'.repeat(128), '!~{}"'])('%p is accepted', async (deviceId) => {
    expect((await otp.send(app, { phone: newPhone(), deviceId })).status).toBe(201)
  })
})

describe('the enforced send budget', () => {
  async function open() {
    const env = { ...guardOffEnv, OTPD_PHONE_SEND_BUDGET: 'enforce' }
    const strict = await createTestService({ plans: unlimitedPlans, env })
    const client = createOtpClient(strict)
    const owner = await strict.createDeveloper()
    const [one, other] = [await strict.createApplication(owner), await strict.createApplication(owner)]
    return { strict, client, owner, one, other }
  }

  test('has two budgets, so that a stranger cannot keep codes from the owner', async () => {
    const { strict, client, one, other } = await open()
    const phone = newPhone()
    expect(await verify(one, { phone, ...ownDevice }, client)).toBe(200)
    strict.clock.advance(dayMs)
    for (let i = 0; i < 5; i++) expect((await client.send(one, { phone })).status).toBe(201)
    const refused = await client.send(other, { phone })
    expect([refused.status, refused.error.reason]).toEqual([429, 'PHONE_SEND_BUDGET'])
    for (let i = 0; i < 5; i++) expect((await client.send(other, { phone, ...ownDevice })).status).toBe(201)
    expect((await client.send(one, { phone, ...ownDevice })).status).toBe(429)
    await strict.dispose()
  })

  test('counts all spellings and resends, of all applications of a developer', async () => {
    const { strict, client, one, other } = await open()
    const sent = await client.sendOrThrow(one, { phone: '+5491123450002' })
    strict.clock.advance(30_000)
    expect((await client.resend(one, sent.requestId)).status).toBe(200)
    for (let i = 0; i < 3; i++)
      expect((await client.send(other, { phone: '+541123450002' })).status).toBe(201)
    expect((await client.send(one, { phone: '+5491123450002' })).status).toBe(429)
    strict.clock.advance(30_000)
    expect((await client.resend(one, sent.requestId)).status).toBe(429)
    await strict.dispose()
  })

  test('does not exist in test applications and for virtual numbers', async () => {
    const { strict, client, owner, one } = await open()
    const testApp = await strict.createApplication(owner, { environment: 'test' })
    for (let i = 0; i < 8; i++) {
      expect((await client.send(testApp, { phone: '+14155552671' })).status).toBe(201)
      expect((await client.send(one, { phone: owner.developer.virtualPhone })).status).toBe(201)
    }
    await strict.dispose()
  })
})

test('an answer names the phone as it was sent, and the user as last verified', async () => {
  const [long, short] = ['+5491123450003', '+541123450003']
  const sent = await otp.sendOrThrow(app, { phone: short })
  expect(sent.phone).toBe(short)
  expect((await otp.verifyRightCode(app, sent.requestId)).data.phone).toBe(short)
  const user = async (phone: string) =>
    (
      await service.request<{ id: string; phone: string; verificationCount: number }>(
        'GET',
        `/v1/users/${encodeURIComponent(phone)}`,
        { as: developer },
      )
    ).data
  const first = await user(long)
  expect(first).toMatchObject({ phone: short, verificationCount: 1 })
  expect(await verify(app, { phone: long })).toBe(200)
  expect(await user(short)).toMatchObject({ id: first.id, phone: long, verificationCount: 2 })
})

test('the requests of a phone are a list, linked from the newest', async () => {
  const sent = []
  for (const phone of ['+5491123450004', '+541123450004', '+5491123450004'])
    sent.push((await otp.sendOrThrow(app, { phone })).requestId)
  const owned = {
    developerId: developer.developer.id,
    environment: 'live',
    phone: '+541123450004',
  } as const
  const { phones: records, otpRequests } = service.store.read
  const record = await records.find(hashOwnedPhone(testKeys, owned))
  const listed: string[] = []
  for (let id = record?.newestRequest ?? undefined; id !== undefined;) {
    listed.push(id)
    id = await otpRequests.findPrevious(id)
  }
  expect(listed).toEqual(sent.toReversed())
})
