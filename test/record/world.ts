import { defineKind } from '../../src/delivery/kit/provider-kinds.ts'
import { receiptResult } from '../../src/delivery/kit/callbacks.ts'
import { createFailure } from '../../src/delivery/kit/failures.ts'
import { accepted, refused, uncertain, type OutgoingMessage } from '../../src/delivery/kit/provider.ts'
import { callbackPath } from '../../src/domain/otp/callback-tokens.ts'
import type { Random } from '../../src/domain/model/random.ts'
import type { Database } from '../../src/store/engine/database.ts'
import { requestToken } from '../helpers/camara-token.ts'
import { testKeys } from '../helpers/keys.ts'
import { unlimitedPlan } from '../helpers/plans.ts'
import { createTestService, type TestApplication, type TestDeveloper } from '../helpers/service.ts'

/** A developer with a live and a test application, and a webhook endpoint on each. */
export type Shop = { owner: TestDeveloper; applications: readonly ShopApplication[]; webhookIds: string[] }
export type ShopApplication = TestApplication & { environment: 'live' | 'test' }

export type World = Awaited<ReturnType<typeof openWorld>>

/** Providers of the live applications. What they do follows from the last digit of the number. */
const providerNames = ['main', 'spare'] as const

/**
 * Creates the application with two shops, on a clock and random bytes that repeat.
 *
 * @param random numbers in [0, 1), the same in each run
 */
export async function openWorld(database: Database, random: () => number) {
  const sent: Array<OutgoingMessage & { provider: string }> = []
  const errors: unknown[] = []
  const fill: Random = (bytes) => {
    for (let index = 0; index < bytes.length; index++) bytes[index] = Math.floor(random() * 256)
  }
  const service = await createTestService({
    database,
    random: fill,
    plans: { free: { ...unlimitedPlan, sendPerMinute: 40, verifyPerMinute: 60 }, paid: unlimitedPlan },
    env: {
      OTPD_COMPAT: 'twilio-verify,camara',
      OTPD_GUARD_MODE: 'enforce',
      OTPD_GUARD_DENIED_COUNTRIES: 'CN',
      OTPD_WEBHOOK_ALLOW: '127.0.0.1',
    },
    report: (level, text, fields) =>
      void (level === 'error' && errors.push(fields['error'] ?? new Error(text))),
    messaging: { kinds: [recordedKind(sent)], pollMs: 3_600_000 },
    delivery: {
      providers: providerNames.map((name) => ({ name, kind: 'recorded', values: { name } })),
      routes: [],
    },
  })
  const shops = [await createShop('free'), await createShop('paid')]

  async function createShop(plan: string): Promise<Shop> {
    const owner = await service.createDeveloper(plan)
    const applications: ShopApplication[] = []
    const webhookIds: string[] = []
    for (const environment of ['live', 'test'] as const) {
      const application = await service.createApplication(owner, { environment, name: environment })
      applications.push({ ...application, environment })
      const { data } = await service.request<{ id: string }>('POST', '/v1/webhooks', {
        as: owner,
        body: { appId: application.id, url: 'http://127.0.0.1:9/hook', events: ['*'] },
      })
      webhookIds.push(data.id)
    }
    return { owner, applications, webhookIds }
  }

  return {
    service,
    shops,
    /** Errors that the service has logged, such as an outcome that the database did not take. */
    errors,
    /** Returns the messages that providers got since the last time. The worker may send several at once. */
    takeSent: () => sent.splice(0).toSorted((a, b) => (a.requestId < b.requestId ? -1 : 1)),
    camaraToken: (application: TestApplication) => requestToken(service, application),
    callbackPath: (provider: string) => callbackPath(testKeys, provider),
    dispose: () => service.dispose(),
  }
}

/**
 * A provider that leaves the machine nowhere: it takes all messages but those for numbers that end in 7 (invalid), 8 (it
 * refuses them as `main`) and 9 (it gives no answer as `main`).
 */
const recordedKind = (sent: Array<OutgoingMessage & { provider: string }>) =>
  defineKind({
    kind: 'recorded',
    title: 'Recorded',
    channels: ['sms', 'voice'],
    fields: { name: { description: 'its name', required: true } },
    create: ({ name = '' }) => ({
      channels: ['sms', 'voice'],
      send(message) {
        sent.push({ ...message, provider: name })
        const digit = message.to.at(-1)
        if (digit === '7') return Promise.resolve(refused(createFailure('invalid_number', '21211')))
        if (digit === '8' && name === 'main')
          return Promise.resolve(refused(createFailure('geo_blocked', '21408')))
        if (digit === '9' && name === 'main') return Promise.resolve(uncertain('TIMEOUT'))
        return Promise.resolve(accepted(`${name}-${message.requestId}-${sent.length}`))
      },
      readCallback({ body }) {
        const [messageId = '', status] = body.split(' ')
        const failure = status === 'undelivered' ? createFailure('unreachable', '30003') : null
        return receiptResult(
          { messageId, requestId: null },
          status === 'undelivered' || status === 'sent' ? status : 'delivered',
          failure,
        )
      },
    }),
  })
