import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { startServer, type ServerOptions } from './binary.ts'
import { createServerDatabase, testPostgresUrl } from './postgres.ts'

/** URL of the PostgreSQL server of the tests; undefined: tests that need it are skipped. */
export const postgresUrl = testPostgresUrl
if (postgresUrl === undefined)
  process.stderr.write(
    'Skipped: tests of nodes on a PostgreSQL server. Set OTPD_TEST_POSTGRES_URL to run them.\n',
  )

export type SharedDatabase = Awaited<ReturnType<typeof createSharedDatabase>>

/** Creates an empty database on the server of the tests, and what nodes need to share it. */
export async function createSharedDatabase() {
  const { name, url, drop } = await createServerDatabase(postgresUrl ?? '')
  const admin = new Client(postgresUrl)
  await admin.connect()
  const folder = mkdtempSync(join(tmpdir(), 'otpd-shared-'))
  const masterKeyFile = join(folder, 'master-key')
  writeFileSync(
    masterKeyFile,
    `${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('hex')}\n`,
    {
      mode: 0o600,
    },
  )
  const env = {
    OTPD_DATABASE_URL: url,
    OTPD_MASTER_KEY_FILE: masterKeyFile,
    OTPD_PUBLIC_URL: 'http://127.0.0.1:9',
    // The server of the tests may run without fsync.
    OTPD_DATABASE_UNSAFE: '1',
  }

  return {
    name,
    url,
    folder,
    /** Variables of a node or a host command. */
    env,
    /** Starts a node, without a data directory. */
    startNode: (options: ServerOptions = {}) =>
      startServer({ ...options, dataDir: null, env: { ...env, ...options.env } }),
    /** Runs statements on the database. */
    async query<R extends object>(sql: string, values: unknown[] = []): Promise<R[]> {
      const client = new Client(url)
      await client.connect()
      try {
        return (await client.query<R>(sql, values)).rows
      } finally {
        await client.end()
      }
    },
    /** Changes settings that new connections to the database get. */
    alter: (change: string) => admin.query(`alter database ${name} ${change}`),
    async dispose() {
      await admin.end()
      await drop({ force: true })
      rmSync(folder, { recursive: true })
    },
  }
}
