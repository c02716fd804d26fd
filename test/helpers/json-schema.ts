/** Subset of JSON Schema that the OpenAPI document uses. */
export type Schema = {
  $ref?: string
  type?: string | string[]
  enum?: unknown[]
  const?: unknown
  anyOf?: Schema[]
  properties?: Record<string, Schema>
  patternProperties?: Record<string, Schema>
  additionalProperties?: boolean
  required?: string[]
  minProperties?: number
  maxProperties?: number
  items?: Schema
  minItems?: number
  maxItems?: number
  uniqueItems?: boolean
  minLength?: number
  maxLength?: number
  pattern?: string
  minimum?: number
  maximum?: number
  format?: string
  description?: string
  default?: unknown
  examples?: unknown[]
}

const supportedKeywords = new Set<string>(
  (
    '$ref type enum const anyOf properties patternProperties additionalProperties required minProperties ' +
    'maxProperties items minItems maxItems uniqueItems minLength maxLength pattern minimum maximum format description default ' +
    'examples'
  ).split(' '),
)

/** Lists the keywords of a schema that {@link findSchemaFaults} ignores. */
export function findUnknownKeywords(schema: Schema): string[] {
  const { properties, patternProperties, items, anyOf = [] } = schema
  const inner = [properties, patternProperties].flatMap((named) => Object.values(named ?? {}))
  return [
    ...Object.keys(schema).filter((keyword) => !supportedKeywords.has(keyword)),
    ...[...inner, ...anyOf, ...(items ? [items] : [])].flatMap(findUnknownKeywords),
  ]
}

const formats: Record<string, RegExp> = {
  // RFC 3339 in the form that the API uses: UTC with milliseconds.
  'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
  country: /^([a-z]{2}|001)$/i,
  'language-tag': /^[a-z]{2,3}(-[a-z0-9]{2,8}){0,3}$/i,
  ipv4: /^(\d{1,3}\.){3}\d{1,3}$/,
  ipv6: /^[0-9a-f:.]*:[0-9a-f:.]*$/i,
}

/**
 * Validates a value. Returns one sentence per fault.
 *
 * @param schemas `components.schemas` of the document
 * @param isClosed true to report undeclared properties even where the schema allows them
 */
export function findSchemaFaults(
  schema: Schema,
  value: unknown,
  schemas: Record<string, Schema>,
  isClosed: boolean,
  location = '$',
): string[] {
  if (schema.$ref !== undefined) {
    const target = schemas[schema.$ref.replace('#/components/schemas/', '')]
    if (!target) throw new Error(`There is no ${schema.$ref}.`)
    return findSchemaFaults(target, value, schemas, isClosed, location)
  }
  const check = (inner: Schema, item: unknown, itemLocation: string) =>
    findSchemaFaults(inner, item, schemas, isClosed, itemLocation)
  const faults: string[] = []
  const expect = (isMet: boolean, message: string) => void (isMet || faults.push(`${location}: ${message}`))

  if (schema.type !== undefined) {
    const type = jsonTypeName(value)
    const types = [schema.type].flat()
    const isMet = types.includes(type) || (type === 'integer' && types.includes('number'))
    if (!isMet) return [`${location}: not ${types.join(' or ')}`]
  }
  if (schema.enum) expect(schema.enum.includes(value), 'not one of the words')
  if ('const' in schema) expect(schema.const === value, 'not the constant')
  if (schema.anyOf) {
    const branches = schema.anyOf.map((branch) => check(branch, value, location))
    if (!branches.some((branch) => branch.length === 0)) faults.push(...branches.flat())
  }
  if (typeof value === 'string') {
    const length = [...value].length
    expect(length >= (schema.minLength ?? 0), 'too short')
    expect(length <= (schema.maxLength ?? Infinity), 'too long')
    if (schema.pattern !== undefined) expect(new RegExp(schema.pattern).test(value), 'not of the pattern')
    if (schema.format !== undefined) expect(getFormat(schema.format).test(value), `not a ${schema.format}`)
  }
  if (typeof value === 'number') {
    expect(value >= (schema.minimum ?? -Infinity), 'too small')
    expect(value <= (schema.maximum ?? Infinity), 'too large')
  }
  if (Array.isArray(value)) {
    expect(value.length >= (schema.minItems ?? 0), 'too few')
    expect(value.length <= (schema.maxItems ?? Infinity), 'too many')
    if (schema.uniqueItems) expect(new Set(value).size === value.length, 'not unique')
    const { items } = schema
    if (items) faults.push(...value.flatMap((item, index) => check(items, item, `${location}[${index}]`)))
  } else if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value)
    for (const name of schema.required ?? []) expect(Object.hasOwn(value, name), `${name} is missing`)
    expect(entries.length >= (schema.minProperties ?? 0), 'too few properties')
    expect(entries.length <= (schema.maxProperties ?? Infinity), 'too many properties')
    const { properties = {}, patternProperties = {} } = schema
    const closed =
      schema.additionalProperties === false || (isClosed && (schema.properties ?? schema.patternProperties))
    for (const [name, item] of entries) {
      const inner = Object.hasOwn(properties, name)
        ? properties[name]
        : Object.entries(patternProperties).find(([pattern]) => new RegExp(pattern).test(name))?.[1]
      if (inner) faults.push(...check(inner, item, `${location}.${name}`))
      else expect(!closed, `${name} is not declared`)
    }
  }
  return faults
}

function getFormat(name: string): RegExp {
  const format = formats[name]
  if (!format) throw new Error(`The format ${name} is not supported by this validator.`)
  return format
}

function jsonTypeName(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return Number.isInteger(value) ? 'integer' : typeof value
}
