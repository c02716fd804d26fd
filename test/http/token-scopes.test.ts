import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { requiredScope, routeScopes } from '../../src/http/scopes.ts'
import type { RequiredScope } from '../../src/domain/model/api-token.ts'
import { apiTokenScopes, type ApiTokenScope } from '../../src/shared/api-token-scopes.ts'
import { createApiTester, type ApiTester, type Tenant } from '../helpers/api-tester.ts'
import type { Operation } from '../helpers/openapi.ts'
import { isForConsole } from '../helpers/tenant-isolation.ts'

let apiTester: ApiTester
beforeAll(async () => void (apiTester = await createApiTester()))
afterAll(() => apiTester.service.dispose())

const routeName = ({ method, path }: Operation) => `${method} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`

async function createToken(tenant: Tenant, scopes: readonly string[]): Promise<Record<string, string>> {
  const body = { name: scopes.join('+'), scopes }
  const { data } = await apiTester.service.request<{ token: string }>('POST', '/v1/tokens', {
    as: tenant.developer,
    body,
  })
  return { authorization: `Bearer ${data.token}` }
}

/** Calls an operation on the tenant's own resources. */
function call(operation: Operation, tenant: Tenant, as: Record<string, string>) {
  const body = operation.body && JSON.stringify(apiTester.validBody(operation, tenant))
  const path = apiTester.fillPath(operation, tenant)
  return apiTester.callAndCheck(operation, { path, as, body })
}

test('every operation for developers has a scope, and no other has one', () => {
  const consoleRoutes = apiTester.operations.filter(isForConsole).map(routeName)
  expect(Object.keys(routeScopes).toSorted()).toEqual(consoleRoutes.toSorted())
})

test('the OpenAPI document names the scope of every operation', () => {
  for (const operation of apiTester.operations.filter(isForConsole)) {
    const scope = requiredScope(operation.method, routeName(operation).replace(/^\w+ /, ''))
    const { operationId, security, description } = operation
    const documented = /API tokens need the scope `([a-z:]+)`\.$/.exec(description)?.[1]
    const isDocumented = security.some((scheme) => 'apiToken' in scheme)
    expect([operationId, documented ?? 'login', isDocumented]).toEqual([
      operationId,
      scope,
      scope !== 'login',
    ])
  }
})

test('a route that is missing in the table requires a login', () => {
  expect(requiredScope('GET', '/v1/new')).toBe('login')
  expect(requiredScope('PUT', '/v1/projects/')).toBe('login')
  expect(requiredScope('HEAD', '/v1/projects/')).toBe('read')
})

const grants: Record<ApiTokenScope, readonly RequiredScope[]> = {
  'otp:read': ['otp:read'],
  support: ['otp:read', 'support'],
  read: ['otp:read', 'read'],
  write: ['otp:read', 'support', 'read', 'write'],
}

describe.each(apiTokenScopes.map((scope) => [scope]))('a token with the scope %s', (held) => {
  test('may call exactly the operations of its scope', async () => {
    const granted: string[] = []
    let tenant = await apiTester.createTenant()
    let token = await createToken(tenant, [held])
    for (const operation of apiTester.operations.filter(isForConsole)) {
      const { response, faults } = await call(operation, tenant, token)
      expect(faults).toEqual([])
      const required = routeScopes[routeName(operation)] ?? 'login'
      const isGranted = grants[held].includes(required)
      if (isGranted) granted.push(operation.operationId)
      const { error } = JSON.parse(response.text.startsWith('{') ? response.text : '{}')
      const observed = { of: operation.operationId, isRefused: error?.reason === 'SCOPE_MISSING' }
      expect(observed).toEqual({ of: operation.operationId, isRefused: !isGranted })
      if (isGranted) {
        // The project of a tenant has an application, so its deletion is refused for that reason.
        expect([200, 201, operation.operationId === 'deleteProject' ? 409 : 200]).toContain(response.status)
        if (operation.method === 'GET') continue
        // It may have deleted what other operations need.
        tenant = await apiTester.createTenant()
        token = await createToken(tenant, [held])
        continue
      }
      expect([response.status, error.code]).toEqual([403, 'FORBIDDEN'])
      expect(error.metadata).toEqual({ scope: required === 'login' ? null : required })
      expect(response.headers.get('www-authenticate')).toContain('insufficient_scope')
    }
    expect(granted).toContain('listOtpRequests')
    expect(granted.includes('listProjects')).toBe(held === 'read' || held === 'write')
    for (const name of ['eraseUser', 'unlockUser'])
      expect(granted.includes(name)).toBe(held === 'support' || held === 'write')
    for (const name of ['listInbox', 'getWebhookSecret'])
      expect(granted.includes(name)).toBe(held === 'write')
    expect(granted.includes('createProject')).toBe(held === 'write')
  })
})

test('HEAD requires the scope of GET, and a trailing slash changes nothing', async () => {
  const tenant = await apiTester.createTenant()
  const as = { headers: await createToken(tenant, ['otp:read']) }
  const { handle } = apiTester.service.app
  for (const [path, status] of [
    ['/v1/projects', 403],
    ['/v1/projects/', 403],
    ['/v1/logs', 200],
    ['/v1/logs/', 200],
  ] as const)
    for (const method of ['GET', 'HEAD'])
      expect(
        (await handle(new Request(`http://otpd.test${path}`, { method, headers: as.headers }))).status,
      ).toBe(status)
})

test('several scopes grant what each of them grants', async () => {
  const tenant = await apiTester.createTenant()
  const headers = await createToken(tenant, ['write', 'otp:read'])
  const response = await apiTester.service.request('POST', '/v1/projects', {
    as: { headers },
    body: { name: 'Shop' },
  })
  expect(response.status).toBe(201)
})

test('a token reaches nothing of another developer', async () => {
  const [ada, eve] = [await apiTester.createTenant(), await apiTester.createTenant()]
  const as = await createToken(eve, ['write'])
  for (const operation of apiTester.operations.filter(isForConsole)) {
    if (!operation.path.includes('{') || operation.path.includes('{phoneNumber}')) continue
    if (routeScopes[routeName(operation)] === 'login') continue
    const { response } = await call(operation, ada, as)
    expect([operation.operationId, response.status]).toEqual([operation.operationId, 404])
  }
})
