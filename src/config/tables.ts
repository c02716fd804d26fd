import type { Reader } from './reader.ts'
import type { FileEntry } from './toml-file.ts'

/** One `[[providers]]`, `[[routes]]` or `[[alerts]]` table: its keys with their values and source lines. */
export type ConfigTable = { source: string; keys: ReadonlyMap<string, { value: unknown; source: string }> }

export const providerNamePattern = /^[a-z][a-z0-9-]{0,31}$/

/** Groups the entries of a top-level list by table, in file order. */
export function collectTables(reader: Reader, entries: readonly FileEntry[], list: string): ConfigTable[] {
  const tables = new Map<string, { source: string; keys: Map<string, { value: unknown; source: string }> }>()
  let isReported = false
  for (const entry of entries) {
    const [section, index = '', ...path] = entry.path
    if (section !== list) continue
    const source = reader.formatSource(entry)
    if (!/^\d+$/.test(index)) {
      const remedy = `Write [[${list}]] and the keys below it.`
      if (!isReported) reader.report(source, `${list} must be a list of tables.`, remedy)
      isReported = true
      continue
    }
    const table = tables.get(index) ?? { source, keys: new Map() }
    if (path.length > 0) table.keys.set(path.join('.'), { value: entry.value, source })
    tables.set(index, table)
  }
  return [...tables.values()]
}
