import type { NamedRows, Rows } from '../../src/domain/store/operation.ts'
import type { Store } from '../../src/domain/store/store.ts'

/** Reads rows as a decision reads them. @param named the rows, for PostgreSQL */
export const readRows = <R>(store: Store, named: NamedRows, read: (rows: Rows) => R): Promise<R> =>
  store.decide({
    preload: { first: () => named },
    decide: (rows) => ({ result: read(rows), changes: [] }),
  })
