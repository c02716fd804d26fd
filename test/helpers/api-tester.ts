import type { WebhookEndpoint } from '../../src/domain/model/webhook-endpoint.ts'
import { isRecord, parseJson } from '../../src/shared/json.ts'
import { readOpenApi, type Operation } from './openapi.ts'
import { unlimitedPlans } from './plans.ts'
import { createTestService, type TestApplication, type TestDeveloper, type TestOptions } from './service.ts'

/** Marker in requests. No response may contain it, because errors must not echo input. */
export const canary = 'cAnArY7f3a'

export type ApiTester = Awaited<ReturnType<typeof createApiTester>>

export type ApiTestRequest = {
  /** Replaces the operation's path with its parameters filled in. */
  path?: string
  /** Query string, with its question mark. */
  query?: string
  body?: string | Uint8Array<ArrayBuffer> | undefined
  /** Replaces the credentials of the caller that the operation is meant for. */
  as?: Record<string, string> | undefined
  headers?: Record<string, string>
}

type ApiTestResponse = { status: number; headers: Headers; text: string; json: unknown }

/** A developer (tenant) with one resource of each kind. */
export type Tenant = {
  developer: TestDeveloper
  application: TestApplication
  /** A pending OTP request of the application. */
  requestId: string
  webhookId: string
  /** A delivery of that webhook. */
  deliveryId: string
  /** An API token with every scope. */
  tokenId: string
  guardRuleId: string
  messageId: string
  sessionId: string
  /** Phone of a verified identity. */
  phone: string
}

/** Well-formed ids of resources that do not exist. */
export const nonexistentIds = {
  projectId: 'prj_01h455vb4pex5vsknk084sn02q',
  appId: 'app_01h455vb4pex5vsknk084sn02q',
  requestId: 'otp_01h455vb4pex5vsknk084sn02q',
  webhookId: 'whk_01h455vb4pex5vsknk084sn02q',
  deliveryId: 'dlv_01h455vb4pex5vsknk084sn02q',
  eventId: 'evt_01h455vb4pex5vsknk084sn02q',
  tokenId: 'tok_01h455vb4pex5vsknk084sn02q',
  guardRuleId: 'rul_01h455vb4pex5vsknk084sn02q',
  messageId: 'msg_01h455vb4pex5vsknk084sn02q',
  sessionId: 'ses_01h455vb4pex5vsknk084sn02q',
  phone: '+14155550199',
}

