import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { usageError } from '../terminal/errors.ts'
import type { Io } from '../terminal/io.ts'

/** Parses headers as curl takes them: `Name: value`; without a value null, which removes it. @throws usage error */
export const parseHeaders = (texts: readonly string[]): Record<string, string | null> =>
  Object.fromEntries(
    texts.map((text) => {
      const [, name, value = ''] = /^([^:\s]+):\s*(.*?)\s*$/.exec(text) ?? []
      if (name === undefined) throw usageError("--header must be like 'Authorization: Bearer TOKEN'.")
      return [name, value || null]
    }),
  )

/** Parses the headers of a new endpoint, which has none to remove. @throws usage error */
export const parseNewHeaders = (texts: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    Object.entries(parseHeaders(texts)).map(([name, value]) => {
      if (value === null) throw usageError(`--header '${name}:' has no value.`)
      return [name, value]
    }),
  )

/**
 * Replaces values like `@FILE` by the text of the file, for credentials that must not be seen in the list of processes
 * and in the history of the shell.
 *
 * @throws usage error when a file cannot be read
 */
export function readHeaderFiles<T extends { headers?: Record<string, string | null> }>(
  { workingDirectory }: Io,
  fields: T,
): T {
  const headers = Object.entries(fields.headers ?? {}).map(([name, value]) => {
    if (value === null || !value.startsWith('@')) return [name, value]
    try {
      return [name, readFileSync(resolve(workingDirectory, value.slice(1)), 'utf8').trim()]
    } catch {
      throw usageError(
        `The file of --header cannot be read: ${value.slice(1)}`,
        'Correct the path or its permissions.',
      )
    }
  })
  return fields.headers === undefined ? fields : { ...fields, headers: Object.fromEntries(headers) }
}
