import { afterAll, beforeAll, expect, spyOn, test } from 'bun:test'
import { unavailable } from '../../src/store/engine/errors.ts'
import { unlimitedPlan } from '../helpers/plans.ts'
import { createTestService, type TestApplication, type TestService } from '../helpers/service.ts'

let service: TestService
const applications = new Map<string, TestApplication>()

beforeAll(async () => {
  service = await createTestService({
    plans: { free: { ...unlimitedPlan, sendPerMinute: 40 }, paid: unlimitedPlan },
    env: { OTPD_PHONE_SEND_BUDGET: 'off' },
  })
  for (const plan of ['free', 'paid'])
    applications.set(plan, await service.createApplication(await service.createDeveloper(plan)))
})
afterAll(() => service.dispose())

const send = (plan: string, key: string) =>
  service.request('POST', '/v1/otp/send', {
    as: applications.get(plan) ?? { headers: {} },
    body: { phone: '+31612345678' },
    headers: { 'idempotency-key': key },
  })

test('a call that succeeded is not refused because its rate limit cannot be read', async () => {
  const peek = spyOn(service.services.otp, 'peekRate').mockRejectedValue(unavailable('TEST'))
  for (const plan of ['free', 'paid']) {
    const [first, repeated] = [await send(plan, 'one'), await send(plan, 'one')]
    expect([first.status, repeated.status]).toEqual([201, 201])
    expect(repeated.headers.get('idempotency-replayed')).toBe('true')
    expect(repeated.headers.get('ratelimit')).toBeNull()
  }
  // Only for the calls that were repeated: the others know their limit, or that there is none.
  expect(peek).toHaveBeenCalledTimes(2)
  peek.mockRestore()
  expect((await send('free', 'one')).headers.get('ratelimit')).toMatch(/^"otp-send";r=39;t=\d+$/)
  expect((await send('paid', 'one')).headers.get('ratelimit')).toBeNull()
})
