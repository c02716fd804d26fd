import type { ErrorDetail } from '../domain/model/errors.ts'
import { isRecord } from '../shared/json.ts'
import { suggest } from '../shared/suggestion.ts'
import { isRepeatableName } from './caller-names.ts'

/**
 * Says in one sentence what a schema accepts, for the message of a value that it rejects. A value of another type gets
 * both types. Otherwise a schema's own `errorText` comes first; of a union, the alternative that has the type of the value.
 */
export function describeExpectation(schema: unknown, value: unknown): string {
  if (!isRecord(schema)) return 'Not allowed here.'
  const alternatives = listAlternatives(schema)
  const type = jsonType(value)
  const nouns = joinNouns([...new Set(alternatives.map(toNoun))])
  const isOfOtherType = alternatives.every((one) => !hasType(one, type))
  if (isOfOtherType && value !== undefined) return `Expected ${nouns}, not ${typeNames[type]}.`
  if (typeof schema['errorText'] === 'string') return toSentence(schema['errorText'])
  const meant = alternatives.filter((one) => one['type'] === type && !('const' in one))
  const [only] = meant
  if (alternatives.length > 1 && only && meant.length === 1) return describeExpectation(only, value)
  return `Expected ${nouns}.`
}

/** Says what to do about a property, or a query parameter, that the schema of its object does not have. */
export function describeUnknown(location: ErrorDetail['in'], schema: unknown, name: string): string {
  const noun = location === 'query' ? 'query parameter' : 'property'
  const { properties = {}, errorText } = isRecord(schema) ? schema : {}
  const known = isRecord(properties) ? Object.keys(properties) : []
  if (known.length === 0 && typeof errorText === 'string') return toSentence(errorText)
  const suggestion = name === '' ? undefined : suggest(name, known)
  if (suggestion !== undefined) return `Unknown ${noun}. ${suggestion}`
  if (isRepeatableName(name) || known.length === 0) return `Unknown ${noun}. Remove it.`
  return `Unknown ${noun}; its name is left out, since it could be a secret. Expected only ${known.join(', ')}.`
}

const toSentence = (text: string) => (text.endsWith('.') ? text : `${text}.`)

const listAlternatives = (schema: Record<string, unknown>): Array<Record<string, unknown>> =>
  Array.isArray(schema['anyOf']) ? schema['anyOf'].filter(isRecord).flatMap(listAlternatives) : [schema]

type JsonType = keyof typeof typeNames

function jsonType(value: unknown): JsonType {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  if (typeof value === 'string') return 'string'
  return typeof value === 'boolean' ? 'boolean' : 'object'
}

/** Whether a schema takes values of a type; every type if it names none. */
function hasType(schema: Record<string, unknown>, type: JsonType): boolean {
  const own = 'const' in schema ? jsonType(schema['const']) : schema['type']
  const isNumber = (name: unknown) => name === 'integer' || name === 'number'
  return typeof own !== 'string' || own === type || (isNumber(own) && isNumber(type))
}

/** `a string or null`, `live, test or null` */
const joinNouns = (nouns: string[]) =>
  nouns.length > 1 ? `${nouns.slice(0, -1).join(', ')} or ${nouns.at(-1)}` : (nouns[0] ?? 'nothing')

function toNoun(schema: Record<string, unknown>): string {
  const { type } = schema
  if ('const' in schema) return String(schema['const'])
  if (Array.isArray(schema['enum'])) return `one of ${schema['enum'].join(', ')}`
  if (type === 'string') return `a string${describeRange(schema['minLength'], schema['maxLength'], ' of')}`
  if (type === 'integer') return `a whole number${describeRange(schema['minimum'], schema['maximum'], '')}`
  if (type === 'boolean') return 'true or false'
  return Object.entries(typeNames).find(([name]) => name === type)?.[1] ?? 'another value'
}

const typeNames = {
  null: 'null',
  boolean: 'a boolean',
  string: 'a string',
  integer: 'a number',
  number: 'a number',
  array: 'a list',
  object: 'an object',
} as const

/** ` from 60 to 600`, ` of 1 to 64 characters`; empty without a maximum. */
function describeRange(min: unknown, max: unknown, of: '' | ' of'): string {
  if (typeof max !== 'number') return ''
  if (of === '') return ` from ${typeof min === 'number' ? min : 0} to ${max}`
  return typeof min === 'number' ? ` of ${min} to ${max} characters` : ` of up to ${max} characters`
}
