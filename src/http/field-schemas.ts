import {
  FormatRegistry,
  Type,
  type SchemaOptions,
  type TOptional,
  type TProperties,
  type TSchema,
  type TUnsafe,
} from '@sinclair/typebox'
import {
  mapProperties,
  type FieldDefinition,
  type FieldDefinitions,
  type FieldValue,
} from '../shared/fields.ts'
import { isKnownCountry, noCountry } from '../domain/model/phone.ts'
import { normalizeCountry } from '../shared/spellings.ts'
import { applicationFields } from '../shared/application-fields.ts'
import { nullable } from './schemas.ts'
import { hasLanguage } from '../domain/model/template-text.ts'

/** A schema for each field, with the type of the field's value. */
type FieldSchemas<F extends FieldDefinitions> = { [K in keyof F]: TUnsafe<FieldValue<F[K]>> }

const mapSchemas = <F extends FieldDefinitions>(fields: F, toSchema: (field: FieldDefinition) => TSchema) =>
  mapProperties<F, Record<keyof F, TSchema>>(fields, toSchema) as FieldSchemas<F>

/** Creates the schemas of fields in requests. */
export const requestSchemas = <F extends FieldDefinitions>(fields: F) => mapSchemas(fields, requestSchema)

/** Creates the schemas of fields in a request that may leave them out. */
export const optionalSchemas = <F extends FieldDefinitions>(fields: F) =>
  mapProperties<F, Record<keyof F, TSchema>>(fields, (field) => Type.Optional(requestSchema(field))) as {
    [K in keyof F]: TOptional<TUnsafe<FieldValue<F[K]>>>
  }

/** Creates the schemas of fields in responses. They state no range, which a later version may extend. */
export const responseSchemas = <F extends FieldDefinitions>(fields: F) =>
  mapSchemas(fields, (field) => {
    if (field.default === null) return requestSchema(field, false)
    return field.kind === 'text' ? Type.String() : Type.Integer()
  })

// A language that messages have no text in is replaced by another one, which must not happen to a misspelt tag.
FormatRegistry.Set('language-tag', hasLanguage)

// Numbers of a misspelt country could not be read, and its list would refuse every message.
FormatRegistry.Set('country', (code) => code === noCountry || isKnownCountry(normalizeCountry(code)))

/** @param hasFormat whether to check the format, too */
function requestSchema(field: FieldDefinition, hasFormat = true): TSchema {
  const { errorText, description } = field
  const schema = valueSchema(field, hasFormat, {
    errorText,
    ...(description !== undefined && { description }),
  })
  return field.default === null ? nullable(schema) : schema
}

function valueSchema(field: FieldDefinition, hasFormat: boolean, notes: SchemaOptions): TSchema {
  const format = (name: string | undefined) => (hasFormat && name !== undefined ? { format: name } : {})
  switch (field.kind) {
    case 'text':
      return Type.String({ pattern: field.pattern, ...format(field.format), ...notes })
    case 'seconds':
      return Type.Integer({ minimum: field.minimum, maximum: field.maximum, ...notes })
    case 'countries': {
      const { errorText } = field
      const code = Type.String({ pattern: `^([A-Za-z]{2}|${noCountry})$`, ...format('country'), errorText })
      return Type.Array(code, { minItems: 1, ...notes })
    }
  }
}

/** Creates the schema of a `PATCH` body: at least one of the properties. */
export const changesBody = <P extends TProperties>(properties: P) =>
  Type.Partial(
    Type.Object(properties, {
      additionalProperties: false,
      minProperties: 1,
      errorText: 'Expected at least one property',
    }),
  )

/** Fields of a send that façades take too. */
export const sendFields = {
  locale: Type.String({
    pattern: applicationFields.defaultLocale.pattern,
    format: applicationFields.defaultLocale.format,
    errorText: applicationFields.defaultLocale.errorText,
  }),
  metadata: Type.Record(
    Type.String({ pattern: '^[A-Za-z0-9_.-]{1,40}$' }),
    Type.String({ maxLength: 500, errorText: 'Expected up to 500 characters' }),
    {
      maxProperties: 10,
      additionalProperties: false,
      errorText: 'Expected at most 10 pairs; keys of up to 40 letters, digits, dots, hyphens and underscores',
    },
  ),
  clientIp: Type.Union([Type.String({ format: 'ipv4' }), Type.String({ format: 'ipv6' })], {
    documentedAs: { type: 'string' },
    errorText: 'Expected an IPv4 or IPv6 address',
    description:
      'IPv4 or IPv6 address of the end user. Codes sent from a network that verified this phone before have limits of their own, which no stranger can use up.',
  }),
}
