import { isRecord } from '../../shared/json.ts'
import { enumComponents } from './enums.ts'
import { fieldExamples, fieldTexts } from './field-texts.ts'

export type JsonSchema = Record<string, unknown>

/** `components.schemas` of the document while it is built. */
export type SchemaComponents = Map<string, JsonSchema>

/** Objects in responses are open, because later versions may add properties. */
type Side = 'request' | 'response'

const schemaReference = (name: string) => ({ $ref: `#/components/schemas/${name}` })

/** `listOtpRequests` → `ListOtpRequests` */
export const toPascalCase = (name: string) => name.charAt(0).toUpperCase() + name.slice(1)

/**
 * Converts schemas of the routes into those of the document. A schema with a title becomes a component of that name, and
 * so does each list of words that `enums.ts` names; properties without a description or an example get those of
 * `field-texts.ts`.
 */
export function createSchemaConverter(components: SchemaComponents) {
  function convert(schema: unknown, side: Side, owner = ''): unknown {
    if (Array.isArray(schema)) return schema.map((item) => convert(item, side, owner))
    if (!isRecord(schema)) return schema
    if (isRecord(schema['documentedAs']))
      return nameEnum({ ...schema['documentedAs'], ...describedBy(schema) })
    if (isRecord(schema['textOf'])) return convert(schema['textOf'], side, owner)
    const { errorText: _, title, ...rest } = schema
    if (side === 'response' && rest['additionalProperties'] === false) delete rest['additionalProperties']
    const name = typeof title === 'string' ? title : owner
    const children = Object.entries(rest).map(([key, value]) => [
      key,
      key === 'properties' && isRecord(value)
        ? convertProperties(value, side, name)
        : convert(value, side, name),
    ])
    const simplified = nameEnum(joinAlternatives(Object.fromEntries(children)))
    return typeof title === 'string' ? addComponent(title, simplified) : simplified
  }

  function convertProperties(properties: JsonSchema, side: Side, owner: string): JsonSchema {
    const entries = Object.entries(properties).map(([name, property]) => {
      const converted = nameInner(convert(property, side), owner, name)
      return [name, isRecord(converted) ? withTexts(converted, owner, name) : converted]
    })
    return Object.fromEntries(entries)
  }

  /** Names an object inside of a component after both: the items of `rules` in `Guard` are `GuardRule`. */
  function nameInner(schema: unknown, owner: string, property: string): unknown {
    if (!isRecord(schema) || owner === '') return schema
    if (isRecord(schema['properties'])) return addComponent(`${owner}${toPascalCase(property)}`, schema)
    const { items, anyOf } = schema
    if (Array.isArray(anyOf)) return { ...schema, anyOf: anyOf.map((one) => nameInner(one, owner, property)) }
    if (!isRecord(items) || !isRecord(items['properties'])) return schema
    return { ...schema, items: addComponent(`${owner}${toPascalCase(property).replace(/s$/, '')}`, items) }
  }

  /** Replaces a list of words that has a name by a reference. Null is an alternative of its own, never one of the words. */
  function nameEnum(schema: JsonSchema): JsonSchema {
    if (!Array.isArray(schema['enum'])) return schema
    const words: unknown[] = schema['enum']
    const nonNull = words.filter((word) => word !== null)
    const found = enumComponents.find((component) => component.values.join() === nonNull.join())
    if (!found)
      return nonNull.length === words.length
        ? schema
        : { anyOf: [{ type: 'string', enum: nonNull }, { type: 'null' }], ...describedBy(schema) }
    const { enum: _, type: __, description, ...rest } = schema
    const reference = addComponent(found.name, {
      type: 'string',
      enum: [...found.values],
      description: found.description,
    })
    const described = { ...rest, ...(description !== undefined && { description }) }
    return words.includes(null)
      ? { ...described, anyOf: [reference, { type: 'null' }] }
      : { ...described, ...reference }
  }

  function addComponent(name: string, schema: JsonSchema) {
    components.set(name, schema)
    return schemaReference(name)
  }

  return {
    convert,
    addComponent,

    /** Converts a request body, which becomes the component `{Operation}Request` unless it has a title. */
    convertBody: (schema: unknown, operationId: string) =>
      convert({ title: `${toPascalCase(operationId)}Request`, ...(isRecord(schema) && schema) }, 'request'),

    /**
     * Converts a response body. The envelope `{data}` and its result become components, named after the result or, if
     * it has no title, after the operation.
     */
    convertResponse(schema: unknown, operationId: string): unknown {
      const converted = convert(schema, 'response')
      if (!isRecord(converted) || !isRecord(converted['properties'])) return converted
      const properties = converted['properties']
      if (!('data' in properties)) return addComponent(`${toPascalCase(operationId)}Result`, converted)
      const nameUntitled = (result: unknown, suffix: string) =>
        isRecord(result) && isRecord(result['properties'])
          ? addComponent(`${toPascalCase(operationId)}${suffix}`, result)
          : result
      const result = properties['data']
      const isList = isRecord(result) && result['type'] === 'array'
      const named = isList
        ? { ...result, items: nameUntitled(result['items'], 'Item') }
        : nameUntitled(result, 'Result')
      const target = isRecord(named) ? (isList ? named['items'] : named) : undefined
      const resultName = /\w+$/.exec(String(isRecord(target) ? (target['$ref'] ?? '') : ''))?.[0]
      const suffix = !isList ? 'Response' : 'pagination' in properties ? 'Page' : 'List'
      const data =
        isRecord(named) && isList
          ? { ...named, description: 'The items, in the order that the operation documents.' }
          : named
      return addComponent(`${resultName ?? toPascalCase(operationId)}${suffix}`, {
        ...converted,
        properties: { ...properties, data },
      })
    },
  }
}

