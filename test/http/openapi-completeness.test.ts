import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventBody } from '../../src/domain/log/changes.ts'
import type { OtpRequest } from '../../src/domain/model/request.ts'
import { errorExamples } from '../../src/http/openapi/error-examples.ts'
import { fieldExamples, fieldTexts, parameterTexts } from '../../src/http/openapi/field-texts.ts'
import { relayEventChange } from '../../src/domain/log/relay-events.ts'
import { eventKinds, type EventKind, type RelayKind } from '../../src/shared/event-kinds.ts'
import { createApiTester, type ApiTester } from '../helpers/api-tester.ts'
import { findSchemaFaults, type Schema } from '../helpers/json-schema.ts'

let apiTester: ApiTester

beforeAll(async () => void (apiTester = await createApiTester()), 60_000)
afterAll(() => apiTester.service.dispose())

const isSentence = (text: string | undefined) => /^[A-Z`][^]{8,}[.:]$/.test(text ?? '')

/** Lists the properties of a schema and of those inside of it, as `Schema.property`. */
function* listProperties(schema: Schema, name: string): Generator<{ path: string; property: Schema }> {
  for (const [key, property] of Object.entries(schema.properties ?? {})) {
    yield { path: `${name}.${key}`, property }
    yield* listProperties(property, `${name}.${key}`)
  }
  for (const inner of [...(schema.anyOf ?? []), ...(schema.items ? [schema.items] : [])])
    yield* listProperties(inner, name)
}

const allProperties = () =>
  Object.entries(apiTester.document.components.schemas).flatMap(([name, schema]) => [
    ...listProperties(schema, name),
  ])

// Descriptions of properties come from the route's schema, or from src/http/openapi/field-texts.ts; those of operations
// from the route's `detail`.
describe('the OpenAPI document describes', () => {
  test('the headers that refusals have, and no other', () => {
    for (const { operationId, responses, parameters = [] } of apiTester.operations) {
      const has = (status: string, header: string) => header in (responses[status]?.headers ?? {})
      const isReplayable = parameters.some(({ name }) => name === 'Idempotency-Key')
      // IDEMPOTENCY_IN_PROGRESS
      expect([operationId, has('409', 'Retry-After')]).toEqual([operationId, isReplayable])
      // The media type is checked before the caller is known.
      expect([operationId, has('415', 'RateLimit')]).toEqual([operationId, false])
    }
  })

  test('every operation', () => {
    const faults = apiTester.operations.filter(({ description }) => !isSentence(description))
    expect(faults.map(({ operationId }) => operationId)).toEqual([])
  })

  test('every parameter', () => {
    const faults = apiTester.operations.flatMap(({ operationId, parameters = [] }) =>
      parameters
        .filter(({ description }) => !isSentence(description))
        .map(({ name }) => `${operationId}.${name}`),
    )
    expect(faults).toEqual([])
  })

  test('every property', () => {
    const { schemas } = apiTester.document.components
    const describedBy = ({ $ref, description }: Schema) =>
      description ?? schemas[$ref?.replace('#/components/schemas/', '') ?? '']?.description
    const isBody = ({ $ref }: Schema) => $ref !== undefined && !schemas[$ref.split('/').at(-1) ?? '']?.enum
    const faults = allProperties().filter(
      ({ property }) => !isBody(property) && !isSentence(describedBy(property)),
    )
    expect(faults.map(({ path }) => path)).toEqual([])
  })

  test('every security scheme, with its header and where to get the value', () => {
    const { securitySchemes } = apiTester.document.components
    expect(Object.keys(securitySchemes).length).toBe(5)
    for (const { description = '' } of Object.values(securitySchemes)) {
      expect(description).toMatch(/Authorization|x-[a-z-]+/)
      expect(description).toMatch(/`otpd [a-z]+ [a-z]+`/)
      expect(description).toMatch(/`(GET|POST) \/v1\//)
    }
  })

  test('only properties, parameters and examples that exist', () => {
    const names = new Set(
      allProperties().flatMap(({ path }) => [
        path,
        path.split('.').at(-1) ?? '',
        path.split('.').slice(-2).join('.'),
      ]),
    )
    const parameters = new Set(
      apiTester.operations.flatMap(({ operationId, parameters = [] }) =>
        parameters.flatMap(({ name }) => [name, `${operationId}.${name}`]),
      ),
    )
    expect(Object.keys(fieldTexts).filter((name) => !names.has(name))).toEqual([])
    expect(Object.keys(fieldExamples).filter((name) => !names.has(name))).toEqual([])
    expect(Object.keys(parameterTexts).filter((name) => !parameters.has(name))).toEqual([])
  })
})

