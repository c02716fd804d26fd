import type { Json } from './json.ts'

/** Length of the JSON below which an object stays in place: a reference would hardly be shorter. */
const lengthMin = 30

/** `shapes` are lists of property names. A record is the index of its shape, followed by its values. */
export type Packed = { shapes: string[][]; records: Json[][]; packed: Json }

/**
 * Replaces every larger object by a reference `{"#": n}` to a list of records, so that a row that many responses contain
 * is stored once, and without its property names. `unpackRecords` is the inverse.
 */
export function packRecords(value: Json): Packed {
  const shapes: string[][] = []
  const records: Json[][] = []
  const shapeIndexes = new Map<string, number>()
  const recordIndexes = new Map<string, number>()

  function pack(value: Json): Json {
    if (Array.isArray(value)) return value.map(pack)
    if (typeof value !== 'object' || value === null) return value
    const fields = Object.entries(value).map(([name, field]): [string, Json] => [name, pack(field)])
    const packedObject: Json = Object.fromEntries(fields)
    if (JSON.stringify(packedObject).length < lengthMin) return packedObject
    const names = fields.map(([name]) => name)
    const shape = indexIn(shapeIndexes, shapes, names)
    return { '#': indexIn(recordIndexes, records, [shape, ...fields.map(([, field]) => field)]) }
  }

  const packed = pack(value)
  return { shapes, records, packed }
}

/** Returns the index of an element in a list; appends the element if it is new. */
function indexIn<T>(indexes: Map<string, number>, list: T[], element: T): number {
  const text = JSON.stringify(element)
  const index = indexes.get(text) ?? list.push(element) - 1
  indexes.set(text, index)
  return index
}

/** Restores what `packRecords` packed. @throws Error if a reference has no record */
export function unpackRecords({ shapes, records, packed }: Packed): Json {
  function unpack(value: Json): Json {
    if (Array.isArray(value)) return value.map(unpack)
    if (typeof value !== 'object' || value === null) return value
    const number = value['#']
    if (typeof number !== 'number') {
      return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, unpack(field)]))
    }
    const [shape, ...values] = records[number] ?? []
    const names = shapes[Number(shape)]
    if (!names) throw new Error(`There is no record ${number}.`)
    return Object.fromEntries(names.map((name, n) => [name, unpack(values[n] ?? null)]))
  }
  return unpack(packed)
}
