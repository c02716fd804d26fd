import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { createDeliveryService } from '../../../src/delivery/delivery-service.ts'
import type { DeliveryJob, Dispatched } from '../../../src/domain/model/delivery.ts'
import { createTwilioSettings, startGateway } from '../../delivery/gateway.ts'
import { testClock } from '../clock.ts'
import type { CarrierServer } from './carrier-server.ts'

type CarrierCase = {
  kind: string
  server: CarrierServer
  settings: Record<string, string>
  /** Failure classes of the carrier's refusals. */
  failures: { refuse: string; throttle: string; unauthorized: string }
  /** Whether its fraud filter answers at once; otherwise it only reports a blocked message later. */
  blocksAtOnce: boolean
}

/**
 * Defines the tests that every carrier with its own text must pass, through the real routing and dispatcher, with a second
 * provider behind it.
 */
export function describeCarrier({ kind, server, settings, failures, blocksAtOnce }: CarrierCase) {
  describe(`${kind} with a provider behind it`, () => {
    const spare = startGateway()
    afterAll(() => spare.stop())
    beforeEach(() => {
      server.setMode('accept')
      server.messages.splice(0)
      spare.messages.splice(0)
    })

    /** Dispatches once with fresh circuits. */
    async function dispatch(changes: { code?: string; failoverOnBlock?: boolean; dispatchMs?: number } = {}) {
      const { code = '482913', failoverOnBlock = false, dispatchMs = 30_000 } = changes
      const lines: string[] = []
      const service = createDeliveryService({
        clock: testClock(),
        version: 'test',
        dispatchMs,
        callbackUrl: () => null,
        report: (_level, text, fields) => void lines.push(`${text} ${JSON.stringify(fields)}`),
        onReceipt() {},
        onCircuitChange() {},
      })
      const values = { ...settings, baseUrl: server.url }
      await service.configure({
        providers: [
          { name: 'carrier', kind, values, failoverOnBlock },
          createTwilioSettings('spare', spare.url),
        ],
        routes: [
          { channel: 'sms', countries: [], prefixes: [], applications: [], providers: ['carrier', 'spare'] },
        ],
      })
      const result = await service.delivery.dispatch({ ...job, code })
      await service.close(0)
      // The operator's log holds neither codes nor phones.
      expect(lines.join('\n')).not.toContain(code)
      expect(lines.join('\n')).not.toContain(job.request.phone)
      return result
    }
    const classes = ({ tries }: Dispatched) => tries.map(({ provider, error }) => `${provider} ${error}`)
    const carriedCodes = () => server.messages.map(({ to, code }) => `${to} ${code}`)

    test('the carrier sends the code that otpd made', async () => {
      const result = await dispatch()
      expect(result.kind).toBe('accepted')
      expect(carriedCodes()).toEqual(['+31612345678 482913'])
      expect(spare.messages).toEqual([])
    })

    test.each([
      ['the same', '482913'],
      ['another', '117206'],
    ])('a resend with %s code sends that code', async (_, code) => {
      await dispatch()
      const result = await dispatch({ code })
      expect(result.kind).toBe('accepted')
      expect(carriedCodes()).toEqual(['+31612345678 482913', `+31612345678 ${code}`])
    })

    test.each([['refuse'], ['throttle'], ['unauthorized']] as const)(
      'the other provider sends what the carrier answers with %s',
      async (mode) => {
        server.setMode(mode)
        const result = await dispatch()
        expect(classes(result)).toEqual([`carrier ${failures[mode]}`, 'spare null'])
        expect(result).toMatchObject({ kind: 'accepted', candidate: { provider: 'spare' } })
        expect(spare.messages).toHaveLength(1)
        expect(server.messages).toEqual([])
      },
    )

    test('no other provider sends what may be on its way', async () => {
      server.setMode('hang')
      const result = await dispatch({ dispatchMs: 300 })
      expect(classes(result)).toEqual(['carrier uncertain'])
      expect(result.kind).toBe('uncertain')
      expect(spare.messages).toEqual([])
    })

    if (!blocksAtOnce) return
    test('no other provider sends what the fraud filter blocked, unless the operator wants it', async () => {
      server.setMode('block')
      const result = await dispatch()
      expect(result).toMatchObject({ kind: 'refused', failure: { class: 'blocked_by_carrier' } })
      expect(spare.messages).toEqual([])
      expect(await dispatch({ failoverOnBlock: true })).toMatchObject({ kind: 'accepted' })
      expect(spare.messages).toHaveLength(1)
      expect(server.messages).toEqual([])
    })
  })
}

const job: DeliveryJob = {
  request: {
    id: 'otp_01jd3m2k5xe8r9s0t1v2w3x4y5',
    developerId: 'dev_01jd3m2k5xe8r9s0t1v2w3x4y5',
    appId: 'app_01jd3m2k5xe8r9s0t1v2w3x4y5',
    environment: 'live',
    phone: '+31612345678',
    country: 'NL',
    locale: 'nl',
    ownText: null,
    template: null,
    expiresAt: testClock().now() + 300_000,
  },
  code: '482913',
  application: { name: 'Acme', defaultLocale: null, webOtpDomain: null, androidAppHash: null },
  channels: ['sms'],
  messageNumber: 0,
  attempt: 1,
  excluded: [],
}
