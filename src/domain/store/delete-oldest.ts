/** Deletes a batch of rows: about `batchSize` of the oldest, up to the time `until`. @returns true if there may be more */
export type DeleteOldest = (until: number, batchSize: number) => Promise<boolean>
