import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { hourMs, minuteMs } from '../../src/shared/durations.ts'
import type { CarrierMode, CarrierServer } from '../helpers/carriers/carrier-server.ts'
import { startAwsNotify } from '../helpers/carriers/aws-notify-server.ts'
import { startTelnyxVerify, verifyProfileId } from '../helpers/carriers/telnyx-verify-server.ts'
import { startTwilioVerify, verifyServiceSid } from '../helpers/carriers/twilio-verify-server.ts'
import { openTestSqlite } from '../helpers/databases.ts'
import { unlimitedPlans } from '../helpers/plans.ts'
import { pick, seededRandom } from '../helpers/seeded-random.ts'
import { createTestService } from '../helpers/service.ts'

setDefaultTimeout(60_000)

const twilio = startTwilioVerify()
const telnyx = startTelnyxVerify()
const aws = startAwsNotify()
const carriers: CarrierServer[] = [twilio, telnyx, aws]
afterAll(() => Promise.all(carriers.map((carrier) => carrier.stop())))

/** Reads what each carrier heard of a message. */
const heard = (messageId: string) =>
  twilio.verifications.get(messageId)?.status ?? telnyx.outcomes.get(messageId) ?? aws.feedback.get(messageId)

const expectedWords: Record<string, readonly string[]> = {
  verified: ['approved', 'accepted', 'RECEIVED'],
  canceled: ['canceled', 'rejected', 'FAILED'],
  expired: ['canceled', 'rejected', 'FAILED'],
  failed: ['canceled', 'rejected', 'FAILED'],
}

test('every outcome reaches its carrier while carriers fail for hours and the server restarts', async () => {
  const random = seededRandom(20_261_126)
  const delivery = {
    providers: [
      {
        name: 'twilio',
        kind: 'twilio-verify',
        values: {
          accountSid: `AC${'0'.repeat(32)}`,
          authToken: 't',
          serviceSid: verifyServiceSid,
          baseUrl: twilio.url,
        },
      },
      {
        name: 'telnyx',
        kind: 'telnyx-verify',
        values: { apiKey: 'KEY123', verifyProfileId, baseUrl: telnyx.url },
      },
      {
        name: 'aws',
        kind: 'aws-notify',
        values: {
          region: 'eu-central-1',
          accessKeyId: 'AKIDEXAMPLE0123456',
          secretAccessKey: 's',
          notifyConfigurationId: 'nc-1',
          templates: 'en = code-001',
          baseUrl: aws.url,
        },
      },
    ],
    routes: ['+3161', '+3168', '+49'].map((prefix, index) => ({
      channel: 'sms' as const,
      countries: [],
      applications: [],
      prefixes: [prefix],
      providers: [['twilio'], ['telnyx'], ['aws']][index] ?? [],
    })),
  }
  const { database, dispose } = await openTestSqlite()
  const start = () =>
    createTestService({ plans: unlimitedPlans, database, delivery, messaging: { pollMs: 3_600_000 } })
  let service = await start()
  const application = await service.createApplication(await service.createDeveloper())
  const call = (path: string, body: object) =>
    service.request<{ requestId: string }>('POST', path, { as: application, body })

  const sent: Array<{ messageId: string; outcome: string }> = []
  const modes: readonly CarrierMode[] = ['accept', 'unauthorized', 'throttle']
  for (let number = 0; number < 60; number++) {
    for (const carrier of carriers) carrier.setMode('accept')
    const index = number % 3
    const phone = [`+3161234${5000 + number}`, `+3168234${5000 + number}`, `+49151234${56_000 + number}`][
      index
    ]
    const carrier = [twilio, telnyx, aws][index]
    const before = carrier?.messages.length ?? 0
    const { status, data } = await call('/v1/otp/send', { phone })
    expect(status).toBe(201)
    const message = carrier?.messages[before]
    if (!message) throw new Error('the carrier has no message')
    // From now on each carrier works, refuses the credentials or throttles.
    for (const one of carriers) one.setMode(pick(modes, random))
    const outcome = pick(['verified', 'canceled', 'expired', 'failed'], random)
    if (outcome === 'verified')
      await call('/v1/otp/verify', { requestId: data.requestId, code: message.code })
    if (outcome === 'canceled') await call('/v1/otp/cancel', { requestId: data.requestId })
    const wrong = message.code === '000000' ? '111111' : '000000'
    const wrongCodes = outcome === 'failed' ? 5 : 0
    for (let attempt = 0; attempt < wrongCodes; attempt++)
      await call('/v1/otp/verify', { requestId: data.requestId, code: wrong })
    sent.push({ messageId: message.messageId, outcome })
    if (number % 10 === 9) {
      // The process loses what it holds in memory.
      const now = service.clock.now()
      await service.dispose()
      service = await start()
      service.clock.advance(now - service.clock.now())
    }
    if (number % 4 === 3) service.clock.advance(minuteMs)
    await service.services.messaging.reportDue()
  }
  // The carriers recover one after the other, within a day.
  for (const carrier of carriers) {
    for (let hours = 0; hours < 3; hours++) {
      service.clock.advance(hourMs)
      await service.services.messaging.reportDue()
    }
    carrier.setMode('accept')
  }
  for (let hours = 0; hours < 4; hours++) {
    service.clock.advance(hourMs)
    await service.services.messaging.reportDue()
  }
  const lost = sent.filter(
    ({ messageId, outcome }) => !expectedWords[outcome]?.includes(heard(messageId) ?? ''),
  )
  expect(lost).toEqual([])
  await service.dispose()
  await dispose()
})
