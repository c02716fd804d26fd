import type { LogEntry } from '../domain/model/log-entry.ts'
import { unreadablePhone } from '../domain/model/pseudonyms.ts'
import { inOrder } from './engine/key-cursors.ts'
import type { ListIndex } from './engine/list-index.ts'
import { entryContent, keySeq, logLists } from './list-changes.ts'

/** About one megabyte. */
const entriesMax = 2_000

/**
 * Keeps log entries that were read, with their phones opened, in memory only: the newest page is read again and again.
 * The caller gets the same object each time. An entry is dropped when it is deleted or its phone is replaced, by any
 * process.
 */
export function createOpenedEntries(listIndex: ListIndex) {
  const entries = new Map<number, LogEntry>()
  let drops = 0
  const drop = (key: string) => {
    drops++
    entries.delete(keySeq(key))
  }
  for (const list of logLists({})) listIndex.onRemoved(list, drop)
  listIndex.onRemoved(entryContent, drop)

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
      const kept = seqs.map((seq) => entries.get(seq))
      const missing = seqs.filter((_, index) => kept[index] === undefined)
      if (missing.length === 0) return kept
      const dropsBefore = drops
      const loaded = await load(missing)
      // An entry that was dropped meanwhile may have been read before.
      if (drops === dropsBefore) {
        for (const entry of loaded) if (entry.phone !== unreadablePhone) entries.set(entry.seq, entry)
      }
      for (const seq of entries.keys()) {
        if (entries.size <= entriesMax) break
        entries.delete(seq)
      }
      const found = inOrder(missing, loaded, ({ seq }) => seq)
      let next = 0
      return kept.map((entry) => entry ?? found[next++])
    },
  }
}
