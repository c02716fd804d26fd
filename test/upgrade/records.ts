import type { Json } from './json.ts'

/** Shorter objects cost less than a reference to them. */
const lengthMin = 30

/** `shapes` are lists of property names. A record is the number of its shape, followed by its values. */
export type Packed = { shapes: string[][]; records: Json[][]; packed: Json }

/**
 * Replaces every larger object by a reference `{"#": n}` to a list of records, so that a row that many answers contain
 * is kept once, and without its property names. `unpackRecords` is the inverse.
 */
export function packRecords(value: Json): Packed {
  const shapes: string[][] = []
  const records: Json[][] = []
  const shapeNumbers = new Map<string, number>()
  const recordNumbers = new Map<string, number>()

  function pack(value: Json): Json {
    if (Array.isArray(value)) return value.map(pack)
    if (typeof value !== 'object' || value === null) return value
    const fields = Object.entries(value).map(([name, field]): [string, Json] => [name, pack(field)])
    const small: Json = Object.fromEntries(fields)
    if (JSON.stringify(small).length < lengthMin) return small
    const names = fields.map(([name]) => name)
    const shape = numberIn(shapeNumbers, shapes, names)
    return { '#': numberIn(recordNumbers, records, [shape, ...fields.map(([, field]) => field)]) }
  }

  const packed = pack(value)
  return { shapes, records, packed }
}

/** Returns the place of an element in a list, and appends the element where it is new. */
function numberIn<T>(numbers: Map<string, number>, list: T[], element: T): number {
  const text = JSON.stringify(element)
  const number = numbers.get(text) ?? list.push(element) - 1
  numbers.set(text, number)
  return number
}

/** @throws Error where a reference leads nowhere */
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
