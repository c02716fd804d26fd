import { Type, type Static, type TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { invalidField, ServiceError } from '../../../domain/model/errors.ts'
import { readText } from '../../json-body.ts'

/** Every field that Twilio documents for a verification, a check, an update, a list and the safe list. */
const fieldNames = [
  'To',
  'Channel',
  'Locale',
  'DeviceIp',
  'Tags',
  'AppHash',
  'RiskCheck',
  'EnableSnaClientToken',
  'CustomCode',
  'CustomFriendlyName',
  'CustomMessage',
  'SendDigits',
  'Amount',
  'Payee',
  'RateLimits',
  'ChannelConfiguration',
  'TemplateSid',
  'TemplateCustomSubstitutions',
  'Templates',
  'Code',
  'VerificationSid',
  'SnaClientToken',
  'Status',
  'PageSize',
  'Page',
  'PageToken',
  'VerifyServiceSid',
  'ChannelData.To',
  'Country',
  'DateCreatedAfter',
  'DateCreatedBefore',
  'PhoneNumber',
] as const

type FieldName = (typeof fieldNames)[number]

/** Fields that have a value: empty ones count as absent, as at Twilio. */
export type Fields<Name extends FieldName> = { [N in Name]?: string }

/** Tells whether an error may name a field: only Twilio's own names. */
export const isFieldName = (name: string): name is FieldName =>
  (fieldNames as readonly string[]).includes(name)

/** INVALID_ARGUMENT for one of Twilio's fields. */
export const invalidParameter = (name: FieldName) => invalidField('body', name, 'Invalid parameter.')

/**
 * Reads the body of a POST as a form.
 *
 * @throws INVALID_ARGUMENT for a field that is not taken or is repeated; UNSUPPORTED_MEDIA_TYPE; PAYLOAD_TOO_LARGE;
 *   MALFORMED_JSON when the body is not UTF-8
 */
export async function readFields<const Name extends FieldName>(
  request: Request,
  taken: readonly Name[],
): Promise<Fields<Name>> {
  if (request.body === null) return {}
  const text = await readText(request)
  const type = request.headers.get('content-type') ?? ''
  if (text !== '' && !/^application\/x-www-form-urlencoded *(;.*)?$/i.test(type))
    throw new ServiceError('UNSUPPORTED_MEDIA_TYPE', 'Send the body as application/x-www-form-urlencoded.')
  return pickFields(new URLSearchParams(text), taken)
}

/** Reads a query. @throws INVALID_ARGUMENT as `readFields` */
export const readQuery = <const Name extends FieldName>(request: Request, taken: readonly Name[]) =>
  pickFields(new URL(request.url).searchParams, taken)

function pickFields<Name extends FieldName>(values: URLSearchParams, taken: readonly Name[]): Fields<Name> {
  const fields: Fields<Name> = {}
  const seen = new Set<string>()
  for (const [name, value] of values) {
    if (seen.has(name)) throw invalidField('body', name, 'A field is repeated.')
    seen.add(name)
    if (value === '') continue
    const known = taken.find((one) => one === name)
    // Refused and never ignored: a caller that relies on it must not be told that all is well.
    if (known === undefined) throw invalidField('body', name, 'This field is not supported.')
    fields[known] = value
  }
  return fields
}

/** Checks a value by the schema of the API. @throws INVALID_ARGUMENT */
export function checkField<T extends TSchema>(name: FieldName, schema: T, value: unknown): Static<T> {
  if (!Value.Check(schema, value)) throw invalidParameter(name)
  return value
}

const wholeNumber = Type.String({ pattern: '^(0|[1-9][0-9]{0,9})$' })

/** Reads a whole number. @throws INVALID_ARGUMENT if it is out of range */
function readNumber(
  name: FieldName,
  text: string | undefined,
  { min, max, otherwise }: { min: number; max: number; otherwise: number },
): number {
  if (text === undefined) return otherwise
  const value = Number(checkField(name, wholeNumber, text))
  if (value < min || value > max) throw invalidParameter(name)
  return value
}

/** Fields with which a list is read page by page. */
export const pageFields = ['PageSize', 'Page', 'PageToken'] as const

const pageSizeDefault = 50
const pageSizeMax = 1000
const pageMax = 1_000_000

/** Reads the page of a list. @throws INVALID_ARGUMENT */
export const readPage = ({ Page, PageSize }: Fields<'Page' | 'PageSize'>) => ({
  page: readNumber('Page', Page, { min: 0, max: pageMax, otherwise: 0 }),
  pageSize: readNumber('PageSize', PageSize, { min: 1, max: pageSizeMax, otherwise: pageSizeDefault }),
})
