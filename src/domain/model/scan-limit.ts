/**
 * Most rows that one page of a filtered list scans. Few or none may match, and scanning a long history would
 * block all other calls. The page's cursor resumes where the scan stopped; followers of the log, which have
 * no such cursor, scan as many rows at a time.
 */
export const scanRowsMax = 2000

/** The last row that a page scans; undefined if at most `scanRowsMax` rows are left. */
export type ScanBoundary<K> = { key: K; developerId: string } | undefined

type Owner = {
  developerId: string
  /**
   * Scans the rows of this application instead. Its owner is not checked: compare `developerId` of the
   * result.
   */
  appId?: string | undefined
}

/** Finds scan boundaries from an index alone. Newest first; `before` is a key, and only lower keys count. */
export type ScanLimitStore = {
  forRequests(owner: Owner, before?: string): Promise<ScanBoundary<string>>
  forEvents(owner: Owner, before?: number): Promise<ScanBoundary<number>>
  /** Oldest first, and only keys after `after` count. `id` is the entry's. */
  forEventsForward(owner: Owner, after: number): Promise<(ScanBoundary<number> & { id: string }) | undefined>
  forAudit(developerId: string, before?: string): Promise<string | undefined>
  /** Deliveries of one endpoint. The caller has checked its owner. */
  forDeliveries(endpointId: string, before?: string): Promise<string | undefined>
}
