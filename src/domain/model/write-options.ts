/** How a transaction waits for its turn. */
export type WriteOptions = {
  /**
   * Does not wait for the writes of callers, however many there are. For workers that write one at a time, and for what
   * others take for a sign of life.
   */
  isUrgent?: boolean
}
