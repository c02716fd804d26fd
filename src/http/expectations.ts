import { isRecord } from '../shared/json.ts'

/**
 * Says in one sentence what a schema accepts, for the message of a value that it rejects. A schema's own `errorText`
 * comes first; of a union, the alternative that has the type of the value.
 */
export function describeExpectation(schema: unknown, value: unknown): string {
  if (!isRecord(schema)) return 'Not allowed here.'
  if (typeof schema['errorText'] === 'string') return toSentence(schema['errorText'])
  const alternatives = listAlternatives(schema)
  const type = jsonType(value)
  const meant = alternatives.filter((one) => one['type'] === type && !('const' in one))
  const [only] = meant
  if (alternatives.length > 1 && only && meant.length === 1) return describeExpectation(only, value)
  return `Expected ${joinNouns([...new Set(alternatives.map(toNoun))])}.`
}

const toSentence = (text: string) => (text.endsWith('.') ? text : `${text}.`)

const listAlternatives = (schema: Record<string, unknown>): Array<Record<string, unknown>> =>
  Array.isArray(schema['anyOf']) ? schema['anyOf'].filter(isRecord).flatMap(listAlternatives) : [schema]

const jsonType = (value: unknown) =>
  value === null
    ? 'null'
    : Array.isArray(value)
      ? 'array'
      : Number.isInteger(value)
        ? 'integer'
        : typeof value

/** `a string or null`, `live, test or null` */
const joinNouns = (nouns: string[]) =>
  nouns.length > 1 ? `${nouns.slice(0, -1).join(', ')} or ${nouns.at(-1)}` : (nouns[0] ?? 'nothing')

function toNoun(schema: Record<string, unknown>): string {
  const { type } = schema
  if ('const' in schema) return String(schema['const'])
  if (Array.isArray(schema['enum'])) return `one of ${schema['enum'].join(', ')}`
  if (type === 'string') return `a string${describeRange(schema['minLength'], schema['maxLength'], ' of')}`
  if (type === 'integer') return `a whole number${describeRange(schema['minimum'], schema['maximum'], '')}`
  return typeNames[String(type)] ?? 'another value'
}

const typeNames: Readonly<Record<string, string>> = {
  null: 'null',
  boolean: 'true or false',
  number: 'a number',
  array: 'a list',
  object: 'an object',
}

/** ` from 60 to 600`, ` of 1 to 64 characters`; empty without a maximum. */
function describeRange(min: unknown, max: unknown, of: '' | ' of'): string {
  if (typeof max !== 'number') return ''
  const from = typeof min === 'number' ? min : 0
  return of === '' ? ` from ${from} to ${max}` : ` of ${from} to ${max} characters`
}
