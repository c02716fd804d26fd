import { expect, test } from 'bun:test'
import { unlimitedPlans } from '../../helpers/plans.ts'
import { createTestService } from '../../helpers/service.ts'

test.each([
  ['enforce', 'live', {}, true],
  ['enforce', 'live', { clientIp: '198.51.100.7' }, false],
  ['enforce', 'live', { deviceId: 'phone' }, false],
  ['enforce', 'test', {}, false],
  ['monitor', 'live', {}, false],
] as const)('in mode %s, a %s send with %p has a hint: %p', async (mode, environment, told, isHinted) => {
  const env = { OTPD_GUARD_MODE: mode, OTPD_GUARD_DENIED_COUNTRIES: 'FR' }
  const service = await createTestService({ plans: unlimitedPlans, env })
  const as = await service.createApplication(await service.createDeveloper(), { environment })
  const send = async (phone: string) => {
    const body = { phone, ...told }
    const { status, headers } = await service.request('POST', '/v1/otp/send', { as, body })
    return { status, hint: headers.get('otpd-hint') }
  }
  const hint = isHinted ? expect.stringContaining('clientIp') : null
  expect(await send('+31612345678')).toEqual({ status: 201, hint })
  if (mode === 'enforce' && environment === 'live')
    expect(await send('+33612345678')).toEqual({ status: 403, hint })
  await service.dispose()
})
