/** Probes whether the database can be written. */
export type ReadinessStore = {
  /** Changes one row. @param at milliseconds, later than at the last call */
  probe(at: number): Promise<void>
}
