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
