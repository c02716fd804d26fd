import { afterAll, beforeAll, describe } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { Client } from 'pg'
import type { Database } from '../../src/store/engine/database.ts'
import { postgresMigrations } from '../../src/store/engine/migration-files.ts'
import { migrateSqlite } from '../../src/store/sqlite/migrate.ts'
import { migratePostgres } from '../../src/store/postgres/migrate.ts'
import type { PostgresOptions } from '../../src/store/postgres/connections.ts'
import { openPostgres } from '../../src/store/postgres/database.ts'
import { connect, openSqlite, type SqliteOptions } from '../../src/store/sqlite/database.ts'
import { wrapPglite } from './pglite.ts'
import { createEmptyPostgres, createServerDatabase, testPostgresUrl } from './postgres.ts'
import { testWorld } from './world.ts'

/** A migrated database; `dispose` closes and deletes it. */
export type OpenTestDatabase = { database: Database; dispose(): Promise<void> }

/** Migrated databases. Each test copies one, which is faster than migrating its own. */
let sqliteTemplate: Uint8Array | undefined
let pgliteTemplate: Promise<File | Blob> | undefined
let postgresTemplate: Promise<string> | undefined

function makeSqliteTemplate(): Uint8Array {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-template-'))
  try {
    const path = join(folder, 'otpd.db')
    const connection = connect(path, 0)
    migrateSqlite(connection, 0)
    // Closing the last connection moves the write-ahead log into the file.
    connection.close()
    return readFileSync(path)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function makePgliteTemplate(): Promise<File | Blob> {
  const { PGlite } = await import('@electric-sql/pglite')
  const client = new PGlite()
  for (const migration of postgresMigrations) await client.exec(migration.sql)
  const dump = await client.dumpDataDir('none')
  await client.close()
  return dump
}

/**
 * Returns the name of a migrated database on the server. It is named by the digest of its migrations and stays there, for
 * other test processes and the next run.
 */
const migratedTemplate = (url: string): Promise<string> => (postgresTemplate ??= makePostgresTemplate(url))

/** Creates a database on a PostgreSQL server that has the schema and no rows. */
export const createMigratedPostgres = async (serverUrl: string) =>
  createEmptyPostgres(serverUrl, await migratedTemplate(serverUrl))

async function makePostgresTemplate(url: string): Promise<string> {
  const digest = new Bun.CryptoHasher('sha256')
  for (const { name, sql } of postgresMigrations) digest.update(`${name}\n${sql}\n`)
  const name = `otpd_test_migrated_${digest.digest('hex').slice(0, 16)}`
  const admin = new Client(url)
  await admin.connect()
  try {
    // Makes other test processes wait, so that each finds the template complete.
    await admin.query('select pg_advisory_lock(hashtext($1))', [name])
    const found = await admin.query('select from pg_database where datname = $1', [name])
    if (found.rows.length > 0) return name
    const database = await createServerDatabase(url)
    const client = new Client(database.url)
    await client.connect()
    await migratePostgres(client, { migrate: true })
    await client.end()
    await admin.query(`alter database ${database.name} rename to ${name}`)
    return name
  } finally {
    await admin.end()
  }
}

/** Opens a migrated SQLite file. */
export const openTestFile = (path: string, options: Partial<SqliteOptions> = {}): Database =>
  openSqlite(path, {
    onDiskFault: (error) => {
      throw error
    },
    world: testWorld,
    ...options,
  })

/** Creates a migrated SQLite file in a folder of its own. @param content of another file, instead of empty tables */
export async function openTestSqlite(
  options: Partial<SqliteOptions> & { content?: Uint8Array } = {},
): Promise<OpenTestDatabase & { path: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-test-'))
  const path = join(folder, 'otpd.db')
  const { content = (sqliteTemplate ??= makeSqliteTemplate()), ...sqliteOptions } = options
  writeFileSync(path, content)
  const database = openTestFile(path, sqliteOptions)
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

/** Registers ids of developers, projects and applications that no test has created. */
export async function registerShortIds(database: Database, ...ids: string[]): Promise<void> {
  // On PostgreSQL ids are their own keys; only SQLite maps them to integers.
  if (typeof database.shortId('') === 'string') return
  await database.write(async (tx) => void (await tx.insert(shortIds).values(ids.map((id) => ({ id })))))
}

/** Registers applications that no test has created as deleted ones, whose rows stay listed. */
export async function registerDeletedApplications(
  database: Database,
  apps: ReadonlyArray<{ developerId: string; appId: string }>,
): Promise<void> {
  const rows = apps.map(({ developerId, appId: id }) => ({ id, developerId, environment: 'live' as const }))
  await database.write(async (tx) => void (await tx.insert(database.tables.deletedApplications).values(rows)))
}

async function openTestPglite(): Promise<OpenTestDatabase> {
  // Loaded only where it runs, which takes half a second of CPU.
  const [{ PGlite }, { drizzle }] = await Promise.all([
    import('@electric-sql/pglite'),
    import('drizzle-orm/pglite'),
  ])
  const client = new PGlite({ loadDataDir: await (pgliteTemplate ??= makePgliteTemplate()) })
  const database = wrapPglite(drizzle(client), () => client.close())
  return { database, dispose: () => database.close() }
}

/**
 * Opens a migrated PostgreSQL database as a node does, but without time-outs of its sessions: the server would end a transaction
 * that is idle for 0.7 s, which happens in a test on a busy machine.
 */
export const openPatientPostgres = (url: string, options: Partial<PostgresOptions> = {}): Database =>
  openPostgres(url, { acquireTimeoutMs: 60_000, sessionTimeoutMs: 0, ...options })

/**
 * Creates a migrated database on a PostgreSQL server.
 *
 * @returns also its URL, and `openNode`, which opens connections as another node has them; `dispose` closes them
 */
export async function openTestPostgres(
  url: string,
): Promise<OpenTestDatabase & { url: string; openNode(options?: Partial<PostgresOptions>): Database }> {
  const created = await createServerDatabase(url, await migratedTemplate(url))
  const nodes: Database[] = []
  function openNode(options?: Partial<PostgresOptions>): Database {
    const node = openPatientPostgres(created.url, options)
    nodes.push(node)
    return node
  }
  return {
    url: created.url,
    database: openNode(),
    openNode,
    async dispose() {
      await Promise.all(nodes.map((node) => node.close()))
      // Without `force`: the pool's connections are still closing, and the server waits some seconds for them.
      await created.drop()
    },
  }
}

const databaseKinds: Array<[string, () => Promise<OpenTestDatabase>]> = [['SQLite', () => openTestSqlite()]]
// `npm run test:unit` sets this: starting PostgreSQL takes longer than most test files.
if (process.env['OTPD_TEST_DATABASES'] !== 'sqlite') databaseKinds.push(postgresKind())

/** A server, or PGlite, which is the same PostgreSQL with a single connection, where no server is given. */
function postgresKind(): (typeof databaseKinds)[number] {
  const url = testPostgresUrl
  if (url !== undefined) return ['PostgreSQL', () => openTestPostgres(url)]
  process.stderr.write(
    'Skipped: tests on a PostgreSQL server; PGlite runs instead. Set OTPD_TEST_POSTGRES_URL to run them.\n',
  )
  return ['PGlite', openTestPglite]
}

/** Runs the same tests on every kind of database. `database()` is open while a test runs; `kind` is its name. */
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
 * Rolls every transaction back once and runs it again, as the write queue does when another write of the batch fails.
 *
 * @param betweenRuns what other writers do between the two runs
 */
export const withRetriedWrites = (database: Database, betweenRuns = async () => {}): Database => ({
  ...database,
  async write(body) {
    const firstRun = database.write(async (tx) => {
      await body(tx)
      throw new Error('another write of the batch failed')
    })
    await firstRun.catch(() => {})
    await betweenRuns()
    return database.write(body)
  },
  group(bind) {
    const lose = database.group((tx) => {
      const calls = bind(tx)
      return {
        ...calls,
        async write() {
          await calls.write()
          throw new Error('another call of the batch failed')
        },
      }
    })
    const keep = database.group(bind)
    return async <R>(call: Parameters<typeof keep>[0]) => {
      await lose(call).catch(() => {})
      await betweenRuns()
      return keep<R>(call)
    }
  },
})

/** Rounds of a race. PGlite has one connection, so transactions never overlap there, and a few rounds are enough. */
export const raceRounds = (kind: string) => (kind === 'PGlite' ? 10 : 50)
