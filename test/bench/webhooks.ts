import { join } from 'node:path'
import { withServer, type BenchCase } from './bench-case.ts'
import { startServer } from './machine.ts'
import { call, startOtpd, type Otpd } from './otpd.ts'
import { measureFlow, startMeter, type Sample } from './service.ts'

/** Creates an endpoint for each application, subscribed to each send and each verification. */
async function subscribe({ port, developers }: Otpd, receiverPort: number): Promise<void> {
  for (const { headers, applications } of developers) {
    for (const { id } of applications) {
      await call(`http://127.0.0.1:${port}/v1/webhooks`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify({
          appId: id,
          url: `http://127.0.0.1:${receiverPort}/`,
          events: ['otp.sent', 'otp.verified'],
        }),
      })
    }
  }
}

/** Measures the delivery of the backlog, without other load. A delivery has no latency figure. */
async function measureDeliveries(otpd: Otpd, receiverPort: number, seconds: number): Promise<Sample> {
  const count = () => call<number>(`http://127.0.0.1:${receiverPort}/count`)
  const before = await count()
  const startedAt = performance.now()
  const readCost = startMeter(otpd)
  await Bun.sleep(seconds * 1000)
  const delivered = (await count()) - before
  const requestsPerSecond = delivered / ((performance.now() - startedAt) / 1000)
  return { responses: delivered, requestsPerSecond, p50Ms: NaN, p99Ms: NaN, ...readCost(delivered) }
}

/** The receiver is a separate process on the core of the load, so the load has less CPU there. */
export const webhooks: BenchCase = {
  rows: {
    'webhook-send': 'otpd with webhooks: send',
    'webhook-verify': 'otpd with webhooks: verify',
    'webhook-delivery': 'otpd: deliveries of waiting webhooks',
  },
  run: async (context) =>
    withServer(
      await startServer([process.execPath, join(import.meta.dir, 'servers/receiver.ts')], { core: 1 }),
      async (receiver) => {
        const env = { OTPD_WEBHOOK_ALLOW: '127.0.0.1' }
        return withServer(await startOtpd(context, { env }), async (otpd) => {
          await subscribe(otpd, receiver.port)
          const { send, verify } = await measureFlow(otpd, context.loadSettings, true)
          const delivery = await measureDeliveries(otpd, receiver.port, context.loadSettings.seconds)
          return {
            'webhook-send': send,
            ...(verify && { 'webhook-verify': verify }),
            'webhook-delivery': delivery,
          }
        })
      },
    ),
}
