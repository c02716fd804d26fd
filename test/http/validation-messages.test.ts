import { afterAll, beforeAll, expect, test } from 'bun:test'
import { describeExpectation } from '../../src/http/expectations.ts'
import { nullable, object, oneOf, text } from '../../src/http/schemas.ts'
import { Type, type TSchema } from '@sinclair/typebox'
import type { ErrorDetail } from '../../src/domain/model/errors.ts'
import { canary, createApiTester, type ApiTester, type ApiTestRequest } from '../helpers/api-tester.ts'
import type { Operation } from '../helpers/openapi.ts'

let apiTester: ApiTester

beforeAll(async () => void (apiTester = await createApiTester()))
afterAll(() => apiTester.service.dispose())

const sizes = Type.Union([Type.Literal('small'), Type.Literal('large')])
const address = Type.Union([Type.String({ format: 'ipv4' }), Type.String({ format: 'ipv6' })])

const cases: Array<[TSchema, unknown, string]> = [
  [Type.String(), 5, 'Expected a string, not a number.'],
  [Type.String({ minLength: 1, maxLength: 64 }), '', 'Expected a string of 1 to 64 characters.'],
  [Type.String({ maxLength: 64 }), null, 'Expected a string of up to 64 characters, not null.'],
  [Type.Integer(), 'x', 'Expected a whole number, not a string.'],
  [Type.Integer(), 1.5, 'Expected a whole number.'],
  [Type.Integer({ minimum: 60, maximum: 600 }), 5, 'Expected a whole number from 60 to 600.'],
  [Type.Number(), 'x', 'Expected a number, not a string.'],
  [Type.Boolean(), 'x', 'Expected true or false, not a string.'],
  [Type.Array(Type.String()), 'x', 'Expected a list, not a string.'],
  [object({}), [], 'Expected an object, not a list.'],
  [Type.Null(), true, 'Expected null, not a boolean.'],
  [Type.Literal('live'), 'x', 'Expected live.'],
  [sizes, 'x', 'Expected small or large.'],
  [nullable(sizes), 5, 'Expected small, large or null, not a number.'],
  [oneOf(['a', 'b']), 'x', 'Expected one of a, b.'],
  [address, 'x', 'Expected a string.'],
  [nullable(Type.String()), {}, 'Expected a string or null, not an object.'],
  [nullable(text(3, 'Expected up to 3 characters')), 5, 'Expected a string or null, not a number.'],
  [nullable(text(3, 'Expected up to 3 characters')), 'four', 'Expected up to 3 characters.'],
]

test.each(cases)('a value that %j rejects gets a sentence: %j', (schema, value, sentence) => {
  expect(describeExpectation(schema, value)).toBe(sentence)
})

const refuse = async (operation: Operation, request: ApiTestRequest): Promise<ErrorDetail[]> => {
  const { response, faults } = await apiTester.callAndCheck(operation, request)
  expect([operation.operationId, response.status, faults]).toEqual([operation.operationId, 400, []])
  return JSON.parse(response.text).error.details ?? []
}

test('every field of every operation has one, which names the field and a wrong type', async () => {
  const values = [null, true, 7, 1.5, '', '   ', 'x'.repeat(9000), [], [[]], {}, { a: 1 }]
  const sentences = new Set<string>()
  for (const operation of apiTester.operations.filter(({ body }) => body !== undefined)) {
    // It takes one property only.
    const isSingle = operation.operationId === 'disableTotp'
    const complete = isSingle ? {} : apiTester.validBody(operation, apiTester.owner)
    for (const field of Object.keys(operation.body?.properties ?? {}))
      for (const value of values) {
        const body = JSON.stringify({ ...complete, [field]: value })
        if (apiTester.acceptsBody(operation, JSON.parse(body))) continue
        const details = await refuse(operation, { body })
        for (const { message } of details) sentences.add(message)
        expect([operation.operationId, body, details[0]?.path.split('.')[0]]).toEqual([
          operation.operationId,
          body,
          field,
        ])
        if ((complete[field] ?? null) !== null && typeof value !== typeof complete[field])
          expect(details[0]?.message).toMatch(/^Expected [^]+, not (null|an? [a-z]+)\.$/)
      }
  }
  expect(sentences.size).toBeGreaterThan(15)
  const readable = /^(Expected|Cannot|Not allowed|Unknown (property|query parameter)|Required)[^]*[.?]$/
  const jargon = /\b(union|schema|pattern|kind|property to|to be|to match|to have)\b/
  const faulty = [...sentences].filter((sentence) => !readable.test(sentence) || jargon.test(sentence))
  expect(faulty).toEqual([])
})

test('an unknown property or parameter is named with what was meant, unless the name could be a secret', async () => {
  const operations = new Map(apiTester.operations.map((operation) => [operation.operationId, operation]))
  const [send, list] = [operations.get('sendOtp'), operations.get('listOtpRequests')]
  if (!send || !list) throw new Error('no such operation')
  const complete = apiTester.validBody(send, apiTester.owner)
  const unknown = async (name: string) =>
    (await refuse(send, { body: JSON.stringify({ ...complete, [name]: 1 }) }))[0]
  for (const [name, meant] of [
    ['clientIP', 'clientIp'],
    ['deviceID', 'deviceId'],
    ['TTLSeconds', 'ttlSeconds'],
    ['phoneNumber', 'phone'],
  ] as const)
    expect(await unknown(name)).toMatchObject({
      path: name,
      code: 'UNKNOWN',
      message: `Unknown property. Did you mean ${meant}?`,
    })
  expect(await unknown('userID')).toMatchObject({ path: 'userID', message: 'Unknown property. Remove it.' })
  for (const locale of ['xx', 'xx-YY'])
    expect(await refuse(send, { body: JSON.stringify({ ...complete, locale }) })).toMatchObject([
      { path: 'locale', message: 'Expected the tag of a language, such as en or pt-BR.' },
    ])
  const secret = await unknown(canary)
  expect(secret).toMatchObject({ path: '', code: 'UNKNOWN' })
  expect(secret?.message).toContain('Expected only phone, country, channel, locale,')
  expect(await refuse(list, { query: '?appID=x' })).toMatchObject([
    { path: 'appID', message: 'Unknown query parameter. Did you mean appId?' },
  ])
  expect(await refuse(list, { query: '?limit=1&limit=2' })).toMatchObject([
    { path: 'limit', code: 'REPEATED' },
  ])
  expect(await refuse(list, { query: '?cursor=%zz' })).toMatchObject([{ path: 'cursor' }])
  const { response } = await apiTester.callAndCheck(send, { body: '{"phone":"+14155550100","phone":"x"}' })
  expect(response.json).toMatchObject({
    error: { message: 'The body repeats the property phone within one object. Send each property once.' },
  })
})
