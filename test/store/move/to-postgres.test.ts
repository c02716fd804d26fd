import { afterAll, describe, expect, test } from 'bun:test'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getTableColumns, getTableName } from 'drizzle-orm'
import { Client } from 'pg'
import {
  pendingPostgresMigrations,
  readPostgresSchema,
  type SqlClient,
} from '../../../src/store/postgres/migrate.ts'
import { connectTo } from '../../../src/store/postgres/connect.ts'
import { connect } from '../../../src/store/sqlite/database.ts'
import { readMovedTo } from '../../../src/store/data-dir/moved.ts'
import { prepareDatabase } from '../../../src/store/data-dir/prepare-database.ts'
import { readTableSum } from '../../../src/store/move/checksum.ts'
import { listMovedTables } from '../../../src/store/move/moved-tables.ts'
import { moveToPostgres, type MoveOptions } from '../../../src/store/move/to-postgres.ts'
import { createTableSum, rowText } from '../../../src/store/move/checksum.ts'
import { runToEnd } from '../../helpers/binary.ts'
import { createMigratedPostgres, openTestSqlite } from '../../helpers/databases.ts'
import { createEmptyPostgres, testPostgresUrl } from '../../helpers/postgres.ts'
import { listFixtures, readFixture, unpackDatabase } from '../../upgrade/fixture.ts'

const version = listFixtures()[0] ?? ''
const folder = mkdtempSync(join(tmpdir(), 'otpd-move-'))
const template = join(folder, 'data', 'otpd.db')
afterAll(() => rmSync(folder, { recursive: true }))
unpackDatabase(version, folder)
const masterKey = Buffer.from(readFixture(version).masterKey, 'hex')
prepareDatabase(join(folder, 'data'), { masterKey, migrate: true, now: Date.now() })

let copies = 0
function copyTemplate() {
  const path = join(folder, `${++copies}.db`)
  cpSync(template, path)
  return path
}

const quiet: MoveOptions = { dryRun: false, restart: false, now: 0, target: 'db/otpd', onStep() {} }

/** @param create the target; by default it has the schema, because making that takes longer than all other steps */
async function openBoth(create = createMigratedPostgres) {
  const path = copyTemplate()
  const target = await create(testPostgresUrl ?? '')
  const client = await target.connect?.()
  if (!client) throw new Error('no server')
  const source = connect(path, 1000)
  return {
    path,
    source,
    client,
    url: target.url,
    async dispose() {
      source.close()
      await client.end().catch(() => {})
      await target.dispose()
    },
  }
}

/** Moves in a process of its own, which dies at a step. @returns the steps, and the outcome as the last line */
async function moveAndDie(path: string, url: string, dieAt: number | 'never', restart: 'restart' | '') {
  const script = join(import.meta.dir, '../../helpers/move-steps.ts')
  const { stdout, stderr } = await runToEnd([process.execPath, script, path, url, String(dieAt), restart], {})
  return { lines: stdout.trim().split('\n'), stderr }
}

type Opened = Awaited<ReturnType<typeof openBoth>>

/** Which of the two databases can be served. */
async function servable({ path, client }: Opened) {
  const source = connect(path, 1000)
  const isMoved = readMovedTo(source) !== null
  source.close()
  const schema = await readPostgresSchema(client)
  const hasTables = schema.applied.length > 0
  const hasData = hasTables && (await client.query('select 1 from developers')).rows.length > 0
  let isRefused = false
  try {
    pendingPostgresMigrations(schema)
  } catch {
    isRefused = true
  }
  return { sqlite: !isMoved, postgres: hasData && !isRefused }
}

async function expectEqualTables({ source, client }: Opened) {
  for (const table of listMovedTables(source)) {
    const sum = createTableSum()
    for (const row of table.rows()) sum.add(rowText(row))
    const stored = await readTableSum(client, table)
    // The mark of the move is added and deleted after the comparison.
    expect([table.name, stored]).toEqual([table.name, sum.read()])
  }
}