describe('the OpenAPI document names', () => {
  test('every request and response body', () => {
    const inline = apiTester.operations.flatMap(({ operationId, requestBody, responses }) => [
      ...Object.values(requestBody?.content ?? {}).map(({ schema }) => ({ operationId, schema })),
      ...Object.values(responses).flatMap(({ content }) =>
        Object.entries(content)
          .filter(([mediaType]) => mediaType === 'application/json')
          .map(([, { schema }]) => ({ operationId, schema })),
      ),
    ])
    expect(inline.filter(({ schema }) => schema.$ref === undefined).map((one) => one.operationId)).toEqual([])
    const inner = allProperties().filter(({ property }) =>
      [property, property.items, ...(property.anyOf ?? [])].some((one) => one?.properties),
    )
    expect(inner.map(({ path }) => path)).toEqual([])
  })

  test('nothing as a generator of clients names what it makes of an operation', () => {
    const taken = apiTester.operations.map(
      ({ operationId }) => `${operationId.charAt(0).toUpperCase()}${operationId.slice(1)}Response`,
    )
    const { schemas } = apiTester.document.components
    expect(taken.filter((name) => name in schemas)).toEqual([])
  })

  test('each list of words once, without null and const', () => {
    const enums = [
      ...Object.entries(apiTester.document.components.schemas),
      ...allProperties().map(({ path, property }) => [path, property] as const),
    ]
      .filter(([, { enum: words }]) => words !== undefined && words.length > 1)
      .map(([name, schema]) => ({ name, words: schema.enum?.join() ?? '' }))
    const repeated = enums.filter(({ words }, index) =>
      enums.some((one, i) => i < index && one.words === words),
    )
    expect(repeated).toEqual([])
    expect(JSON.stringify(apiTester.document)).not.toContain('"const"')
    expect(JSON.stringify(apiTester.document)).not.toMatch(/"enum":\[[^\]]*null/)
  })
})

describe('the errors of an operation', () => {
  test('are listed with an example of each code', () => {
    const faults = apiTester.operations.flatMap((operation) =>
      Object.entries(operation.responses)
        .filter(([status]) => Number(status) >= 400)
        .filter(([, { content }]) => Object.keys(content['application/json']?.examples ?? {}).length === 0)
        .map(([status]) => `${operation.operationId} ${status}`),
    )
    // Says why the server is not ready.
    expect(faults).toEqual(['getReadiness 503'])
    for (const operation of apiTester.operations)
      for (const [status, { description }] of Object.entries(operation.responses))
        for (const { value } of apiTester.errorExamples(operation, status))
          expect(description).toContain(`\`${value.error.code}\``)
  })

  test('are in the catalogue, which the introduction repeats', () => {
    const { info, components } = apiTester.document
    const codes = new Set<string>(Object.values(errorExamples).map(({ code }) => code))
    expect([...codes].toSorted()).toEqual(
      [...(components.schemas['ErrorCode']?.enum ?? [])].map(String).toSorted(),
    )
    for (const { code } of Object.values(errorExamples)) expect(info.description).toContain(`\`${code}\``)
    const unused = Object.keys(errorExamples).filter((name) => !(name in components.examples))
    expect(unused).toEqual(['METHOD_NOT_ALLOWED', 'EXPECTATION_FAILED'])
  })
})

describe('the callbacks of the document', () => {
  test('have the body of each event', () => {
    const { components, paths } = apiTester.document
    const { callbacks = {} } = paths['/v1/webhooks']?.['post'] ?? {}
    expect(Object.keys(callbacks).toSorted()).toEqual([...eventKinds].toSorted())
    const request: OtpRequest = {
      id: 'otp_01kaaaaaaaeekr1q2v3w4x5y6z',
      developerId: 'dev_1',
      projectId: 'prj_1',
      appId: 'app_1',
      environment: 'live',
      phone: '+14155550100',
      country: 'US',
      status: 'verified',
      failureReason: null,
      channel: 'sms',
      provider: 'twilio',
      deliveryStatus: 'sent',
      locale: null,
      clientIp: null,
      metadata: { order: '7' },
      codeSalt: '',
      codeHash: '',
      attempts: 1,
      resends: 0,
      createdAt: 0,
      sentAt: 0,
      expiresAt: 0,
      verifiedAt: 0,
      previousRequest: null,
      startedBy: null,
      contexts: [],
      updatedAt: 0,
      history: '',
      ownText: null,
      template: null,
      compat: null,
      traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
    }
    const relayedData = (kind: EventKind) => {
      const message = { ...request, id: 'msg_1' }
      const change = relayEventChange(() => '', kind as RelayKind, message, [], 0)
      return change.kind === 'event' ? JSON.parse(change.event.toPayload('evt_1')).data : undefined
    }
    const alert = { country: 'US', prefix: null, reason: 'rate', unverified: 100, usual: 8 }
    for (const kind of eventKinds) {
      const body = {
        ...eventBody('evt_1', kind, request, 0, kind === 'session.verified' ? 'ses_1' : undefined),
        ...(kind === 'guard.alert' ? { data: alert } : { test: true }),
        ...(kind.startsWith('message.') && { data: relayedData(kind) }),
      }
      const { schema } =
        callbacks[kind]?.['{$request.body#/url}']?.post.requestBody?.content['application/json'] ?? {}
      if (!schema) throw new Error(`There is no body of ${kind}.`)
      expect([kind, findSchemaFaults(schema, body, components.schemas, true)]).toEqual([kind, []])
      const [missing] = Object.keys(body)
      const { [missing as 'id']: _, ...incomplete } = body
      expect(findSchemaFaults(schema, incomplete, components.schemas, true)).not.toEqual([])
    }
  })
})
