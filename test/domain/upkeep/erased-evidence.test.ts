import { expect, test } from 'bun:test'
import { erasePhone } from '../../../src/domain/upkeep/erasure.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { testKeys } from '../../helpers/keys.ts'
import { createOtpClient } from '../../helpers/otp-client.ts'
import { createTestService } from '../../helpers/service.ts'

describeEachDatabase('an erasure', (database) => {
  test('takes the evidence of its phone from the guard: erased and verified again, it is one phone', async () => {
    const env = { OTPD_GUARD_MODE: 'enforce' }
    const guarded = await createTestService({ database: database(), env })
    const calls = createOtpClient(guarded)
    const owner = await guarded.createDeveloper()
    const as = await guarded.createApplication(owner)
    const verify = async (phone: string) => {
      const { requestId } = await calls.sendOrThrow(as, { phone, clientIp: '203.0.113.7', deviceId: phone })
      expect((await calls.verifyRightCode(as, requestId)).status).toBe(200)
    }
    const readAllowances = async () =>
      (await guarded.request<{ allowances: unknown[] }>('GET', '/v1/guard', { as: owner })).data.allowances
    await verify('+14155550391')
    for (let time = 0; time < 3; time++) {
      await verify('+14155550390')
      expect(await readAllowances()).toMatchObject([{ verifiedPhones: 2 }])
      await erasePhone({ ...guarded, newId: guarded.services.newId, keys: testKeys }, '+14155550390')
      expect(await readAllowances()).toMatchObject([{ verifiedPhones: 1 }])
    }
    await guarded.dispose()
  })
})