test('every table of SQLite is moved, or known to stay behind', async () => {
  const { database, path, dispose } = await openTestSqlite()
  const connection = connect(path, 0)
  const names = connection
    .query<{ name: string }, []>(`select name from sqlite_schema where type = 'table' order by 1`)
    .all()
    .map(({ name }) => name)
  const moved = listMovedTables(connection).map(({ name }) => name)
  expect(names.filter((name) => !moved.includes(name))).toEqual([
    'admission_batches',
    'leases',
    'list_changes',
    'lists',
    'migrations',
    'phone_index',
    'provider_circuits',
    'short_ids',
  ])
  // A column that no query names would stay behind.
  for (const table of Object.values(database.tables)) {
    const defined = Object.values(getTableColumns(table)).map((column) => column.name)
    const existing = connection
      .query<{ name: string }, [string]>('select name from pragma_table_info(?)')
      .all(getTableName(table))
      .map(({ name }) => name)
    expect([getTableName(table), defined.toSorted()]).toEqual([getTableName(table), existing.toSorted()])
  }
  connection.close()
  await dispose()
})

describe.skipIf(!testPostgresUrl)('a move to PostgreSQL', () => {
  test('keeps every row, also texts that COPY escapes, and goes on numbering', async () => {
    const opened = await openBoth(createEmptyPostgres)
    const { source, client } = opened
    const name = 'tab\tbackslash\\N \\. line\r\nquote\' "ü€😀'
    source.run('update projects set name = ?', [name])
    source.run('update developers set company = ?', [String.raw`\N`])
    const [subject] = source
      .query<{ number: number }, []>(
        'select number from short_ids s join applications a on a.id = s.id order by a.id',
      )
      .all()
    const key = (subject?.number ?? 0) * 4
    source.run('insert into admission_batches (at, entries) values (?, ?)', [
      1000,
      JSON.stringify([1000, key, -500, key + 1, -400, key, 0]),
    ])
    const result = await moveToPostgres(source, client, quiet)
    expect(result.outcome).toBe('moved')
    await expectEqualTables(opened)
    const projects = await client.query<{ name: string }>('select name from projects')
    expect(projects.rows.every((row) => row.name === name)).toBeTrue()
    const admissions = await client.query(
      'select policy, at::int, seq::int from rate_admissions order by 1, 2',
    )
    expect(admissions.rows).toEqual([
      { policy: 'otp-send', at: 500, seq: 1 },
      { policy: 'otp-send', at: 1000, seq: 2 },
      { policy: 'otp-verify', at: 600, seq: 1 },
    ])
    const next = await client.query<{ key: string; last: string }>(
      `select nextval('phones_keys')::text as key, (select max(key) from phones)::text as last`,
    )
    expect(Number(next.rows[0]?.key)).toBe(Number(next.rows[0]?.last ?? 0) + 1)
    await opened.dispose()
  })

  test('has the same indexes, constraints and triggers as a migrated database', async () => {
    const opened = await openBoth()
    const plain = await createMigratedPostgres(testPostgresUrl ?? '')
    await moveToPostgres(opened.source, opened.client, { ...quiet, now: Date.now() })
    const describeSchema = async (client: SqlClient) => {
      const { rows } = await client.query<{ line: string }>(
        `select c.relname || ' ' || pg_get_indexdef(indexrelid) || indisvalid as line
           from pg_index join pg_class c on c.oid = indrelid
           where relnamespace = current_schema()::regnamespace and not relispartition
         union all select conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(o.oid)
           from pg_constraint o join pg_class c on c.oid = conrelid
           where connamespace = current_schema()::regnamespace and not relispartition
         union all select pg_get_triggerdef(t.oid) from pg_trigger t join pg_class c on c.oid = tgrelid
           where not tgisinternal and not relispartition
         order by 1`,
      )
      return rows.map(({ line }) => line)
    }
    const schema = await describeSchema(opened.client)
    expect(schema.length).toBeGreaterThan(100)
    expect(schema).toEqual(await describeSchema(plain.client))
    const rest = await opened.client.query(
      `select 1 from otp_requests_rest union all select 1 from events_rest union all select 1 from webhook_attempts_rest`,
    )
    expect(rest.rows).toEqual([])
    await plain.dispose()
    await opened.dispose()
  })

  test('refuses a database that is used, and a file that is older, and changes nothing in a dry run', async () => {
    const opened = await openBoth()
    const { source, client } = opened
    const dry = await moveToPostgres(source, client, { ...quiet, dryRun: true })
    expect(dry).toMatchObject({ outcome: 'checked' })
    expect(await servable(opened)).toEqual({ sqlite: true, postgres: false })
    await moveToPostgres(source, client, quiet)
    expect(await servable(opened)).toEqual({ sqlite: false, postgres: true })
    expect(moveToPostgres(source, client, { ...quiet, restart: true })).rejects.toMatchObject({
      reason: 'ALREADY_MOVED',
    })
    const other = connect(copyTemplate(), 1000)
    expect(moveToPostgres(other, client, { ...quiet, restart: true })).rejects.toMatchObject({
      reason: 'NOT_EMPTY',
    })
    other.run(`delete from migrations where name > '0018'`)
    other.run(`delete from migrations where name = (select max(name) from migrations)`)
    expect(moveToPostgres(other, client, quiet)).rejects.toThrow('older than this otpd')
    other.close()
    await opened.dispose()
  })

  test('keeps host commands from writing until it has ended, and then for good', async () => {
    const opened = await openBoth()
    const other = connect(opened.path, 0)
    let refused = 0
    const onStep = () => {
      try {
        other.run(`insert into meta values ('lost', '1')`)
      } catch {
        refused++
      }
    }
    await moveToPostgres(opened.source, opened.client, { ...quiet, onStep })
    expect(refused).toBeGreaterThan(50)
    const rows = await opened.client.query(`select 1 from meta where name = 'lost'`)
    expect(rows.rows).toEqual([])
    other.close()
    await opened.dispose()
  })

  test('next to a move from another directory, one of the two is refused and goes on being served', async () => {
    const opened = await openBoth()
    const other = connect(copyTemplate(), 1000)
    const otherClient = await connectTo(opened.url)
    const results = await Promise.allSettled([
      moveToPostgres(opened.source, opened.client, quiet),
      moveToPostgres(other, otherClient, quiet),
    ])
    const outcomes = results.map((result) =>
      result.status === 'fulfilled' ? result.value.outcome : result.reason.reason,
    )
    expect(outcomes.toSorted()).toEqual([expect.stringMatching(/^(MOVE_INTERRUPTED|NOT_EMPTY)$/), 'moved'])
    const areMoved = [opened.source, other].map((source) => readMovedTo(source) !== null)
    expect(areMoved).toEqual(outcomes.map((outcome) => outcome === 'moved'))
    other.close()
    await otherClient.end()
    await opened.dispose()
  }, 60_000)

  // All steps from `empty` to `commit` are one transaction of PostgreSQL.
  test('interrupted at any step, it is begun again or refused, and never half served', async () => {
    const first = await openBoth()
    const { lines } = await moveAndDie(first.path, first.url, 'never', '')
    expect(lines.pop()).toBe('moved')
    await first.dispose()
    for (const step of new Set(lines)) {
      const place = lines.lastIndexOf(step)
      const opened = await openBoth(step === 'schema' ? createEmptyPostgres : createMigratedPostgres)
      const died = await moveAndDie(opened.path, opened.url, place, '')
      const after = await servable(opened)
      // `finish` is reported before the mark is deleted.
      expect([step, after]).toEqual([step, { postgres: false, sqlite: step !== 'finish' }])
      expect(died.lines).toHaveLength(place + 1)

      const { isMoving } = await readPostgresSchema(opened.client)
      const move = (restart: boolean) => moveToPostgres(opened.source, opened.client, { ...quiet, restart })
      if (isMoving && after.sqlite) {
        expect(await move(false).catch((error: unknown) => error)).toMatchObject({
          reason: 'MOVE_INTERRUPTED',
        })
        expect(await move(true)).toMatchObject({ outcome: 'moved' })
      } else expect(await move(false)).toMatchObject({ outcome: after.sqlite ? 'moved' : 'finished' })
      expect(await servable(opened)).toEqual({ sqlite: false, postgres: true })
      await expectEqualTables(opened)
      await opened.dispose()
    }
  }, 300_000)

  test('without its connection, leaves the data directory in use', async () => {
    const opened = await openBoth()
    const admin = new Client(testPostgresUrl)
    await admin.connect()
    const pid = (await opened.client.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid
    let killed: Promise<unknown> | undefined
    const onStep: MoveOptions['onStep'] = ({ step }) => {
      if (step === 'compare') killed ??= admin.query('select pg_terminate_backend($1)', [pid])
    }
    const failure: unknown = await moveToPostgres(opened.source, opened.client, { ...quiet, onStep }).catch(
      (error: unknown) => error,
    )
    expect(failure).toBeInstanceOf(Error)
    await killed
    await admin.end()
    const connection = connect(opened.path, 1000)
    expect(readMovedTo(connection)).toBeNull()
    connection.close()
    opened.source.close()
    const { lines } = await moveAndDie(opened.path, opened.url, 'never', 'restart')
    expect(lines.at(-1)).toBe('moved')
    await opened.dispose()
  })
})
