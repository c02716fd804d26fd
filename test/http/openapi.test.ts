import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { httpStatusByCode } from '../../src/http/errors.ts'
import { createApp } from '../../src/http/app.ts'
import { createApiTester, readResponseText, type ApiTester } from '../helpers/api-tester.ts'
import { findSchemaFaults, findUnknownKeywords, type Schema } from '../helpers/json-schema.ts'
import type { Operation } from '../helpers/openapi.ts'

let apiTester: ApiTester

beforeAll(async () => void (apiTester = await createApiTester()), 60_000)
afterAll(() => apiTester.service.dispose())

/** Lists the operations for which `holds` is false. */
const findOperationFaults = (holds: (operation: Operation) => boolean, fault: string) =>
  apiTester.operations
    .filter((operation) => !holds(operation))
    .map(({ operationId }) => `${operationId}: ${fault}`)

function* listSchemas({ body, parameters = [], requestBody, responses }: Operation): Generator<Schema> {
  if (body) yield body
  for (const { schema } of parameters) yield schema
  for (const { content } of [requestBody, ...Object.values(responses)].filter((part) => part !== undefined)) {
    for (const { schema } of Object.values(content)) yield schema
  }
}

describe('the OpenAPI document', () => {
  test('is OpenAPI 3.1, has the version of the server, and resolves all its references', () => {
    const { document } = apiTester
    expect(document.openapi).toBe('3.1.0')
    expect(document.info).toMatchObject({ title: 'otpd', version: '0.0.0-test' })
    expect(document.servers).toEqual([expect.objectContaining({ url: '/' })])
    const text = JSON.stringify(document)
    const references = [...text.matchAll(/"\$ref":"#\/components\/(\w+)\/([\w-]+)"/g)]
    expect(references.length).toBe(text.split('"$ref"').length - 1)
    const used = new Set(references.map(([, kind, name]) => `${kind}/${name}`))
    const defined = [
      ...Object.keys(document.components.schemas).map((name) => `schemas/${name}`),
      ...Object.keys(document.components.headers).map((name) => `headers/${name}`),
      ...Object.keys(document.components.examples).map((name) => `examples/${name}`),
    ]
    expect([...used].toSorted()).toEqual(defined.toSorted())
    expect(text).not.toMatch(/errorText|documentedAs|multipart|text\/plain/)
    expect(text.length).toBeLessThan(600_000)
  })

  test('has every route for API users, and no other', () => {
    const { routes } = apiTester.service.app
    const isHidden = ({ hooks }: (typeof routes)[number]) => hooks.detail?.hide === true
    const hiddenRoutes = routes.filter(isHidden).map(({ method, path }) => `${method} ${path}`)
    // Those of a documented path refuse what a pattern would take.
    const refusals = ['cancel', 'deliver', 'proofs', 'resend', 'send', 'sessions', 'verify'].map(
      (name) => `GET /v1/otp/${name}`,
    )
    expect(hiddenRoutes).toEqual(expect.arrayContaining(refusals))
    const hidden = hiddenRoutes
      .filter((route) => !refusals.includes(route))
      .map((route) => route.replace(/^\w+ /, ''))
    expect(
      hidden.filter(
        (path) =>
          !/^\/(docs.*|llms\.txt|verify\/:token)?$|^\/v1\/(docs|openapi\.json|(callbacks|hooks)\/|otp\/proofs\/test$)/.test(
            path,
          ),
      ),
    ).toEqual([])
    const registered = routes
      .filter((route) => !isHidden(route))
      .map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}').replace(/\/$/, '')}`)
    const documented = apiTester.operations.map(({ method, path }) => `${method} ${path}`)
    expect(documented.toSorted()).toEqual(registered.toSorted())
    expect(documented.length).toBeGreaterThanOrEqual(40)
  })

  test('gives every operation an id, a summary, a tag and its security', () => {
    const { tags, components } = apiTester.document
    const names = apiTester.operations.map(({ operationId }) => operationId)
    expect(new Set(names).size).toBe(names.length)
    const schemes = Object.keys(components.securitySchemes)
    const tagNames = tags.map(({ name }) => name)
    expect([
      ...findOperationFaults(({ operationId }) => /^[a-z]+([A-Z][a-z]+)+$/.test(operationId), 'no name'),
      ...findOperationFaults(({ summary }) => /^[A-Z].*[^.]$/.test(summary ?? ''), 'no summary'),
      ...findOperationFaults(
        (one) => one.tags?.length === 1 && tagNames.includes(one.tags[0] ?? ''),
        'no tag',
      ),
      ...findOperationFaults(({ security }) => Array.isArray(security), 'does not say who may call it'),
      ...findOperationFaults(
        ({ security }) => security.flatMap((one) => Object.keys(one)).every((name) => schemes.includes(name)),
        'an unknown security scheme',
      ),
    ]).toEqual([])
    expect(tags.filter(({ description }) => !description)).toEqual([])
    expect(tagNames.filter((name) => !apiTester.operations.some((one) => one.tags.includes(name)))).toEqual(
      [],
    )
  })

  test('declares every parameter, body and response', () => {
    const pathNames = ({ path }: Operation) => [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
    expect([
      ...findOperationFaults((operation) => {
        const declared = operation.parameters?.filter((one) => one.in === 'path' && one.required) ?? []
        return declared.map(({ name }) => name).join() === pathNames(operation).join()
      }, 'parameters of the path'),
      ...findOperationFaults(
        (one) => one.requestBody?.required === true || !['PATCH', 'PUT'].includes(one.method),
        'no body',
      ),
      ...findOperationFaults(
        (one) => Object.keys(one.responses).some((status) => status.startsWith('4')),
        'no 4xx',
      ),
      ...findOperationFaults(
        (one) => Object.keys(one.responses).filter((s) => s.startsWith('2')).length === 1,
        'no 2xx',
      ),
      ...findOperationFaults((one) => '500' in one.responses, 'no 500'),
      ...findOperationFaults((one) => one.security.length === 0 || '401' in one.responses, 'no 401'),
      ...findOperationFaults(
        (one) =>
          Object.values(one.responses).every(
            ({ description, headers }) => description && 'X-Request-Id' in headers,
          ),
        'a response without description',
      ),
      ...findOperationFaults(
        (one) => one.body === undefined || ['413', '415'].every((status) => status in one.responses),
        'no 413 or 415',
      ),
    ]).toEqual([])
  })

  test('has examples that match their schemas', () => {
    const { schemas: named, examples } = apiTester.document.components
    const wrong: string[] = []
    const checkExamples = (schema: Schema): void => {
      for (const example of schema.examples ?? [])
        wrong.push(...findSchemaFaults(schema, example, named, false))
      const { properties = {}, items, anyOf = [] } = schema
      for (const inner of [...Object.values(properties), ...anyOf, ...(items ? [items] : [])])
        checkExamples(inner)
    }
    for (const schema of Object.values(named)) checkExamples(schema)
    for (const operation of apiTester.operations) {
      for (const schema of listSchemas(operation)) checkExamples(schema)
      for (const { schema, example } of Object.values(operation.requestBody?.content ?? {}))
        wrong.push(...findSchemaFaults(schema, example, named, false))
      for (const status of Object.keys(operation.responses))
        for (const { value } of apiTester.errorExamples(operation, status))
          if (String(httpStatusByCode[value.error.code]) !== status)
            wrong.push(`${value.error.code} is no ${status}`)
    }
    for (const { value } of Object.values(examples))
      wrong.push(...findSchemaFaults({ $ref: '#/components/schemas/ErrorResponse' }, value, named, true))
    const text = JSON.stringify(apiTester.document)
    expect(text).toContain('"examples":["+14155550100"]')
    expect(wrong).toEqual([])
  })

  test('uses only schema keywords that the test validator supports', () => {
    const all = [
      ...apiTester.operations.flatMap((one) => [...listSchemas(one)]),
      ...Object.values(apiTester.document.components.schemas),
    ]
    expect(all.flatMap(findUnknownKeywords)).toEqual([])
  })

  test('documents every status of the error codes', () => {
    const documented = new Set(
      apiTester.operations.flatMap(({ responses }) => Object.keys(responses)).map(Number),
    )
    // 405 is for methods that are not documented, 417 for a header that no operation takes.
    const usedStatuses = new Set(Object.values(httpStatusByCode).filter((one) => one !== 405 && one !== 417))
    expect([...documented].filter((status) => status >= 400).toSorted()).toEqual([...usedStatuses].toSorted())
  })
})

