export { parseJson } from '../../shared/json.ts'

/** Reads the value at a path of property names and list indexes; undefined if a step is missing. */
export function valueAt(value: unknown, ...path: readonly (string | number)[]): unknown {
  let current = value
  for (const step of path) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, step)) return undefined
    // `hasOwn` has checked the property; TypeScript does not narrow by a dynamic name.
    current = (current as Record<string | number, unknown>)[step]
  }
  return current
}

/**
 * Reads a non-empty string at a path. Numbers become strings, because providers use both for ids and codes; a
 * number beyond the safe integers counts as missing.
 */
export function textAt(value: unknown, ...path: readonly (string | number)[]): string | undefined {
  const found = valueAt(value, ...path)
  if (typeof found === 'string' && found !== '') return found
  return Number.isSafeInteger(found) ? String(found) : undefined
}

/** Reads a number or its text at a path, to show it; `?` if there is none. Unlike ids, amounts have fractions. */
export function amountAt(value: unknown, ...path: readonly (string | number)[]): string {
  const found = valueAt(value, ...path)
  return typeof found === 'number' && Number.isFinite(found) ? String(found) : (textAt(found) ?? '?')
}

/** Reads the list at a path; empty if there is none. */
export function listAt(value: unknown, ...path: readonly (string | number)[]): readonly unknown[] {
  const found = valueAt(value, ...path)
  return Array.isArray(found) ? found : []
}
