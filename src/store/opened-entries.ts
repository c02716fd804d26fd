import type { LogEntry } from '../domain/model/log-entry.ts'
import type { ListIndex } from './engine/list-index.ts'
import { entryContent, logList } from './list-changes.ts'

/** About one megabyte. */
const entriesMax = 2_000

type OpenedEntry = { developerId: string; entry: LogEntry }

/**
 * Keeps log entries that were read, with their phones opened, in memory only: the newest page is read again and again.
 * The caller gets the same object each time. An entry is dropped when it is deleted or its phone is replaced, by any
 * process.
 */
export function createOpenedEntries(listIndex: ListIndex) {
  const entries = new Map<string, OpenedEntry>()
  let drops = 0
  const drop = (key: string) => {
    drops++
    entries.delete(key)
  }
  listIndex.onRemoved(logList, drop)
  listIndex.onRemoved(entryContent, drop)

  return {
    /**
     * Returns entries by their keys.
     *
     * @param load loads those that are not kept, by key; an entry is not kept if it returns `isComplete` false
     */
    async get(
      keys: readonly string[],
      load: (keys: string[]) => Promise<Map<string, OpenedEntry & { isComplete: boolean }>>,
    ): Promise<Map<string, OpenedEntry>> {
      const found = new Map<string, OpenedEntry>()
      const missing: string[] = []
      for (const key of keys) {
        const kept = entries.get(key)
        if (kept) found.set(key, kept)
        else missing.push(key)
      }
      if (missing.length === 0) return found
      const dropsBefore = drops
      for (const [key, { isComplete, ...opened }] of await load(missing)) {
        found.set(key, opened)
        // An entry that was dropped meanwhile may have been read before.
        if (isComplete && drops === dropsBefore) entries.set(key, opened)
      }
      for (const key of entries.keys()) {
        if (entries.size <= entriesMax) break
        entries.delete(key)
      }
      return found
    },
  }
}
