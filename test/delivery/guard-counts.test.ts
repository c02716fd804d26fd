import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createOtpClient, countByOutcome, type OtpClient } from '../helpers/otp-client.ts'
import { unlimitedPlans } from '../helpers/plans.ts'
import { createTestService, type TestApplication, type TestService } from '../helpers/service.ts'
import { buildReceipt, createTwilioSettings, startGateway, type Gateway } from './gateway.ts'

let main: Gateway
let spare: Gateway
let service: TestService
let otp: OtpClient
let application: TestApplication

beforeEach(async () => {
  main = startGateway()
  spare = startGateway()
  service = await createTestService({
    plans: unlimitedPlans,
    env: { OTPD_GUARD_MODE: 'enforce', OTPD_PHONE_SEND_BUDGET: 'off' },
    delivery: {
      providers: [createTwilioSettings('main', main.url), createTwilioSettings('spare', spare.url)],
      routes: [],
    },
    messaging: { dispatchMs: 2_000, pollMs: 3_600_000 },
  })
  otp = createOtpClient(service)
  application = await service.createApplication(await service.createDeveloper())
})
afterEach(async () => {
  await service.dispose()
  await main.stop()
  await spare.stop()
})

/** Reports the newest message of the first provider as not delivered, and makes the attempt at the next one. */
async function failOver() {
  const message = main.messages.at(-1)
  if (!message) throw new Error('there is no message')
  const { url, method, headers, body } = buildReceipt(message, 'undelivered', 30003)
  const { pathname, search } = new URL(url)
  expect((await service.request(method, pathname + search, { headers, body })).status).toBe(200)
  await service.services.messaging.sendDue()
}

test.each([
  ['takes it', false],
  ['refuses it', true],
])(
  'a message that fails over is judged, and counts, as a further one, also if the next provider %s',
  async (_, refuses) => {
    if (refuses) spare.refuseAll(400, 21211)
    const responses = []
    for (let n = 0; n < 8; n++) {
      responses.push(await otp.send(application, { phone: `+3161234${1000 + n}`, deviceId: 'one' }))
      if (responses.at(-1)?.status === 201) await failOver()
    }
    // Five messages of a device may leave: the third request keeps its first one.
    expect([main.messages.length, spare.messages.length]).toEqual([3, refuses ? 0 : 2])
    expect(countByOutcome(responses)).toEqual({ '201': 3, '403 DESTINATION_BLOCKED': 5 })
  },
)
