import { join } from 'node:path'
import { withServer, type BenchCase } from './bench-case.ts'
import { startServer } from './machine.ts'
import { call, startOtpd, type Otpd } from './otpd.ts'
import { measureFlow } from './service.ts'

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

/** The receiver is a separate process on the core of the load, so the load has less CPU there. */
export const webhooks: BenchCase = {
  rows: {
    'webhook-send': 'otpd with webhooks: send',
    'webhook-verify': 'otpd with webhooks: verify',
  },
  run: async (context) =>
    withServer(
      await startServer([process.execPath, join(import.meta.dir, 'servers/receiver.ts')], { core: 1 }),
      async (receiver) => {
        const env = { OTPD_WEBHOOK_ALLOW: '127.0.0.1' }
        return withServer(await startOtpd(context, { env }), async (otpd) => {
          await subscribe(otpd, receiver.port)
          const { send, verify } = await measureFlow(otpd, context.loadSettings, true)
          return {
            'webhook-send': send,
            ...(verify && { 'webhook-verify': verify }),
          }
        })
      },
    ),
}
