import { createVersionedCache } from '../domain/model/versioned-cache.ts'
import type { LogEntry } from '../domain/model/log-entry.ts'
import { unreadablePhone } from '../domain/model/pseudonyms.ts'
import type { SqliteState } from './engine/sqlite-state.ts'
import { inOrder } from './sqlite/load-listed.ts'

/** About one megabyte. */
const entriesMax = 2_000

/**
 * Keeps log entries that were read, with their phones opened, in memory only: the newest page is read again and again.
 * The caller gets the same object each time. All are dropped when any process deletes entries or replaces a phone.
 */
export function createOpenedEntries({ log, refresh }: Pick<SqliteState, 'log' | 'refresh'>) {
  const entries = createVersionedCache<LogEntry>(entriesMax)

  return {
    /**
     * Returns entries in the order of their numbers; undefined for a number without an entry.
     *
     * @param load loads those that are not kept
     */
    async get(
      seqs: readonly number[],
      load: (missing: readonly number[]) => Promise<LogEntry[]>,
    ): Promise<Array<LogEntry | undefined>> {
      refresh()
      const version = log.current()
      const kept = seqs.map((seq) => entries.get(`${seq}`, version))
      const missing = seqs.filter((_, index) => kept[index] === undefined)
      if (missing.length === 0) return kept
      const loaded = await load(missing)
      for (const entry of loaded) {
        if (entry.phone !== unreadablePhone) entries.set(`${entry.seq}`, version, entry)
      }
      const found = inOrder(missing, loaded, ({ seq }) => seq)
      let next = 0
      return kept.map((entry) => entry ?? found[next++])
    },
  }
}