const describedBy = ({ description }: JsonSchema) => (description === undefined ? {} : { description })

/** Adds the description and the example of a property. A reference has those of its component. */
function withTexts(schema: JsonSchema, owner: string, name: string): JsonSchema {
  if ('$ref' in schema) return schema
  const description = schema['description'] ?? fieldTexts[`${owner}.${name}`] ?? fieldTexts[name]
  const isFreeForm = !('enum' in schema) && !('anyOf' in schema)
  const example = fieldExamples[`${owner}.${name}`] ?? fieldExamples[name]
  const hasExample =
    isFreeForm && example !== undefined && !('examples' in schema) && isOfType(example, schema['type'])
  return {
    ...schema,
    ...(description !== undefined && { description }),
    ...(hasExample && { examples: [example] }),
  }
}

function isOfType(value: unknown, type: unknown): boolean {
  const types = Array.isArray(type) ? type : [type]
  const own = Array.isArray(value) ? 'array' : Number.isInteger(value) ? 'integer' : typeof value
  return types.includes(own)
}

/**
 * Rewrites a union of literals as `enum`, a single literal as an `enum` of one word, and a union with null as a second
 * type: they are easier to read, and more generators of clients understand them.
 */
function joinAlternatives(schema: JsonSchema): JsonSchema {
  if (typeof schema['const'] === 'string') {
    const { const: word, ...rest } = schema
    return { ...rest, type: 'string', enum: [word] }
  }
  const { anyOf, ...rest } = schema
  if (!Array.isArray(anyOf)) return schema
  const members = anyOf.filter(isRecord)
  const nonNull = members.filter(({ type }) => type !== 'null')
  const words = nonNull.flatMap((member) => (Array.isArray(member['enum']) ? member['enum'] : []))
  const areWords = nonNull.every((member) => Array.isArray(member['enum']))
  const [single] = areWords ? [{ type: 'string', enum: words }] : nonNull
  if (!single || (!areWords && nonNull.length > 1) || typeof single['type'] !== 'string') return schema
  // Becomes a component, which is easier to use if it is never null.
  if ('properties' in single) return schema
  if (nonNull.length === members.length) return { ...rest, ...single }
  const values = single['enum']
  return {
    ...rest,
    ...single,
    type: [single['type'], 'null'],
    ...(Array.isArray(values) && { enum: [...values, null] }),
  }
}
