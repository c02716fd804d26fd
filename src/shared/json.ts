/** Tells objects with properties from null, lists and plain values. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Parses JSON; undefined if the text is invalid. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

declare const parsed: unique symbol

/** JSON text of a value. */
export type JsonText<T> = string & { readonly [parsed]?: T }
