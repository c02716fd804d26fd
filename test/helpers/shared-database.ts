import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { startServer, type ServerOptions } from './binary.ts'

/** URL of the PostgreSQL server of the tests; undefined: tests that need it are skipped. */
export const postgresUrl = process.env['OTPD_TEST_POSTGRES_URL']
if (postgresUrl === undefined)
  process.stderr.write(
    'Skipped: tests of nodes on a PostgreSQL server. Set OTPD_TEST_POSTGRES_URL to run them.\n',
  )

export type SharedDatabase = Awaited<ReturnType<typeof createSharedDatabase>>

/** Creates an empty database on the server of the tests, and what nodes need to share it. */
export async function createSharedDatabase() {
  const name = `otpd_test_${crypto.randomUUID().replaceAll('-', '')}`
  const admin = new Client(postgresUrl)
  await admin.connect()
  await admin.query(`create database ${name}`)
  const url = new URL(postgresUrl ?? '')
  url.pathname = name
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
    OTPD_DATABASE_URL: url.href,
    OTPD_MASTER_KEY_FILE: masterKeyFile,
    OTPD_PUBLIC_URL: 'http://127.0.0.1:9',
    // The server of the tests may run without fsync.
    OTPD_DATABASE_UNSAFE: '1',
  }

  return {
    name,
    url: url.href,
    folder,
    /** Variables of a node or a host command. */
    env,
    /** Starts a node, without a data directory. */
    startNode: (options: ServerOptions = {}) =>
      startServer({ ...options, dataDir: null, env: { ...env, ...options.env } }),
    /** Runs statements on the database. */
    async query<R extends object>(sql: string, values: unknown[] = []): Promise<R[]> {
      const client = new Client(url.href)
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
      await admin.query(`drop database ${name} with (force)`)
      await admin.end()
      rmSync(folder, { recursive: true })
    },
  }
}
