import { afterEach, beforeEach, expect, test } from 'bun:test'
import { defineKind } from '../../src/delivery/kit/provider-kinds.ts'
import { accepted } from '../../src/delivery/kit/provider.ts'
import { unavailable } from '../../src/store/engine/errors.ts'
import { describeEachDatabase } from '../helpers/databases.ts'
import { unlimitedPlans } from '../helpers/plans.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../helpers/service.ts'

const leaseMs = 20_000

describeEachDatabase('an outcome that the database does not take', (database) => {
  /** Fault of the database from the moment when a provider gets a message: `next`. */
  let fault: 'refuses' | 'loses answers' | undefined
  let next: typeof fault
  let codes: string[]
  let service: TestService
  let developer: TestDeveloper
  let application: TestApplication

  const kind = defineKind({
    kind: 'faulty',
    title: 'Faulty',
    channels: ['sms'],
    fields: {},
    create: () => ({
      channels: ['sms'],
      async send({ code }) {
        codes.push(code)
        fault = next
        return accepted(`id-${codes.length}`)
      },
    }),
  })

  beforeEach(async () => {
    fault = undefined
    codes = []
    const real = database()
    service = await createTestService({
      plans: unlimitedPlans,
      database: {
        ...real,
        group(bind) {
          const run = real.group(bind)
          return async <R>(call: Parameters<typeof run>[0]): Promise<R> => {
            if (fault === 'refuses') throw unavailable('TEST')
            const result = await run<R>(call)
            if (fault === 'loses answers') throw unavailable('TEST')
            return result
          }
        },
      },
      env: { OTPD_GUARD_MODE: 'off' },
      messaging: { kinds: [kind], pollMs: 3_600_000 },
      delivery: { providers: [{ name: 'main', kind: 'faulty', values: {} }], routes: [] },
    })
    developer = await service.createDeveloper()
    application = await service.createApplication(developer)
  })
  afterEach(() => service.dispose())

  const headers = { 'idempotency-key': 'one' }
  const send = async () => {
    const body = { phone: '+31612345678' }
    return service.request<{ requestId: string }>('POST', '/v1/otp/send', { as: application, body, headers })
  }
  async function readOutcome(requestId: string) {
    const request = await service.store.read.otpRequests.find(requestId)
    const { data } = await service.request<Array<{ type: string; outcome?: string }>>(
      'GET',
      `/v1/otp/${requestId}/events`,
      { as: developer },
    )
    const breakdown = await service.request<Array<{ sent: number }>>(
      'GET',
      '/v1/analytics/breakdown?by=provider',
      { as: developer },
    )
    return {
      status: request?.deliveryStatus,
      attempts: data.filter(({ type }) => type === 'delivery.attempted').length,
      sent: breakdown.data.reduce((sum, row) => sum + row.sent, 0),
    }
  }
  const stored = { status: 'sent', attempts: 1, sent: 1 } as const

  test.each(['refuses', 'loses answers'] as const)(
    'is stored later, and the code is sent once: it %s',
    async (how) => {
      next = how
      const { status, data } = await send()
      expect(status).toBe(201)
      fault = undefined
      await service.services.messaging.sendDue()
      expect(await readOutcome(data.requestId)).toEqual(stored)
      expect((await send()).data.requestId).toBe(data.requestId)
      service.clock.advance(leaseMs + 1)
      await service.services.messaging.sendDue()
      expect(codes).toHaveLength(1)
      expect(await readOutcome(data.requestId)).toEqual(stored)
    },
  )

  test('is counted after the lease has run out, as is that of the next attempt', async () => {
    next = 'refuses'
    const { data } = await send()
    service.clock.advance(leaseMs + 1)
    await service.services.messaging.sendDue()
    fault = undefined
    await service.services.messaging.sendDue()
    const [code = ''] = codes
    expect(codes).toEqual([code, code])
    expect(await readOutcome(data.requestId)).toEqual({ ...stored, attempts: 2, sent: 2 })
  })

  test('is stored by the stop of the server', async () => {
    next = 'refuses'
    const { data } = await send()
    fault = undefined
    await service.services.messaging.stop(1_000)
    expect(await readOutcome(data.requestId)).toEqual(stored)
  })
})
