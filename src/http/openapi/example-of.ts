import { isRecord } from '../../shared/json.ts'
import type { JsonSchema, SchemaComponents } from './schemas.ts'

/**
 * Builds an example of a request body: its required fields alone, or the first field of a body that requires any one of
 * its fields.
 */
export function exampleOf(schema: unknown, components: SchemaComponents): unknown {
  if (!isRecord(schema)) return undefined
  const reference = schema['$ref']
  if (typeof reference === 'string')
    return exampleOf(components.get(reference.replace('#/components/schemas/', '')), components)
  if (Array.isArray(schema['examples'])) return schema['examples'][0]
  if (Array.isArray(schema['enum'])) return schema['enum'][0]
  if (Array.isArray(schema['anyOf'])) return exampleOf(schema['anyOf'][0], components)
  const [type] = [schema['type']].flat()
  if (type === 'array') return [exampleOf(schema['items'], components)]
  if (type === 'object') return objectExample(schema, components)
  if (type === 'boolean') return true
  return type === 'string' ? 'text' : type === 'integer' ? schema['minimum'] : undefined
}

function objectExample(
  { properties, required, minProperties = 0 }: JsonSchema,
  components: SchemaComponents,
) {
  const fields = isRecord(properties) ? properties : {}
  const names = Array.isArray(required) ? required.map(String) : []
  const shown = names.length > 0 ? names : Object.keys(fields).slice(0, Number(minProperties))
  return Object.fromEntries(shown.map((name) => [name, exampleOf(fields[name], components)]))
}
