/** What the text holds, or undefined where it is no JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** What stands at the end of the path, from object to object and into lists by index; undefined where a step fails. */
export function valueAt(value: unknown, ...path: readonly (string | number)[]): unknown {
  let current = value
  for (const step of path) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, step)) return undefined
    // What has the property was just asked; TypeScript does not follow a name that it does not know.
    current = (current as Record<string | number, unknown>)[step]
  }
  return current
}

/**
 * The same as text. Providers write ids and codes sometimes as text, sometimes as numbers; a number that was too large
 * to be read exactly is none, and neither is the empty text.
 */
export function textAt(value: unknown, ...path: readonly (string | number)[]): string | undefined {
  const found = valueAt(value, ...path)
  if (typeof found === 'string' && found !== '') return found
  return Number.isSafeInteger(found) ? String(found) : undefined
}

/** The list at the end of the path; empty where none is. */
export function listAt(value: unknown, ...path: readonly (string | number)[]): readonly unknown[] {
  const found = valueAt(value, ...path)
  return Array.isArray(found) ? found : []
}
