import type { Api } from '../client/api.ts'
import { connectionFailureText } from '../session/http.ts'
import { isHostAsWritten } from '../session/server-choice.ts'
import { usageError } from '../terminal/errors.ts'
import type { LogEntry } from '../client/resources.ts'
import type { ResponseData } from '../client/routes.ts'
import { version } from '../version.ts'
import { parseGuardAlert } from '../../src/shared/guard-alert.ts'
import { signatureHeaders } from '../../src/shared/webhook-signature.ts'

type Webhook = { id: string; type: string; body: string; secret: string }

export type ForwardResult = { statusCode: number | null; error: string | null; durationMs: number }

const timeoutMs = 15_000

/**
 * Parses --forward-to; accepts `localhost:3000/hook` and `3000/hook` too.
 *
 * @throws usage error when it is not an http or https address
 */
export function parseTarget(text: string): URL {
  const withScheme = /^https?:\/\//i.test(text)
    ? text
    : `http://${/^\d+(\/|$)/.test(text) ? 'localhost:' : ''}${text}`
  const url = URL.parse(withScheme)
  const hasOtherScheme = /^(?!https?:)[\w+.-]+:\/\//i.test(text)
  if (hasOtherScheme || url === null || url.hash !== '' || !isHostAsWritten(url.hostname, withScheme))
    throw usageError('--forward-to must be an address like http://localhost:3000/hook.')
  return url
}

/**
 * Builds the webhook that an endpoint would have received, from the log entry and the current state of the request.
 * Fields that change between events have their values after this event. `metadata` is null: only real endpoints
 * receive it. Null for an entry without an application or a request.
 */
export async function buildWebhook(api: Api, entry: LogEntry): Promise<Webhook | null> {
  const { id, type, appId, requestId, at } = entry
  if (appId === null) return null
  const alert = type === 'guard.alert' ? parseGuardAlert(entry.detail) : undefined
  const loading = alert ?? (requestId === null ? null : loadData(api, entry, { appId, requestId }))
  if (loading === null) return null
  const [data, secret] = await Promise.all([
    loading,
    api.asDeveloper('GET', '/v1/applications/:id/webhook-secret', { params: { id: appId } }),
  ])
  return {
    id,
    type,
    body: JSON.stringify({ id, type, timestamp: at, data }),
    secret: secret.data.webhookSecret,
  }
}

/** Loads the data of an event. The log does not know country, channel and time of sending of a relayed message. */
async function loadData(
  api: Api,
  entry: LogEntry,
  { appId, requestId }: { appId: string; requestId: string },
) {
  const loadApplication = async () =>
    (await api.asDeveloper('GET', '/v1/applications/:id', { params: { id: appId } })).data
  if (entry.type.startsWith('message.')) {
    const { projectId, environment } = await loadApplication()
    const { phone, status } = entry
    return { messageId: requestId, appId, projectId, environment, phone, status }
  }
  const [request, { projectId }] = await Promise.all([
    api.asDeveloper('GET', '/v1/otp/:id', { params: { id: requestId } }),
    loadApplication(),
  ])
  return eventData(entry, request.data, projectId)
}

function eventData(entry: LogEntry, request: ResponseData<'GET', '/v1/otp/:id'>, projectId: string) {
  const isFinal = entry.status !== 'pending'
  return {
    // Its detail is the session.
    ...(entry.type === 'session.verified' && { sessionId: entry.detail }),
    requestId: request.id,
    appId: request.appId,
    projectId,
    environment: request.environment,
    phone: request.phone,
    country: request.country,
    status: entry.status ?? request.status,
    failureReason: isFinal ? request.failureReason : null,
    channel: request.channel,
    attempts: entry.type === 'otp.sent' ? 0 : request.attempts,
    createdAt: request.createdAt,
    expiresAt: request.expiresAt,
    verifiedAt: isFinal ? request.verifiedAt : null,
    metadata: null,
  }
}

/**
 * Posts a webhook as the service would. Not with `fetch`, which honours proxy variables: the target is a program on
 * this machine.
 */
export async function forward(
  url: URL,
  { id, body, secret }: Webhook,
  nowMs: number,
): Promise<ForwardResult> {
  const { request: open } = await (url.protocol === 'https:' ? import('node:https') : import('node:http'))
  const startedAt = performance.now()
  const { promise, resolve } = Promise.withResolvers<ForwardResult>()
  const bytes = Buffer.from(body)
  const request = open(url, {
    method: 'POST',
    agent: false,
    headers: {
      'content-type': 'application/json',
      'content-length': String(bytes.byteLength),
      'user-agent': `otpd/${version}`,
      ...signatureHeaders(secret, { id, body }, nowMs),
    },
  })
  const finish = (statusCode: number | null, error: string | null) => {
    clearTimeout(timer)
    resolve({ statusCode, error, durationMs: Math.round(performance.now() - startedAt) })
    request.destroy()
  }
  const timer = setTimeout(() => finish(null, 'no response within 15 s'), timeoutMs)
  request.on('response', (response) => {
    // Only the status counts; do not wait for the body.
    response.on('error', () => {})
    finish(response.statusCode ?? null, null)
  })
  request.on('error', (error) =>
    finish(null, connectionFailureText('code' in error ? String(error.code) : '')),
  )
  request.end(bytes)
  return promise
}
