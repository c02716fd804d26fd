import { expect, test } from 'bun:test'
import { isRecord, parseJson } from '../../src/shared/json.ts'

test.each<[unknown, boolean]>([
  [{}, true],
  [{ a: 1 }, true],
  [Object.create(null), true],
  [new Date(0), true],
  [null, false],
  [undefined, false],
  [[], false],
  [[{}], false],
  ['{}', false],
  [1, false],
  [() => ({}), false],
])('tells whether %p has properties: %p', (value, expected) => {
  expect(isRecord(value)).toBe(expected)
})

test.each<[string, unknown]>([
  ['{"a":[1]}', { a: [1] }],
  ['null', null],
  ['"text"', 'text'],
  ['', undefined],
  ['{', undefined],
  ['<html>', undefined],
])('parses %j, or finds that it is no JSON', (text, expected) => {
  expect(parseJson(text)).toEqual(expected)
})
