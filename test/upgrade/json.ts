export type Json = null | boolean | number | string | Json[] | { [name: string]: Json }

/** Returns the value under a path of property names and indexes; null if there is none. */
export function valueAt(value: Json, ...path: Array<string | number>): Json {
  let found = value
  for (const step of path) {
    if (typeof found !== 'object' || found === null) return null
    const next = Array.isArray(found) ? found[Number(step)] : found[step]
    found = next ?? null
  }
  return found
}

/** Returns the text under a path. @throws Error if there is no text */
export function textAt(value: Json, ...path: Array<string | number>): string {
  const found = valueAt(value, ...path)
  if (typeof found === 'string') return found
  throw new Error(`No text at ${path.join('.')} of ${JSON.stringify(value)}`)
}

/** Returns the list under a path. @throws Error if there is no list */
export function listAt(value: Json, ...path: Array<string | number>): Json[] {
  const found = valueAt(value, ...path)
  if (Array.isArray(found)) return found
  throw new Error(`No list at ${path.join('.')} of ${JSON.stringify(value)}`)
}
