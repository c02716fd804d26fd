import type { Store } from '../store/store.ts'

/** Notices the entries of other nodes soon enough for a live log. */
export const eventWatchMs = 200

/**
 * Creates the watch for log entries that other nodes write. It reads the counter of entries: one row, whose order is that of
 * the commits. LISTEN/NOTIFY would be sooner, but takes a lock of the whole database at each commit, and does not pass a
 * transaction pooler.
 *
 * @param needs.isNeeded false while there is nothing to wake: the watch then reads nothing
 * @param needs.onEntries called with the developers that have new entries; undefined: with any, after a time unwatched
 * @returns looks once; call it every `eventWatchMs`
 */
export function createEventWatch(needs: {
  store: Pick<Store<'events'>, 'read'>
  isNeeded(): boolean
  onEntries(developerIds: readonly string[] | undefined): Promise<void>
}): () => Promise<void> {
  const { isNeeded, onEntries } = needs
  const { events } = needs.store.read
  let seenSeq: number | undefined
  return async () => {
    if (!isNeeded()) {
      seenSeq = undefined
      return
    }
    const after = seenSeq
    const newest = await events.newestSeq()
    if (newest === after) return
    const developers = after === undefined ? undefined : await events.listDevelopers(after, newest)
    await onEntries(developers)
    // Only now: after a failure the same entries are read again.
    seenSeq = newest
  }
}
