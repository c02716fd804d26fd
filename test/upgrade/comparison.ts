import type { RecordedResponse } from './calls.ts'
import type { ApiResponse } from './http.ts'
import { valueAt, type Json } from './json.ts'

/**
 * Lists how a response differs from the recorded one. All fields and the lengths of lists must be equal, except:
 *
 * - Not compared, in any response: `error.message` and `error.traceId`; the value of `pagination.nextCursor` (other calls
 *   follow the cursors of this release); `time` of /v1/health; `text` of an inbox item and `limit` of
 *   `otpd guard status`, which may be reworded. Headers are not compared.
 * - Fields that a later release added are allowed; missing or different fields are not.
 * - On the real clock, times and ids that are newer than the fixture count as equal: see `maskLater`.
 */
export function listDifferences(expected: ApiResponse, actual: ApiResponse): string[] {
  if (expected.status !== actual.status) return [`status ${actual.status} instead of ${expected.status}`]
  return differencesAt('', maskVolatile(expected.body), maskVolatile(actual.body))
}

/** Lists how the responses differ from the recorded ones, each with its call. */
export const listAllDifferences = (
  expected: readonly RecordedResponse[],
  actual: readonly RecordedResponse[],
) =>
  expected.flatMap((response) => {
    const found = actual.find(({ as, path }) => as === response.as && path === response.path)
    const differences = found ? listDifferences(response, found) : ['not called']
    return differences.map((difference) => `${response.as} GET ${response.path} ${difference}`)
  })

function differencesAt(path: string, expected: Json, actual: Json): string[] {
  if (Array.isArray(expected) && Array.isArray(actual)) {
    if (expected.length !== actual.length) {
      return [`${path}: ${actual.length} elements instead of ${expected.length}`]
    }
    return expected.flatMap((value, n) => differencesAt(`${path}[${n}]`, value, actual[n] ?? null))
  }
  if (isObject(expected) && isObject(actual)) {
    return Object.entries(expected).flatMap(([name, value]) => {
      const found = actual[name]
      return found === undefined
        ? [`${path}.${name} is missing`]
        : differencesAt(`${path}.${name}`, value, found)
    })
  }
  if (Object.is(expected, actual)) return []
  return [`${path}: ${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}`]
}

const isObject = (value: Json): value is { [name: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const volatile = new Set(['limit', 'text', 'time', 'traceId'])

function maskVolatile(value: Json): Json {
  const isError = valueAt(value, 'error') !== null
  return mapFields(value, (name, field, parent) => {
    if (name === 'nextCursor') return field === null ? null : '<cursor>'
    // An audit entry stores the trace id of the change, which must stay the same; other trace ids are of this call.
    if (name === 'traceId' && valueAt(parent, 'action') !== null) return field
    if (volatile.has(name) && typeof field === 'string') return '<any>'
    return isError && name === 'message' ? '<any>' : field
  })
}

/**
 * Replaces times, days and ids from after `endedAt`: expiry, late webhook attempts and new logins depend on when the
 * test runs. The duration of such an attempt is replaced as well.
 */
export function maskLater(value: Json, endedAt: number): Json {
  const mask = (field: Json) => (typeof field === 'string' && isLater(field, endedAt) ? '<later>' : field)
  return mapFields(value, (name, field, parent) => {
    const isNewAttempt = name === 'durationMs' && mask(valueAt(parent, 'at')) === '<later>'
    return isNewAttempt ? '<later>' : mask(field)
  })
}

function isLater(text: string, endedAt: number): boolean {
  if (/^\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?Z)?$/.test(text)) return Date.parse(text) > endedAt
  const id = /^[a-z]+_([0-7][0-9a-hjkmnp-tv-z]{25})$/.exec(text)?.[1]
  return id !== undefined && readIdTime(id) > endedAt
}

/** Reads the milliseconds of a TypeID: its suffix is a UUIDv7 in base 32, and the first 48 bits are the time. */
function readIdTime(suffix: string): number {
  const digits = '0123456789abcdefghjkmnpqrstvwxyz'
  let bits = 0n
  for (const letter of suffix) bits = bits * 32n + BigInt(digits.indexOf(letter))
  return Number(bits >> 80n)
}

type FieldMap = (name: string, field: Json, parent: Json) => Json

function mapFields(value: Json, map: FieldMap): Json {
  if (Array.isArray(value)) return value.map((element) => mapFields(element, map))
  if (!isObject(value)) return value
  const fields = Object.entries(value).map(([name, field]) => [name, mapFields(map(name, field, value), map)])
  return Object.fromEntries(fields) as Json
}
