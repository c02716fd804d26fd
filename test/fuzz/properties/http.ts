import { expect } from 'bun:test'
import * as fc from 'fast-check'
import { createApiTester } from '../../helpers/api-tester.ts'
import { guardOffEnv, createOtpClient } from '../../helpers/otp-client.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import { createTestService } from '../../helpers/service.ts'
import { defineProperty } from '../property.ts'

const dayMs = 24 * 3_600_000
const keyStep = fc.record({
  key: fc.constantFrom('a', 'b', '"a"'),
  phone: fc.constantFrom('+14155552671', '+14155552672'),
  gapMs: fc.constantFrom(0, 0, 1, 3_600_000, dayMs - 1, dayMs),
})

export const httpProperties = [
  defineProperty('a forged cursor is 400 in every list', 200, async () => {
    const apiTester = await createApiTester()
    const lists = apiTester.operations.filter(({ parameters = [] }) =>
      parameters.some(({ name }) => name === 'cursor'),
    )
    const forged = fc.oneof(
      fc.string({ unit: 'binary', minLength: 1, maxLength: 100 }),
      fc.base64String({ minLength: 1 }),
      // The form of 0.1.
      fc
        .constantFrom('1', '17', `prj_${'0'.repeat(26)}`)
        .map((position) => Buffer.from(`1:${position}`).toString('base64url')),
    )
    const property = fc.asyncProperty(fc.constantFrom(...lists), forged, async (operation, cursor) => {
      const { response, faults } = await apiTester.callAndCheck(operation, {
        query: `?cursor=${encodeURIComponent(cursor)}`,
      })
      expect({ faults, status: response.status }).toEqual({ faults: [], status: 400 })
    })
    return { property, close: () => apiTester.service.dispose() }
  }),

  defineProperty(
    'an idempotency key replays its first response for a day, and refuses a different body',
    100,
    async () => {
      const service = await createTestService({ plans: unlimitedPlans, env: guardOffEnv })
      const otp = createOtpClient(service)
      const developer = await service.createDeveloper()
      const application = await service.createApplication(developer)
      let rounds = 0
      const property = fc.asyncProperty(fc.array(keyStep, { minLength: 1, maxLength: 12 }), async (steps) => {
        const round = rounds++
        const savedKeys = new Map<string, { phone: string; requestId: string; until: number }>()
        for (const { key, phone, gapMs } of steps) {
          service.clock.advance(gapMs)
          const now = service.clock.now()
          const header = key.startsWith('"') ? `"${round}${key.slice(1)}` : `${round}${key}`
          const response = await otp.send(application, { phone }, { 'idempotency-key': header })
          const unquoted = header.replaceAll('"', '')
          const saved = savedKeys.get(unquoted)
          if (!saved || now >= saved.until) {
            expect([response.status, response.headers.has('idempotency-replayed')]).toEqual([201, false])
            expect(
              [...savedKeys.values()].some(({ requestId }) => requestId === response.data.requestId),
            ).toBe(false)
            savedKeys.set(unquoted, { phone, requestId: response.data.requestId, until: now + dayMs })
          } else if (saved.phone === phone) {
            expect([response.status, response.data.requestId]).toEqual([201, saved.requestId])
            expect(response.headers.get('idempotency-replayed')).toBe('true')
          } else expect([response.status, response.error.code]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED'])
        }
      })
      return { property, close: () => service.dispose() }
    },
  ),
]
