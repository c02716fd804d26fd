import type { Developer } from '../model/developer.ts'
import { notFound } from '../model/errors.ts'
import { eventBody } from '../log/changes.ts'
import { isId, type NewId } from '../model/ids.ts'
import type { OtpRequest } from '../model/request.ts'
import type { Clock } from '../model/clock.ts'
import { chargeRateLimit } from '../limits/rate-limit.ts'
import type { Store } from '../store/store.ts'
import type { SendWebhook, WebhookError } from '../model/webhook-delivery.ts'
import type { EndpointWithApplication } from '../model/webhook-endpoint.ts'
import { minuteMs } from '../../shared/durations.ts'

/** The caller chooses the target address: without a limit, the service could be abused to probe other hosts. */
const testsPerMinute = 10

/** `statusCode` is 0 and `error` is set if no response was received. */
type WebhookTestResult = { delivered: boolean; statusCode: number; error?: WebhookError }

export type WebhookTester = ReturnType<typeof createWebhookTester>

/** Creates the service that sends test events to endpoints. */
export function createWebhookTester(needs: {
  store: Store<'developers' | 'rateLimits' | 'webhookEndpoints'>
  clock: Clock
  newId: NewId
  send: SendWebhook
}) {
  const { store, clock, newId, send } = needs

  return {
    /**
     * Sends one `otp.verified` event with sample data immediately, signed with the current secret, even to a disabled
     * endpoint. It carries `"test": true` and is not stored.
     *
     * @returns the result of the attempt; a failure is not an error
     * @throws NOT_FOUND; RATE_LIMITED (WEBHOOK_TESTS) more than 10 per minute by this developer
     */
    async test(developer: Developer, id: string): Promise<WebhookTestResult> {
      if (!isId('whk', id)) throw notFound('webhookEndpoint')
      const now = clock.now()
      const endpoint = await store.write(async (tx) => {
        const found = await tx.webhookEndpoints.findWithApplication(developer.id, id)
        if (!found) throw notFound('webhookEndpoint')
        await tx.developers.lock(developer.id)
        const limit = {
          policy: 'webhook-test' as const,
          subject: developer.id,
          limit: testsPerMinute,
          windowMs: minuteMs,
        }
        await chargeRateLimit(tx, limit, now, 'WEBHOOK_TESTS')
        return found
      })
      const eventId = newId('evt')
      const request = sampleRequest(endpoint, developer, newId('otp'), now)
      const { statusCode, error } = await send({
        id: eventId,
        url: endpoint.url,
        secret: endpoint.webhookSecret,
        headers: endpoint.headers,
        body: JSON.stringify({ ...eventBody(eventId, 'otp.verified', request, now), test: true }),
      })
      const delivered = error === null
      if (statusCode !== null) return { delivered, statusCode }
      return { delivered, statusCode: 0, ...(error !== null && { error }) }
    },
  }
}

/** Builds a verified request for the developer's own virtual number. */
function sampleRequest(
  endpoint: EndpointWithApplication,
  developer: Developer,
  id: string,
  now: number,
): OtpRequest {
  const createdAt = now - 12_000
  return {
    id,
    developerId: developer.id,
    projectId: endpoint.projectId,
    appId: endpoint.appId,
    environment: endpoint.environment,
    phone: developer.virtualPhone,
    country: null,
    status: 'verified',
    failureReason: null,
    channel: 'sms',
    provider: null,
    deliveryStatus: null,
    locale: null,
    clientIp: null,
    metadata: null,
    codeSalt: '',
    codeHash: '',
    attempts: 1,
    resends: 0,
    createdAt,
    sentAt: createdAt,
    expiresAt: createdAt + 300_000,
    verifiedAt: now,
    previousRequest: null,
    startedBy: null,
    contexts: [],
    history: '',
    ownText: null,
    template: null,
    compat: null,
    updatedAt: now,
  }
}
