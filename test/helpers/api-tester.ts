import type { WebhookEndpoint } from '../../src/domain/webhooks/endpoints.ts'
import { readOpenApi, type Operation } from './openapi.ts'
import { createTestService, type TestApplication, type TestDeveloper, type TestOptions } from './service.ts'

/** Stands in whatever a test sends that must not come back. */
export const canary = 'cAnArY7f3a'

export type ApiTester = Awaited<ReturnType<typeof createApiTester>>

export type ApiTestRequest = {
  /** In place of the operation's own, with its parameters filled in. */
  path?: string
  /** With its question mark. */
  query?: string
  body?: string | Uint8Array<ArrayBuffer> | undefined
  /** In place of those of the caller whom the operation is for. */
  as?: Record<string, string> | undefined
  headers?: Record<string, string>
}

export type ApiTestResponse = { status: number; headers: Headers; text: string; json: unknown }

const unlimitedPlan = { projects: 10_000, applications: 10_000, sendPerMinute: 0, verifyPerMinute: 0 }

/** Everything that a developer can have, one of each kind. */
export type Tenant = {
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
export const nonexistentIds = {
  projectId: 'prj_01h455vb4pex5vsknk084sn02q',
  appId: 'app_01h455vb4pex5vsknk084sn02q',
  requestId: 'otp_01h455vb4pex5vsknk084sn02q',
  webhookId: 'whk_01h455vb4pex5vsknk084sn02q',
  deliveryId: 'dlv_01h455vb4pex5vsknk084sn02q',
  eventId: 'evt_01h455vb4pex5vsknk084sn02q',
  phone: '+14155550199',
}

/** A service in which nothing is ever too often, its OpenAPI document, and calls that are judged by it. */
export async function createApiTester(options: TestOptions = {}) {
  const service = await createTestService({
    plans: { free: unlimitedPlan },
    ...options,
    env: { OTPD_WEBHOOK_ALLOW: '127.0.0.1', ...options.env },
  })
  const api = await readOpenApi(async (path) => (await service.request('GET', path)).text)
  const owner = await createTenant()
  const counts = { requests: 0, operations: new Set<string>(), statuses: new Map<number, number>() }

  async function createTenant(phone = '+14155550100'): Promise<Tenant> {
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
    const deliveryId = deliveries.data[0]?.id ?? nonexistentIds.deliveryId
    return { developer, application, requestId, webhookId, deliveryId, phone }
  }

  /** The values of an operation's path parameters, for somebody's belongings. */
  function fillPath({ path }: Operation, tenant: Tenant): string {
    const [, , resource = ''] = path.split('/')
    const ids: Record<string, string> = {
      projects: tenant.application.projectId,
      applications: tenant.application.id,
      otp: tenant.requestId,
      webhooks: tenant.webhookId,
    }
    return path.replace(/\{(\w+)\}/g, (_, name: string) => {
      const { deliveryId } = tenant
      const phoneNumber = encodeURIComponent(tenant.phone)
      const value = { id: ids[resource], type: 'secret', phoneNumber, deliveryId }[name]
      if (value === undefined) throw new Error(`Nothing is known that ${path} names.`)
      return value
    })
  }

  /** A body that the operation takes. */
  function validBody(operation: Operation, tenant: Tenant): Record<string, unknown> {
    const body = validBodies(tenant)[operation.operationId]
    if (!body || !api.acceptsBody(operation, body))
      throw new Error(`No right body for ${operation.operationId}.`)
    return body
  }

  const headersFor = ({ security }: Operation, tenant: Tenant): Record<string, string> => {
    const [first] = security
    if (!first) return {}
    return 'console' in first ? tenant.developer.headers : tenant.application.headers
  }

  /** @param operation undefined: a call that no operation is for */
  async function sendRequest(
    operation: Operation | undefined,
    method: string,
    { path, query = '', body, as, headers }: ApiTestRequest,
  ): Promise<ApiTestResponse> {
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
    const text = await readResponseText(response)
    counts.requests += 1
    if (operation) counts.operations.add(operation.operationId)
    counts.statuses.set(response.status, (counts.statuses.get(response.status) ?? 0) + 1)
    return { status: response.status, headers: response.headers, text, json: parseJson(text) }
  }

  return {
    service,
    ...api,
    owner,
    counts,
    createTenant,
    fillPath,
    validBody,
    headersFor,

    /**
     * Calls an operation and judges the answer by all that holds for every answer. Each fault is a sentence; none of
     * them repeats what was sent.
     */
    async callAndCheck(operation: Operation, request: ApiTestRequest = {}) {
      const response = await sendRequest(operation, operation.method, request)
      const faults = [
        ...findGeneralFaults(response),
        ...api.findResponseFaults(operation, response.status, response.json),
      ]
      return {
        response,
        faults: faults.map((fault) => `${operation.operationId} ${response.status}: ${fault}`),
      }
    },

    /** The same for a call that no operation is for: its answer must be an error. */
    async callUnknownRoute(method: string, path: string, request: Omit<ApiTestRequest, 'path'> = {}) {
      const response = await sendRequest(undefined, method, { ...request, path })
      const faults = [...findGeneralFaults(response), ...api.findErrorBodyFaults(response.json)]
      return { response, faults: faults.map((fault) => `${method} ${response.status}: ${fault}`) }
    },
  }
}

const validBodies = (tenant: Tenant): Record<string, Record<string, unknown>> => ({
  createApplication: { name: 'Web', projectId: tenant.application.projectId, environment: 'live' },
  updateApplication: { name: 'Web', status: 'active', otpTtlSeconds: 120 },
  changePassword: { currentPassword: 'correct horse battery', newPassword: 'battery horse correct' },
  updateProfile: { name: 'Ada', company: 'Engines' },
  sendOtp: {
    phone: tenant.phone,
    channel: 'sms',
    locale: 'en',
    ttlSeconds: 120,
    metadata: { order: '7' },
    clientIp: '192.0.2.1',
  },
  resendOtp: { requestId: tenant.requestId, channel: 'sms' },
  verifyOtp: { requestId: tenant.requestId, code: '000000' },
  cancelOtp: { requestId: tenant.requestId },
  createProject: { name: 'Shop', description: 'All of it' },
  updateProject: { name: 'Shop', description: null },
  createWebhook: { appId: tenant.application.id, url: 'http://127.0.0.1:9/hook', events: ['otp.sent'] },
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
function findGeneralFaults({ status, headers, text, json }: ApiTestResponse): string[] {
  const faults: string[] = []
  const expect = (isMet: boolean, message: string) => void (isMet || faults.push(message))
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
  const allText = text + [...headers].flat().join('\n')
  expect(!allText.toLowerCase().includes(canary.toLowerCase()), 'echoes what was sent')
  const error = typeof json === 'object' && json !== null && 'error' in json ? json.error : undefined
  if (typeof error === 'object' && error !== null && 'traceId' in error) {
    expect(error.traceId === traceId, 'traceId is not X-Request-Id')
  }
  return faults
}

const isEventStream = (headers: Headers) =>
  headers.get('content-type')?.startsWith('text/event-stream') ?? false

/** All of it; of a stream, which has no end, what it begins with. */
export async function readResponseText(response: Response): Promise<string> {
  if (!isEventStream(response.headers) || response.body === null) return response.text()
  const reader = response.body.getReader()
  const { value } = await reader.read()
  await reader.cancel()
  return new TextDecoder().decode(value)
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
