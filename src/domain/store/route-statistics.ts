/** Decayed outcomes of a provider on a channel to a country, as all nodes share them. Times are in milliseconds. */
export type RouteStatisticsRow = {
  /** `PROVIDER/CHANNEL/COUNTRY`; the country is empty if it is unknown. */
  cell: string
  outcomes: number
  verified: number
  /** Time for which the counts are decayed. */
  at: number
  /** Send time of the newest verified code. */
  verifiedSentAt: number
  /** Send time of the first code of the newest run of unverified ones that was taken for silence; 0 if there was none. */
  silentSince: number
  updatedAt: number
}

/** Statistics that the strategies of routes learn from. */
export type RouteStatisticsStore = {
  /** Lists the rows that were updated at a time or later. */
  listUpdated(since: number): Promise<RouteStatisticsRow[]>
  /** Reads the rows of cells and locks them until the transaction ends. @param cells in ascending order */
  lock(cells: readonly string[]): Promise<RouteStatisticsRow[]>
  /** Writes rows, new or changed. */
  save(rows: readonly RouteStatisticsRow[]): Promise<void>
  /** Deletes the rows that were last updated before a time. */
  deleteOlder(before: number): Promise<void>
}
