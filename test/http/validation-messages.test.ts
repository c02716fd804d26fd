import { afterAll, beforeAll, expect, test } from 'bun:test'
import { describeExpectation } from '../../src/http/expectations.ts'
import { nullable, object, oneOf, text } from '../../src/http/schemas.ts'
import { Type, type TSchema } from '@sinclair/typebox'
import { createApiTester, type ApiTester } from '../helpers/api-tester.ts'

let apiTester: ApiTester

beforeAll(async () => void (apiTester = await createApiTester()))
afterAll(() => apiTester.service.dispose())

const sizes = Type.Union([Type.Literal('small'), Type.Literal('large')])
const address = Type.Union([Type.String({ format: 'ipv4' }), Type.String({ format: 'ipv6' })])

const cases: Array<[TSchema, unknown, string]> = [
  [Type.String(), 5, 'Expected a string.'],
  [Type.String({ minLength: 1, maxLength: 64 }), '', 'Expected a string of 1 to 64 characters.'],
  [Type.Integer(), 'x', 'Expected a whole number.'],
  [Type.Integer({ minimum: 60, maximum: 600 }), 5, 'Expected a whole number from 60 to 600.'],
  [Type.Number(), 'x', 'Expected a number.'],
  [Type.Boolean(), 'x', 'Expected true or false.'],
  [Type.Array(Type.String()), 'x', 'Expected a list.'],
  [object({}), 'x', 'Expected an object.'],
  [Type.Null(), 'x', 'Expected null.'],
  [Type.Literal('live'), 'x', 'Expected live.'],
  [sizes, 'x', 'Expected small or large.'],
  [nullable(sizes), 5, 'Expected small, large or null.'],
  [oneOf(['a', 'b']), 'x', 'Expected one of a, b.'],
  [address, 'x', 'Expected a string.'],
  [nullable(Type.String()), 5, 'Expected a string or null.'],
  [nullable(text(3, 'Expected up to 3 characters')), 5, 'Expected a string or null.'],
  [nullable(text(3, 'Expected up to 3 characters')), 'four', 'Expected up to 3 characters.'],
]

test.each(cases)('a value that %j rejects gets a sentence: %j', (schema, value, sentence) => {
  expect(describeExpectation(schema, value)).toBe(sentence)
})

test('every field of every operation has one', async () => {
  const values = [null, true, 7, 1.5, '', '   ', 'x'.repeat(9000), [], [[]], {}, { a: 1 }]
  const sentences = new Set<string>()
  for (const operation of apiTester.operations.filter(({ body }) => body !== undefined)) {
    const complete = apiTester.validBody(operation, apiTester.owner)
    for (const field of Object.keys(operation.body?.properties ?? {}))
      for (const value of values) {
        const body = JSON.stringify({ ...complete, [field]: value })
        if (apiTester.acceptsBody(operation, JSON.parse(body))) continue
        const { response } = await apiTester.callAndCheck(operation, { body })
        const { details = [] } = JSON.parse(response.text).error
        for (const { message } of details) sentences.add(message)
      }
  }
  expect(sentences.size).toBeGreaterThan(15)
  const readable = /^(Expected|Cannot|Not allowed|Unknown property|Required)[^]*\.$/
  const jargon = /\b(union|schema|pattern|kind|property to|to be|to match|to have)\b/
  const faulty = [...sentences].filter((sentence) => !readable.test(sentence) || jargon.test(sentence))
  expect(faulty).toEqual([])
})
