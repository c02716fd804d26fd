import type { WebhookEndpoint } from '../../src/domain/webhooks/endpoints.ts'
import { readOpenApi, type Operation } from './openapi.ts'
import { createTestService, type TestApplication, type TestDeveloper, type TestOptions } from './service.ts'

/** Stands in whatever a test sends that must not come back. */
export const canary = 'cAnArY7f3a'

export type Edge = Awaited<ReturnType<typeof createEdge>>

export type EdgeRequest = {
  /** In place of the operation's own, with its parameters filled in. */
  path?: string
  /** With its question mark. */
  query?: string
  body?: string | Uint8Array<ArrayBuffer> | undefined
  /** In place of those of the caller whom the operation is for. */
  as?: Record<string, string> | undefined
  headers?: Record<string, string>
}

export type EdgeAnswer = { status: number; headers: Headers; text: string; json: unknown }

const roomy = { projects: 10_000, applications: 10_000, sendPerMinute: 0, verifyPerMinute: 0 }

/** Everything that a developer can have, one of each kind. */
export type Belongings = {
  developer: TestDeveloper
  application: TestApplication
  /** Of the application, pending. */
  requestId: string
  webhookId: string
  /** Of that webhook. */
  deliveryId: string
  /** Of an identity. */
  phone: string
}

/** What no developer has one of. */
export const absentIds = {
  projectId: 'prj_01h455vb4pex5vsknk084sn02q',
  appId: 'app_01h455vb4pex5vsknk084sn02q',
  requestId: 'otp_01h455vb4pex5vsknk084sn02q',
  webhookId: 'whk_01h455vb4pex5vsknk084sn02q',
  deliveryId: 'dlv_01h455vb4pex5vsknk084sn02q',
  eventId: 'evt_01h455vb4pex5vsknk084sn02q',
  phone: '+14155550199',
}

/** A service in which nothing is ever too often, its OpenAPI document, and calls that are judged by it. */
export async function createEdge(options: TestOptions = {}) {
  const service = await createTestService({
    plans: { free: roomy },
    ...options,
    env: { OTPD_WEBHOOK_ALLOW: '127.0.0.1', ...options.env },
  })
  const api = await readOpenApi(async (path) => (await service.request('GET', path)).text)
  const owner = await makeBelongings()
  const counts = { requests: 0, operations: new Set<string>(), statuses: new Map<number, number>() }

  async function makeBelongings(phone = '+14155550100'): Promise<Belongings> {
    const developer = await service.createDeveloper()
    const application = await service.createApplication(developer, { environment: 'test' })
    const send = () =>
      service.request<{ requestId: string; code: string }>('POST', '/v1/otp/send', {
        as: application,
        body: { phone },
      })
    const verified = (await send()).data
    await service.request('POST', '/v1/otp/verify', {
      as: application,
      body: { requestId: verified.requestId, code: verified.code },
    })
    const webhook = await service.request<WebhookEndpoint>('POST', '/v1/webhooks', {
      as: developer,
      body: { appId: application.id, url: 'http://127.0.0.1:9/hook', events: ['*'] },
    })
    const { requestId } = (await send()).data
    const webhookId = webhook.data.id
    const deliveries = await service.request<Array<{ id: string }>>(
      'GET',
      `/v1/webhooks/${webhookId}/deliveries`,
      { as: developer },
    )
    const deliveryId = deliveries.data[0]?.id ?? absentIds.deliveryId
    return { developer, application, requestId, webhookId, deliveryId, phone }
  }

  /** The values of an operation's path parameters, for somebody's belongings. */
  function fillPath({ path }: Operation, of: Belongings): string {
    const [, , noun = ''] = path.split('/')
    const ids: Record<string, string> = {
      projects: of.application.projectId,
      applications: of.application.id,
      otp: of.requestId,
      webhooks: of.webhookId,
    }
    return path.replace(/\{(\w+)\}/g, (_, name: string) => {
      const { deliveryId } = of
      const phoneNumber = encodeURIComponent(of.phone)
      const value = { id: ids[noun], type: 'secret', phoneNumber, deliveryId }[name]
      if (value === undefined) throw new Error(`Nothing is known that ${path} names.`)
      return value
    })
  }

  /** A body that the operation takes. */
  function bodyOf(operation: Operation, of: Belongings): Record<string, unknown> {
    const body = bodies(of)[operation.operationId]
    if (!body || !api.takesBody(operation, body))
      throw new Error(`No right body for ${operation.operationId}.`)
    return body
  }

  const headersFor = ({ security }: Operation, of: Belongings): Record<string, string> => {
    const [first] = security
    if (!first) return {}
    return 'console' in first ? of.developer.headers : of.application.headers
  }

  /** @param operation undefined: a call that no operation is for */
  async function ask(
    operation: Operation | undefined,
    method: string,
    { path, query = '', body, as, headers }: EdgeRequest,
  ): Promise<EdgeAnswer> {
    const target = path ?? (operation ? fillPath(operation, owner) : '/')
    const response = await service.app.handle(
      new Request(`http://otpd.test${target}${query}`, {
        method,
        headers: {
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...(as ?? (operation ? headersFor(operation, owner) : {})),
          ...headers,
        },
        ...(body !== undefined && { body }),
      }),
    )
    const text = await readAnswer(response)
    counts.requests += 1
    if (operation) counts.operations.add(operation.operationId)
    counts.statuses.set(response.status, (counts.statuses.get(response.status) ?? 0) + 1)
    return { status: response.status, headers: response.headers, text, json: parse(text) }
  }

  return {
    service,
    ...api,
    owner,
    counts,
    makeBelongings,
    fillPath,
    bodyOf,
    headersFor,

    /**
     * Calls an operation and judges the answer by all that holds for every answer. Each fault is a sentence; none of
     * them repeats what was sent.
     */
    async judge(operation: Operation, request: EdgeRequest = {}) {
      const answer = await ask(operation, operation.method, request)
      const faults = [...faultsOfAny(answer), ...api.faultsOfAnswer(operation, answer.status, answer.json)]
      return { answer, faults: faults.map((fault) => `${operation.operationId} ${answer.status}: ${fault}`) }
    },

    /** The same for a call that no operation is for: its answer must be an error. */
    async judgeStray(method: string, path: string, request: Omit<EdgeRequest, 'path'> = {}) {
      const answer = await ask(undefined, method, { ...request, path })
      const faults = [...faultsOfAny(answer), ...api.faultsOfError(answer.json)]
      return { answer, faults: faults.map((fault) => `${method} ${answer.status}: ${fault}`) }
    },
  }
}

