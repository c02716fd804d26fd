import { afterAll, describe } from 'bun:test'
import type { PGlite } from '@electric-sql/pglite'
import { Client } from 'pg'
import type { SqlClient } from '../../src/store/postgres/migrate.ts'

/** An empty database. `url` names it on a server, for tests that need several connections. */
type EmptyPostgres = {
  client: SqlClient
  url: string | null
  /** Opens another connection; undefined on PGlite, which has only one. */
  connect: (() => Promise<Client>) | undefined
  dispose(): Promise<void>
}

/** URL of the PostgreSQL server for tests; undefined without one. */
export const testPostgresUrl = process.env['OTPD_TEST_POSTGRES_URL'] || undefined

/** Creates a database on a PostgreSQL server, so that test files can run in parallel. @param template database to copy */
export async function createServerDatabase(serverUrl: string, template = 'template1') {
  const name = `otpd_test_${crypto.randomUUID().replaceAll('-', '')}`
  const url = new URL(serverUrl)
  url.pathname = name
  const asAdmin = async (work: (admin: Client) => Promise<unknown>) => {
    const admin = new Client(serverUrl)
    await admin.connect()
    await work(admin).finally(() => admin.end())
  }
  await asAdmin(async (admin) => {
    const { rows } = await admin.query<{ version: string }>(
      "select current_setting('server_version_num') as version",
    )
    // Copying files takes half the time of logging each page. Version 14 knows nothing else.
    const strategy = Number(rows[0]?.version) < 150_000 ? '' : 'strategy file_copy'
    await admin.query(`create database ${name} template ${template} ${strategy}`)
  })
  return {
    name,
    url: url.href,
    /** @param options.force ends connections to it instead of waiting some seconds for them */
    drop: ({ force = false } = {}) =>
      asAdmin((admin) => admin.query(`drop database ${name}${force ? ' with (force)' : ''}`)),
  }
}

/** Creates a database on a PostgreSQL server, empty unless it copies one. */
export async function createEmptyPostgres(
  serverUrl: string,
  template?: string,
): Promise<EmptyPostgres & { url: string }> {
  const { url, drop } = await createServerDatabase(serverUrl, template)
  const connect = async () => {
    const client = new Client(url)
    // A query in progress rejects with the error of a lost connection itself.
    client.on('error', () => {})
    await client.connect()
    return client
  }
  const client = await connect()
  return {
    client,
    url,
    connect,
    async dispose() {
      await client.end()
      await drop({ force: true })
    },
  }
}

/** Wraps PGlite as a connection. */
const asSqlClient = (pglite: PGlite): SqlClient => ({
  async query<R>(text: string, values?: unknown[]) {
    if (values) return pglite.query<R>(text, values)
    const results = await pglite.exec(text)
    // As with `pg`, the rows are those that the caller asked for.
    return { rows: (results.at(-1)?.rows ?? []) as R[] }
  },
})

async function createEmptyPglite(): Promise<EmptyPostgres> {
  const { PGlite } = await import('@electric-sql/pglite')
  const pglite = new PGlite()
  return { client: asSqlClient(pglite), url: null, connect: undefined, dispose: () => pglite.close() }
}

/** Runs the tests on a PostgreSQL server, or on PGlite where none is given. */
export function describeEachPostgres(
  title: string,
  tests: (open: () => Promise<EmptyPostgres>, kind: string) => void,
) {
  const kinds: Array<[string, () => Promise<EmptyPostgres>]> = []
  if (testPostgresUrl !== undefined) kinds.push(['PostgreSQL', () => createEmptyPostgres(testPostgresUrl)])
  else if (process.env['OTPD_TEST_DATABASES'] !== 'sqlite') kinds.push(['PGlite', createEmptyPglite])
  describe.each(kinds)(`${title} on %s`, (kind, create) => {
    const opened: EmptyPostgres[] = []
    afterAll(() => Promise.all(opened.map((one) => one.dispose())))
    tests(async () => {
      const database = await create()
      opened.push(database)
      return database
    }, kind)
  })
}
