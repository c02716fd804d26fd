import type { SQL } from 'drizzle-orm'
import { boundInteger, boundText } from './typed-placeholders.ts'
import type { Database, Preparable } from './database.ts'

type Value = string | number
type Filter = { [name: string]: Value | readonly Value[] | undefined }

/** The same filter with a place for each value that is given. */
export type Given<F> = {
  [K in keyof F]:
    Extract<F[K], undefined> | (Exclude<F[K], undefined> extends readonly unknown[] ? SQL[] : SQL)
}

/**
 * Prepares a query of optional filters: once for each combination of them that is asked for, as building it costs more
 * than a page of rows.
 *
 * @param build looks at which filters are given; the value of one is not known yet
 */
export function prepareFiltered<F extends Filter, R>(
  database: Database,
  build: (given: Given<F>) => Preparable<R>,
): (filter: F) => Promise<R> {
  const prepared = new Map<string, (values: Record<string, unknown>) => Promise<R>>()
  return (filter) => {
    const { values, shape } = flatten(filter)
    let run = prepared.get(shape)
    // Its properties are those of the filter, each with what `Given` says of its kind.
    if (!run) prepared.set(shape, (run = database.prepare(() => build(placesOf(filter) as Given<F>))))
    return run(values)
  }
}

/** A value for each place, and a name for the places. */
function flatten(filter: Filter) {
  const values: Record<string, Value> = {}
  let shape = ''
  for (const name in filter) {
    const value = filter[name]
    if (value === undefined) continue
    if (typeof value === 'object') {
      const length = roomFor(value)
      shape += `${name}[${length}],`
      for (let i = 0; i < length; i++) values[name + i] = value[Math.min(i, value.length - 1)] ?? ''
    } else {
      shape += `${name},`
      values[name] = value
    }
  }
  return { values, shape }
}

function placesOf(filter: Filter) {
  const places: Record<string, SQL | SQL[]> = {}
  for (const [name, value] of Object.entries(filter)) {
    if (value === undefined) continue
    places[name] =
      typeof value === 'object'
        ? Array.from({ length: roomFor(value) }, (_, i) => placeOf(name + i, value[0]))
        : placeOf(name, value)
  }
  return places
}

const placeOf = (name: string, value: Value | undefined): SQL =>
  typeof value === 'number' ? boundInteger(name) : boundText(name)

/** The next power of two, so that there are few lengths; the rest is filled with the last value, which changes no `in`. */
const roomFor = (values: readonly Value[]) => 2 ** Math.ceil(Math.log2(values.length))
