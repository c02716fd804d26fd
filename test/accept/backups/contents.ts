import { Database } from 'bun:sqlite'
import type { Acknowledged } from './load.ts'

/** Finds the acknowledged requests that a database lacks. @throws Error it is damaged */
export function findLost(path: string, acknowledged: readonly Acknowledged[]): Acknowledged[] {
  const database = new Database(path, { readonly: true })
  try {
    const [check] = database.query<{ integrity_check: string }, []>('pragma integrity_check').all()
    if (check?.integrity_check !== 'ok') throw new Error(`${path}: ${check?.integrity_check}`)
    const rows = database
      .query<{ id: string; status: string }, []>('select id, status from otp_requests')
      .all()
    const statuses = new Map(rows.map(({ id, status }) => [id, status]))
    return acknowledged.filter(({ id, kind }) => {
      const status = statuses.get(id)
      return status === undefined || (kind === 'verified' && status !== 'verified')
    })
  } finally {
    database.close()
  }
}
