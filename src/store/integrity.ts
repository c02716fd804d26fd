import { Database as SqliteConnection } from 'bun:sqlite'

type Report = { error(msg: string, fields?: Record<string, unknown>): void; info(msg: string): void }

/**
 * Looks for damage table by table, giving way to requests in between. For a start after an unclean stop: SQLite repairs
 * what a crash leaves, and not what a disk breaks.
 */
export function checkIntegrity(path: string, report: Report): void {
  const connection = new SqliteConnection(path, { readonly: true })
  const tables = connection
    .query<{ name: string }, []>(`select name from sqlite_schema where type = 'table'`)
    .all()
    .map(({ name }) => name)

  const next = () => {
    const table = tables.shift()
    if (table === undefined) {
      connection.close()
      report.info('the database is whole after the unclean stop')
      return
    }
    try {
      const row = connection.query<{ quick_check: string }, []>(`PRAGMA quick_check('${table}')`).get()
      if (row?.quick_check !== 'ok') report.error('the database is damaged. Restore a backup.', { table })
    } catch (error) {
      report.error('the database could not be checked', { table, error })
    }
    setTimeout(next, 10).unref()
  }
  setTimeout(next, 10).unref()
}
