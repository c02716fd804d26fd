/**
 * How many rows a page of a filtered list looks at. Those that match may be few or none, and looking through a long
 * history would hold up all other calls; the cursor of such a page leads on from where it stopped looking. Who follows
 * the log, which has no such cursor, looks at as many at a time.
 */
export const scanRowsMax = 2000

/** The last row that a page looks at; undefined where no more than `scanRowsMax` are left. */
export type ScanBoundary<K> = { key: K; developerId: string } | undefined

type Owner = {
  developerId: string
  /** Rows of this application instead, whosever it is. */
  appId?: string | undefined
}

/** Ends of windows, each counted by an index alone. Newest first; `before` is a key, and only lower ones are counted. */
export type ScanLimitStore = {
  forRequests(owner: Owner, before?: string): Promise<ScanBoundary<string>>
  forEvents(owner: Owner, before?: number): Promise<ScanBoundary<number>>
  /** The other way: oldest first, and only later ones are counted. `id` is that of the entry. */
  forEventsForward(owner: Owner, after: number): Promise<(ScanBoundary<number> & { id: string }) | undefined>
  forAudit(developerId: string, before?: string): Promise<string | undefined>
  /** Of one endpoint, whose owner the caller has checked. */
  forDeliveries(endpointId: string, before?: string): Promise<string | undefined>
}
