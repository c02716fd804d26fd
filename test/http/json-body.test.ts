import { expect, spyOn, test } from 'bun:test'
import { parseStrictJson } from '../../src/http/json-body.ts'

const properties = (count: number) => `{${Array.from({ length: count }, (_, i) => `"k${i}":1`).join()}}`

test.each([
  ['nested', '['.repeat(60_000), 'The body is nested more than 32 levels deep.'],
  ['nested in objects', '{"a":'.repeat(12_000), 'The body is nested more than 32 levels deep.'],
  ['many properties', properties(6000), 'The body has more than 1000 properties.'],
  ['a string without an end', `{"a":"${'x'.repeat(60_000)}`, 'The body is not valid JSON.'],
])('a body that would take long to parse is not parsed: %s', (_, text, message) => {
  const parse = spyOn(JSON, 'parse')
  try {
    expect(() => parseStrictJson(text)).toThrow(message)
    expect(parse).not.toHaveBeenCalled()
  } finally {
    parse.mockRestore()
  }
})

test('a thousand properties and 32 levels are parsed, and a wrong escape in a name is no JSON', () => {
  expect(Object.keys(parseStrictJson(properties(1000)) as object)).toHaveLength(1000)
  expect(parseStrictJson('['.repeat(32) + ']'.repeat(32))).toBeArray()
  expect(() => parseStrictJson('{"\\x":1}')).toThrow('The body is not valid JSON.')
})
