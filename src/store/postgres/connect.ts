import { Client } from 'pg'
import { driverCode } from '../engine/errors.ts'
import { MigrationError } from '../engine/migrate.ts'
import { StartRefused } from '../files/data-dir.ts'

/** Runs `work` on a connection of its own. @throws StartRefused for an expected failure */
export async function withPostgres<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  try {
    const client = await connectTo(url)
    try {
      return await work(client)
    } finally {
      await client.end().catch(() => {})
    }
  } catch (error) {
    throw toStartError(error)
  }
}

/** Opens a connection for work on the schema, without limits of time. */
export async function connectTo(url: string): Promise<Client> {
  const client = new Client({
    connectionString: url,
    application_name: 'otpd/migrate',
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
  })
  // A query in progress rejects with the error of a lost connection itself.
  client.on('error', () => {})
  await client.connect()
  return client
}

/** Converts an expected error of PostgreSQL. Its own message is left out: it may quote values. */
function toStartError(error: unknown): unknown {
  if (error instanceof MigrationError) return new StartRefused(error.message, error.remedy, error)
  const code = driverCode(error)
  if (code === '42501')
    return new StartRefused(
      'the role must not change the schema of the database',
      'Use the role that owns the tables, or a database that belongs to it.',
    )
  if (code === '55P03')
    return new StartRefused(
      'another transaction keeps a table locked',
      'Try again, or end that transaction: pg_stat_activity shows it.',
    )
  const isLost = error instanceof Error && /^(Connection terminated|timeout expired)/.test(error.message)
  if (isLost || (code !== undefined && /^(08|28|3D|53|57|E[A-Z])/.test(code)))
    return new StartRefused(
      `the PostgreSQL database cannot be used (${code ?? 'connection lost'})`,
      'Check the address, role, password and database name in OTPD_DATABASE_URL, and that the server runs.',
    )
  return error
}