/** Creates a service without rate limits, and calls that are checked against its OpenAPI document. */
export async function createApiTester(options: TestOptions = {}) {
  const service = await createTestService({
    plans: unlimitedPlans,
    ...options,
    env: { OTPD_WEBHOOK_ALLOW: '127.0.0.1', OTPD_DEV: 'true', ...options.env },
  })
  const api = await readOpenApi(async (path) => (await service.request('GET', path)).text)
  const owner = await createTenant()
  let reader: Promise<Tenant> | undefined
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
    const token = await service.request<{ id: string }>('POST', '/v1/tokens', {
      as: developer,
      body: { name: 'ci', scopes: ['write'] },
    })
    const tokenId = token.data.id
    const rule = await service.request<{ id: string }>('POST', '/v1/guard/rules', {
      as: developer,
      body: { effect: 'deny', target: 'prefix', value: '+882' },
    })
    const guardRuleId = rule.data.id
    const relayed = await service.request<{ id: string }>('POST', '/v1/otp/deliver', {
      as: application,
      body: { phone, code: '907155' },
    })
    const messageId = relayed.data.id
    const page = { enabled: true, returnOrigins: ['https://shop.example'] }
    await service.request('PATCH', `/v1/applications/${application.id}/page`, { as: developer, body: page })
    const texts = { en: '{code} is your {app} code' }
    await service.request('PUT', `/v1/applications/${application.id}/templates/login`, {
      as: developer,
      body: { texts },
    })
    const session = await service.request<{ id: string }>('POST', '/v1/otp/sessions', {
      as: application,
      body: { returnUrl: 'https://shop.example/back' },
    })
    const sessionId = session.data.id
    return {
      developer,
      application,
      requestId,
      webhookId,
      deliveryId,
      tokenId,
      guardRuleId,
      messageId,
      sessionId,
      phone,
    }
  }

  /** Returns a tenant that no call has changed. Operations that only read share one. */
  const createTenantFor = ({ method }: Operation): Promise<Tenant> =>
    method === 'GET' ? (reader ??= createTenant()) : createTenant()

  /** Fills the parameters of an operation's path with the ids of a tenant, and adds the required ones of its query. */
  function fillPath({ path, parameters = [] }: Operation, tenant: Tenant): string {
    const [, , resource = ''] = path.split('/')
    const ids: Record<string, string> = {
      projects: tenant.application.projectId,
      applications: tenant.application.id,
      otp: tenant.requestId,
      webhooks: tenant.webhookId,
      tokens: tenant.tokenId,
      guard: tenant.guardRuleId,
    }
    const query = parameters
      .filter((one) => one.in === 'query' && one.required === true)
      .map(({ name, schema }) => `${name}=${schema.enum?.[0]}`)
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
      const { deliveryId } = tenant
      const phoneNumber = encodeURIComponent(tenant.phone)
      const value = {
        id: path.includes('/deliver/')
          ? tenant.messageId
          : path.includes('/sessions/')
            ? tenant.sessionId
            : ids[resource],
        type: 'secret',
        name: 'login',
        phoneNumber,
        deliveryId,
      }[name]
      if (value === undefined) throw new Error(`No value is defined for a parameter of ${path}.`)
      return value
    })
    return query.length === 0 ? filled : `${filled}?${query.join('&')}`
  }

  /** Fills the path like `fillPath`, but with another value of its first parameter. */
  function fillPathWith(operation: Operation, id: string): string {
    const index = operation.path.split('/').findIndex((segment) => segment.startsWith('{'))
    const [path = '', query] = fillPath(operation, owner).split('?')
    const filled = path.split('/').with(index, id).join('/')
    return query === undefined ? filled : `${filled}?${query}`
  }

  /** Returns a body that the operation accepts. */
  function validBody(operation: Operation, tenant: Tenant): Record<string, unknown> {
    const body = validBodies(tenant)[operation.operationId]
    if (!body || !api.acceptsBody(operation, body))
      throw new Error(`No valid body is defined for ${operation.operationId}.`)
    return body
  }

  const headersFor = ({ security }: Operation, tenant: Tenant): Record<string, string> => {
    const [first] = security
    if (!first) return {}
    return 'console' in first ? tenant.developer.headers : tenant.application.headers
  }

  /** @param operation undefined for a call that matches no operation */
  async function sendRequest(
    operation: Operation | undefined,
    method: string,
    { path, query = '', body, as, headers }: ApiTestRequest,
  ): Promise<ApiTestResponse> {
    const target = path ?? (operation ? fillPath(operation, owner) : '/')
    const response = await service.app.handle(
      new Request(`http://otpd.test${target}${target.includes('?') ? query.replace('?', '&') : query}`, {
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
    createTenantFor,
    fillPath,
    fillPathWith,
    validBody,
    headersFor,

    /**
     * Calls an operation and checks the response against the document and the rules for all responses. Each fault is a
     * sentence, and none of them repeats the request.
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

    /** Checks a call that matches no operation: the response must be an error. */
    async callUnknownRoute(method: string, path: string, request: Omit<ApiTestRequest, 'path'> = {}) {
      const response = await sendRequest(undefined, method, { ...request, path })
      const hasBody = method !== 'HEAD' || response.text !== ''
      const bodyFaults = hasBody ? api.findErrorBodyFaults(response.json) : []
      const faults = [...findGeneralFaults(response), ...bodyFaults]
      return { response, faults: faults.map((fault) => `${method} ${response.status}: ${fault}`) }
    },
  }
}

const validBodies = (tenant: Tenant): Record<string, Record<string, unknown>> => ({
  createApplication: { name: 'Web', projectId: tenant.application.projectId, environment: 'live' },
  updateApplication: { name: 'Web', status: 'active', otpTtlSeconds: 120 },
  changePassword: { currentPassword: 'correct horse battery', newPassword: 'battery horse correct' },
  confirmTotp: { code: '123456' },
  disableTotp: { code: '123456' },
  updateProfile: { name: 'Ada', company: 'Engines' },
  sendOtp: {
    phone: tenant.phone,
    channel: 'sms',
    locale: 'en',
    ttlSeconds: 120,
    metadata: { order: '7' },
    clientIp: '192.0.2.1',
  },
  deliverCode: { phone: tenant.phone, code: '907155', channel: 'sms', locale: 'en', clientIp: '192.0.2.1' },
  reportDeliveredCode: { outcome: 'failed' },
  resendOtp: { requestId: tenant.requestId, channel: 'sms' },
  // No test issuer knows this token: see otp-proofs.test.ts.
  proveOtp: {
    type: 'firebase-pnv',
    token: 'a.b.c',
    phone: tenant.phone,
    nonce: 'n1',
    metadata: { order: '7' },
  },
  verifyOtp: { requestId: tenant.requestId, code: '000000' },
  cancelOtp: { requestId: tenant.requestId },
  createSession: {
    returnUrl: 'https://shop.example/back',
    phone: tenant.phone,
    locale: 'en',
    state: 'cart 7',
  },
  updateApplicationPage: {
    enabled: true,
    name: 'Shop',
    logo: null,
    colour: '#0055cc',
    returnOrigins: ['https://shop.example'],
  },
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
  putTemplate: { texts: { en: '{code} is your {app} code', de: 'Ihr Code: {code}' } },
  createGuardRule: {
    effect: 'allow',
    target: 'prefix',
    value: '+1415555',
    appId: tenant.application.id,
    expiresAt: '2026-12-20T00:00:00.000Z',
  },
  createApiToken: { name: 'nightly', scopes: ['otp:read', 'read'], expiresAt: '2026-12-20T00:00:00.000Z' },
  recoverWebhook: { since: '2026-11-20T00:00:00.000Z' },
})

/** Checks the rules for all responses: headers, content type, trace id, no echo of the request. */
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
  const error = isRecord(json) ? json.error : undefined
  if (isRecord(error) && 'traceId' in error) {
    expect(error.traceId === traceId, 'traceId is not X-Request-Id')
  }
  return faults
}

const isEventStream = (headers: Headers) =>
  headers.get('content-type')?.startsWith('text/event-stream') ?? false

/** Reads the whole body, or only the first chunk of a stream, which does not end. */
export async function readResponseText(response: Response): Promise<string> {
  if (!isEventStream(response.headers) || response.body === null) return response.text()
  const reader = response.body.getReader()
  const { value } = await reader.read()
  await reader.cancel()
  return new TextDecoder().decode(value)
}