describe('a successful response', () => {
  test('has exactly the documented fields', async () => {
    const order = ['GET', 'POST', 'PATCH', 'DELETE']
    const operations = apiTester.operations.toSorted(
      (a, b) => order.indexOf(a.method) - order.indexOf(b.method),
    )
    const succeeded: string[] = []
    for (const operation of operations) {
      const tenant = await apiTester.createTenantFor(operation)
      if (operation.operationId === 'resendOtp') apiTester.service.clock.advance(60_000)
      if (operation.operationId === 'deleteProject') await removeApplication(tenant)
      const { response, faults } = await apiTester.callAndCheck(operation, {
        path: apiTester.fillPath(operation, tenant),
        as: apiTester.headersFor(operation, tenant),
        body: operation.body && JSON.stringify(await successBody(operation, tenant)),
      })
      expect(faults).toEqual([])
      if (response.status < 300) succeeded.push(operation.operationId)
    }
    // These need an account with a password, or their own token.
    const needsOwnAccount = [
      'changePassword',
      'requestTokens',
      'revokeToken',
      'proposeTotp',
      'confirmTotp',
      'disableTotp',
    ]
    const missing = operations.map(({ operationId }) => operationId).filter((id) => !succeeded.includes(id))
    expect(missing).toEqual(missing.filter((id) => needsOwnAccount.includes(id)))
  }, 60_000)

  const removeApplication = (tenant: Awaited<ReturnType<ApiTester['createTenant']>>) =>
    apiTester.service.request('DELETE', `/v1/applications/${tenant.application.id}`, { as: tenant.developer })

  async function successBody(operation: Operation, tenant: Awaited<ReturnType<ApiTester['createTenant']>>) {
    if (operation.operationId === 'proveOtp') {
      const token = await apiTester.service.services.testProofs?.issue({ phone: tenant.phone })
      return { type: 'firebase-pnv', token, phone: tenant.phone }
    }
    if (operation.operationId !== 'verifyOtp') return apiTester.validBody(operation, tenant)
    return { requestId: tenant.requestId, code: '424242' }
  }
})