const bodies = (of: Belongings): Record<string, Record<string, unknown>> => ({
  createApplication: { name: 'Web', projectId: of.application.projectId, environment: 'live' },
  updateApplication: { name: 'Web', status: 'active', otpTtlSeconds: 120 },
  changePassword: { currentPassword: 'correct horse battery', newPassword: 'battery horse correct' },
  updateProfile: { name: 'Ada', company: 'Engines' },
  sendOtp: {
    phone: of.phone,
    channel: 'sms',
    locale: 'en',
    ttlSeconds: 120,
    metadata: { order: '7' },
    clientIp: '192.0.2.1',
  },
  resendOtp: { requestId: of.requestId, channel: 'sms' },
  verifyOtp: { requestId: of.requestId, code: '000000' },
  cancelOtp: { requestId: of.requestId },
  createProject: { name: 'Shop', description: 'All of it' },
  updateProject: { name: 'Shop', description: null },
  createWebhook: { appId: of.application.id, url: 'http://127.0.0.1:9/hook', events: ['otp.sent'] },
  updateWebhook: {
    url: 'http://127.0.0.1:9/hook',
    events: ['otp.sent'],
    status: 'enabled',
    description: 'Orders',
    headers: { 'x-api-key': 'of the receiver' },
  },
  recoverWebhook: { since: '2026-11-20T00:00:00.000Z' },
})

/** What holds for every answer, whatever was asked. */
function faultsOfAny({ status, headers, text, json }: EdgeAnswer): string[] {
  const faults: string[] = []
  const expect = (holds: boolean, what: string) => void (holds || faults.push(what))
  const traceId = headers.get('x-request-id') ?? ''
  expect(status < 500, 'a fault of the service')
  expect(/^req_[0-7][0-9a-hjkmnp-tv-z]{25}$/.test(traceId), 'no X-Request-Id')
  const isStream = status === 200 && isEventStream(headers)
  expect(isStream || (headers.get('content-type')?.startsWith('application/json') ?? false), 'not JSON')
  expect(headers.get('cache-control') === 'no-store', 'may be kept by a cache')
  expect(headers.get('x-content-type-options') === 'nosniff', 'may be taken for another type')
  expect(
    headers.get('content-security-policy') === "default-src 'none'; frame-ancestors 'none'",
    'no security policy',
  )
  if (status < 400) return faults
  const everything = text + [...headers].flat().join('\n')
  expect(!everything.toLowerCase().includes(canary.toLowerCase()), 'echoes what was sent')
  const error = typeof json === 'object' && json !== null && 'error' in json ? json.error : undefined
  if (typeof error === 'object' && error !== null && 'traceId' in error) {
    expect(error.traceId === traceId, 'traceId is not X-Request-Id')
  }
  return faults
}

const isEventStream = (headers: Headers) =>
  headers.get('content-type')?.startsWith('text/event-stream') ?? false

/** All of it; of a stream, which has no end, what it begins with. */
export async function readAnswer(response: Response): Promise<string> {
  if (!isEventStream(response.headers) || response.body === null) return response.text()
  const reader = response.body.getReader()
  const { value } = await reader.read()
  await reader.cancel()
  return new TextDecoder().decode(value)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
