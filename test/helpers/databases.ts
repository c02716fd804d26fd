import { afterAll, beforeAll, describe } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import { drizzle } from 'drizzle-orm/pglite'
import { sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { Client } from 'pg'
import type { Database } from '../../src/store/engine/database.ts'
import { migrateSqlite, postgresMigrations } from '../../src/store/engine/migrate.ts'
import { openPostgres, wrapPostgres } from '../../src/store/engine/postgres.ts'
import { connect, openSqlite } from '../../src/store/engine/sqlite.ts'

/** A migrated database and how to get rid of it. */
export type OpenTestDatabase = { database: Database; dispose(): Promise<void> }

export async function openTestSqlite(): Promise<OpenTestDatabase & { path: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-test-'))
  const path = join(folder, 'otpd.db')
  const connection = connect(path, 0)
  migrateSqlite(connection, 0)
  connection.close()
  const database = openSqlite(path, {
    onDiskFault: (error) => {
      throw error
    },
  })
  return {
    path,
    database,
    async dispose() {
      await database.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const shortIds = sqliteTable('short_ids', { id: text('id').notNull() })

/** Makes ids of developers, projects and applications known that nobody has created. */
export async function registerShortIds(database: Database, ...ids: string[]): Promise<void> {
  // PostgreSQL has the ids themselves.
  if (typeof database.shortId('') === 'string') return
  await database.write(async (tx) => void (await tx.insert(shortIds).values(ids.map((id) => ({ id })))))
}

async function openTestPglite(): Promise<OpenTestDatabase> {
  const client = new PGlite()
  for (const migration of postgresMigrations) await client.exec(migration.sql)
  const database = wrapPostgres(drizzle(client), () => client.close())
  return { database, dispose: () => database.close() }
}

/** @returns also its address, for a second pool */
export async function openTestPostgres(url: string): Promise<OpenTestDatabase & { url: string }> {
  // A database of its own, so that test files may run side by side.
  const name = `otpd_test_${crypto.randomUUID().replaceAll('-', '')}`
  const admin = new Client(url)
  await admin.connect()
  await admin.query(`create database ${name}`)
  const ownUrl = new URL(url)
  ownUrl.pathname = name
  const client = new Client(ownUrl.href)
  await client.connect()
  for (const migration of postgresMigrations) await client.query(migration.sql)
  await client.end()
  const database = openPostgres(ownUrl.href)
  return {
    url: ownUrl.href,
    database,
    async dispose() {
      await database.close()
      // Not by force: the pool's connections are still closing, and the server waits some seconds for them.
      await admin.query(`drop database ${name}`)
      await admin.end()
    },
  }
}

const url = process.env['OTPD_TEST_POSTGRES_URL']
const databaseKinds: Array<[string, () => Promise<OpenTestDatabase>]> = [
  ['SQLite', openTestSqlite],
  ['PGlite', openTestPglite],
]
if (url) databaseKinds.push(['PostgreSQL', () => openTestPostgres(url)])
else
  process.stderr.write(
    'Left out: tests on a real PostgreSQL server. Set OTPD_TEST_POSTGRES_URL to run them.\n',
  )

/** Runs the same tests on every database. `database()` is open while a test runs; `kind` is its name. */
export function describeEachDatabase(title: string, tests: (database: () => Database, kind: string) => void) {
  describe.each(databaseKinds)(`${title} on %s`, (kind, open) => {
    let openDatabase: OpenTestDatabase | undefined
    beforeAll(async () => {
      openDatabase = await open()
    })
    afterAll(() => openDatabase?.dispose())
    tests(() => {
      if (!openDatabase) throw new Error('the database is open only while a test runs')
      return openDatabase.database
    }, kind)
  })
}

/**
 * Undoes every transaction once and runs it again, as the failure of a neighbour in its batch has it.
 *
 * @param betweenRuns what others do between the two
 */
export const withRetriedWrites = (database: Database, betweenRuns = async () => {}): Database => ({
  ...database,
  async write(body) {
    const firstRun = database.write(async (tx) => {
      await body(tx)
      throw new Error('a neighbour failed')
    })
    await firstRun.catch(() => {})
    await betweenRuns()
    return database.write(body)
  },
})

/** How often a race is run: where no two transactions ever meet (PGlite has one connection), a few times do. */
export const raceRounds = (kind: string) => (kind === 'PGlite' ? 10 : 200)