describe('an undeclared field', () => {
  const leak = 'uNdEcLaReD'

  const isPlain = (value: unknown): value is object =>
    typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype

  /** Adds a field to every object at exactly this depth: a fault further up would hide those below. */
  const addField = (value: unknown, depth: number): unknown => {
    if (Array.isArray(value)) return value.map((item) => addField(item, depth))
    if (!isPlain(value)) return value
    if (depth === 0) return { ...value, [leak]: leak }
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, addField(item, depth - 1)]))
  }

  const withTaintedResults = <T extends object>(service: T, depth: number): T =>
    new Proxy(service, {
      get(target, name, receiver) {
        const member: unknown = Reflect.get(target, name, receiver)
        if (typeof member !== 'function') return member
        return (...args: unknown[]) => {
          const result: unknown = Reflect.apply(member, target, args)
          return result instanceof Promise
            ? result.then((value) => addField(value, depth))
            : addField(result, depth)
        }
      },
    })

  test.each([0, 1, 2])(
    'is never sent, at depth %d of the result of a service',
    async (depth) => {
      const { services } = apiTester.service
      if (!services.builtIn) throw new Error('another provider is in charge')
      let bugs = 0
      // Services used by other services: their results are never part of a response.
      const inner = ['appAuth', 'clock', 'builtIn', 'accounts', 'setupTokens', 'guard']
      const all = Object.entries(services).map(([name, service]): [string, unknown] =>
        isPlain(service) && !inner.includes(name)
          ? [name, withTaintedResults(service, depth)]
          : [name, service],
      )
      const app = createApp({
        ...services,
        ...Object.fromEntries(all),
        loginSettings: withTaintedResults({ read: services.loginSettings }, depth).read,
        builtIn: { ...services.builtIn, provider: withTaintedResults(services.builtIn.provider, depth) },
        readiness: () => Promise.resolve('ready' as const),
        onBug: () => void bugs++,
      })
      let answered = 0
      for (const operation of apiTester.operations) {
        const tenant = await apiTester.createTenantFor(operation)
        const body = operation.body && JSON.stringify(apiTester.validBody(operation, tenant))
        const response = await app.handle(
          new Request(`http://otpd.test${apiTester.fillPath(operation, tenant)}`, {
            method: operation.method,
            headers: {
              ...apiTester.headersFor(operation, tenant),
              ...(body !== undefined && { 'content-type': 'application/json' }),
            },
            ...(body !== undefined && { body }),
          }),
        )
        const text = await readResponseText(response)
        expect({
          of: operation.operationId,
          leaks: text.includes(leak) || [...response.headers].join().includes(leak),
        }).toMatchObject({ leaks: false })
        if (response.status < 300) answered++
      }
      // Handlers that pick fields succeed; for the others, the schema rejects the response.
      expect(answered).toBeGreaterThan(15)
      expect(bugs).toBeGreaterThan(0)
    },
    60_000,
  )
})
