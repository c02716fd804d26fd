import { Elysia } from 'elysia'
import { ServiceError } from '../domain/model/errors.ts'
import { isRecord } from '../shared/json.ts'
import { readUpTo } from '../shared/read-up-to.ts'
import { isRepeatableName } from './caller-names.ts'

/** Limit for the body of every request, in bytes. */
export const bodyBytesMax = 64 * 1024

/**
 * Plugin that parses the bodies of the routes it is used with: a JSON object of at most 64 KiB, sent as
 * `application/json`. It replaces the framework's parser, which also accepts forms and plain text: browsers may send
 * those to any site without a preflight.
 *
 * @throws UNSUPPORTED_MEDIA_TYPE; PAYLOAD_TOO_LARGE; MALFORMED_JSON
 */
export const jsonBody = new Elysia({ name: 'json-body' }).onParse({ as: 'scoped' }, ({ request }) =>
  // Requests without a body have no media type. If the route requires a body, validation rejects `{}` (`emptyBody`).
  request.body === null ? {} : readJson(request),
)

/** Reads a JSON object. @throws as `jsonBody` */
export async function readJson(request: Request): Promise<Record<string, unknown>> {
  if (!isJsonMediaType(request.headers.get('content-type') ?? '')) {
    throw new ServiceError(
      'UNSUPPORTED_MEDIA_TYPE',
      'Unsupported media type. Send the body as application/json, in UTF-8.',
    )
  }
  const text = await readText(request)
  if (text.startsWith('\uFEFF'))
    throw malformedJson('The body begins with a byte order mark. Send UTF-8 without it.')
  let value: unknown
  try {
    value = parseStrictJson(text)
  } catch (error) {
    throw malformedJson(error instanceof SyntaxError ? error.message : 'The body is not valid JSON.')
  }
  if (!isRecord(value)) throw malformedJson('Expected the body to be a JSON object.')
  return value
}

/** Maximum nesting of arrays and objects. No request of the API needs more than two levels. */
const depthMax = 32

/** Maximum number of properties in all objects of a body. No request of the API needs a tenth. */
const propertiesMax = 1000

/** A string where a search begins, and the colon that follows the name of a property. */
const stringToken = /"([^"\\]*(?:\\.[^"\\]*)*)"([ \t\r\n]*:)?/y

/**
 * Parses JSON that every parser reads the same way (I-JSON, RFC 7493 §2): no duplicate names and no unpaired surrogates.
 * Also rejects NUL, which not every database can store, and nesting that could overflow the stack of later recursion.
 * Callers need no credentials to have a body parsed: nesting and properties are limited before the parser sees them, which
 * would take as long as dozens of calls.
 *
 * @throws SyntaxError with a message that quotes no part of the text but a repeatable name
 */
export function parseStrictJson(text: string): unknown {
  /** Property names of every open object; an empty set for an array. */
  const openObjects: Array<Set<string>> = []
  let properties = 0
  let hidesToString = false
  // A loop over characters takes half the time of a regular expression for all tokens.
  for (let index = 0; index < text.length; index++) {
    const character = text[index]
    if (character === '"') {
      stringToken.lastIndex = index
      const found = stringToken.exec(text)
      if (!found) throw invalidJson()
      const [token, quoted = '', colon] = found
      index += token.length - 1
      const name = quoted.includes('\\') ? String(parse(`"${quoted}"`)) : quoted
      if (!name.isWellFormed() || name.includes('\0'))
        throw new SyntaxError('A string contains NUL or an unpaired surrogate.')
      if (colon === undefined) continue
      const names = openObjects.at(-1)
      if (names?.has(name)) {
        const which = isRepeatableName(name) ? `the property ${name}` : 'a property name'
        throw new SyntaxError(`The body repeats ${which} within one object. Send each property once.`)
      }
      names?.add(name)
      if (name === 'toString') hidesToString = true
      if (++properties > propertiesMax)
        throw new SyntaxError(`The body has more than ${propertiesMax} properties.`)
    } else if (character === '}' || character === ']') {
      openObjects.pop()
    } else if (character === '{' || character === '[') {
      if (openObjects.push(new Set()) > depthMax)
        throw new SyntaxError(`The body is nested more than ${depthMax} levels deep.`)
    }
  }
  return parse(text, hidesToString ? withPrimitive : undefined)
}

function parse(text: string, revive?: typeof withPrimitive): unknown {
  try {
    return JSON.parse(text, revive)
  } catch {
    throw invalidJson()
  }
}

/** Lets an object become text that has a property `toString`: the framework puts rejected values into the text of its errors. */
function withPrimitive(_: string, value: unknown): unknown {
  return isRecord(value) && Object.hasOwn(value, 'toString')
    ? Object.defineProperty(value, Symbol.toPrimitive, { value: () => 'an object' })
    : value
}

const invalidJson = () => new SyntaxError('The body is not valid JSON.')

/** JSON has no `charset` parameter (RFC 8259 §11), but many clients send utf-8, which it always is. */
function isJsonMediaType(type: string): boolean {
  const charset = /; *charset *= *"?([^";]*)/i.exec(type)?.[1]
  return /^application\/json *(;.*)?$/i.test(type) && /^(utf-?8 *)?$/i.test(charset ?? '')
}

/**
 * Reads the body as UTF-8 text.
 *
 * @throws UNSUPPORTED_MEDIA_TYPE when it is compressed; PAYLOAD_TOO_LARGE when it is over 64 KiB, with or without
 *   Content-Length; MALFORMED_JSON when it is incomplete or not UTF-8
 */
export async function readText(request: Request): Promise<string> {
  // `identity` means no coding (RFC 9110 §8.4.1).
  if (!/^(identity)?$/i.test(request.headers.get('content-encoding') ?? '')) {
    throw new ServiceError(
      'UNSUPPORTED_MEDIA_TYPE',
      'Compressed bodies are not supported. Send the body without Content-Encoding.',
    )
  }
  if (request.body === null) return ''
  const length = request.headers.get('content-length')
  if (Number(length) > bodyBytesMax) throw payloadTooLarge()
  const bytes = await (
    length === null ? readUpTo(bodyBytesMax, request.body, payloadTooLarge) : request.bytes()
  ).catch(bodyError)
  try {
    return utf8.decode(bytes)
  } catch {
    throw malformedJson('The body is not valid UTF-8. Encode it as UTF-8.')
  }
}

/** The client disconnected or timed out, unless the body is too large. */
function bodyError(error: unknown): never {
  if (error instanceof ServiceError) throw error
  throw malformedJson('The body ended before Content-Length bytes were received.')
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** MALFORMED_JSON for a route that requires a body. */
export const emptyBody = () => malformedJson('The body is empty. Send a JSON object.')

const malformedJson = (message: string) => new ServiceError('MALFORMED_JSON', message)

/** Creates the error for a body over the limit. */
export const payloadTooLarge = () =>
  new ServiceError(
    'PAYLOAD_TOO_LARGE',
    `The body is larger than ${bodyBytesMax / 1024} KiB. Send a smaller one.`,
    {
      metadata: { bytesMax: bodyBytesMax },
    },
  )
