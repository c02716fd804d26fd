import { expect, test } from 'bun:test'
import {
  migratePostgres,
  pendingPostgresMigrations,
  readPostgresSchema,
} from '../../../src/store/postgres/migrate.ts'
import { migrationScope } from '../../../src/store/postgres/migration-scope.ts'
import { postgresMigrations, type Migration } from '../../../src/store/engine/migration-files.ts'
import { MigrationError } from '../../../src/store/engine/migrations.ts'
import { createMigratedPostgres } from '../../helpers/databases.ts'
import { createEmptyPostgres, describeEachPostgres, testPostgresUrl } from '../../helpers/postgres.ts'

/** A migration that comes after the first `count` real ones. */
const later = (sql: string, count = postgresMigrations.length, name = 'test'): Migration => ({
  name: `${String(count + 1).padStart(4, '0')}_${name}`,
  sql,
})

const expand = later('-- expand\nalter table projects add column color text;\n', undefined, 'expand')
const contract = later(
  `-- contract ${expand.name.slice(0, 4)}\nalter table projects drop column description;\n`,
  postgresMigrations.length + 1,
  'contract',
)

test('every migration from 0019 on declares how it gets along with older nodes', () => {
  for (const { name, sql } of postgresMigrations.slice(18))
    expect([name, /^-- (expand( concurrently)?|contract \d{4})\n/.test(sql)]).toEqual([name, true])
  expect(migrationScope({ name: '0042_x', sql: 'select 1;' }).nodesFrom).toBe(42)
  expect(migrationScope(contract).nodesFrom).toBe(postgresMigrations.length + 1)
})

describeEachPostgres('migrating', (open, kind) => {
  test('creates the schema, and finds nothing to do the second time', async () => {
    const { client } = await open()
    expect((await readPostgresSchema(client)).applied).toEqual([])
    const first = await migratePostgres(client, { migrate: false })
    expect(first).toEqual({ isNew: true, migrated: postgresMigrations.map(({ name }) => name) })
    expect(await migratePostgres(client, { migrate: false })).toEqual({ isNew: false, migrated: [] })
    expect((await readPostgresSchema(client)).applied).toHaveLength(postgresMigrations.length)
  })

  test('refuses a changed migration, an older schema without leave, and tables of another program', async () => {
    const { client } = await open()
    await migratePostgres(client, { migrate: true })
    const changed = postgresMigrations.with(0, { name: '0001_initial', sql: 'select 1' })
    expect(migratePostgres(client, { migrate: true, available: changed })).rejects.toThrow('different build')
    const newer = [...postgresMigrations, expand]
    expect(migratePostgres(client, { migrate: false, available: newer })).rejects.toThrow(
      'older than this otpd',
    )
    const other = await open()
    await other.client.query('create table songs (title text)')
    expect(migratePostgres(other.client, { migrate: true })).rejects.toThrow('not created by otpd')
  })

  test('rolls back everything if a statement fails, and names no value', async () => {
    const { client } = await open()
    const broken = [...postgresMigrations, later("-- expand\ninsert into meta values ('secret', null);\n")]
    const failure: unknown = await migratePostgres(client, { migrate: true, available: broken }).catch(
      (error: unknown) => error,
    )
    expect(failure).toBeInstanceOf(MigrationError)
    expect(String(failure)).not.toContain('secret')
    expect((await readPostgresSchema(client)).applied).toEqual([])
    await migratePostgres(client, { migrate: true })
  })

  test('a node serves a newer schema until that drops what the node uses', async () => {
    const { client } = await open()
    await migratePostgres(client, { migrate: true })
    await migratePostgres(client, { migrate: true, available: [...postgresMigrations, expand] })
    expect(pendingPostgresMigrations(await readPostgresSchema(client))).toEqual([])
    expect(await migratePostgres(client, { migrate: true })).toEqual({ isNew: false, migrated: [] })

    const all = [...postgresMigrations, expand, contract]
    let nodesFrom: number | undefined
    await migratePostgres(client, {
      migrate: true,
      available: all,
      drainMs: 1,
      // Older nodes learn of it before it is applied.
      onDrain: () => void readPostgresSchema(client).then((schema) => (nodesFrom = schema.nodesFrom)),
    })
    expect(nodesFrom).toBe(all.length - 1)
    const schema = await readPostgresSchema(client)
    expect(schema.applied).toHaveLength(all.length)
    expect(() => pendingPostgresMigrations(schema)).toThrow('newer than this otpd')
    expect(pendingPostgresMigrations(schema, all.slice(0, -1))).toEqual([])
  })

  test.skipIf(kind === 'PGlite')(
    'builds an index while nodes write, also after an interruption',
    async () => {
      const { client, connect } = await open()
      await migratePostgres(client, { migrate: true })
      const sql = '-- expand concurrently\ncreate index concurrently projects_by_name on projects (name);\n'
      const available = [...postgresMigrations, later(sql)]
      expect(migratePostgres(client, { migrate: true, available })).rejects.toThrow('builds an index')
      await client.query('create index projects_by_name on projects (id)')
      await migratePostgres(client, { migrate: true, available, ...(connect && { connect }) })
      const { rows } = await client.query<{ indexdef: string }>(
        `select indexdef from pg_indexes where indexname = 'projects_by_name'`,
      )
      expect(rows[0]?.indexdef).toEndWith('(name)')
      expect((await readPostgresSchema(client)).applied).toHaveLength(available.length)
    },
  )
})

test.skipIf(!testPostgresUrl)('of nodes that start at the same time, one migrates', async () => {
  const database = await createEmptyPostgres(testPostgresUrl ?? '')
  const clients = await Promise.all(Array.from({ length: 8 }, () => database.connect?.()))
  const results = await Promise.all(
    clients.map((client) => client && migratePostgres(client, { migrate: true })),
  )
  expect(results.filter((result) => result && result.migrated.length > 0)).toHaveLength(1)
  await Promise.all(clients.map((client) => client?.end()))
  await database.dispose()
})

test.skipIf(!testPostgresUrl)('waits for a lock, and lets calls pass meanwhile', async () => {
  const database = await createMigratedPostgres(testPostgresUrl ?? '')
  const holder = await database.connect?.()
  const caller = await database.connect?.()
  await holder?.query('begin')
  await holder?.query('lock table projects in access share mode')
  let isMigrated = false
  const migration = migratePostgres(database.client, {
    migrate: true,
    available: [...postgresMigrations, expand],
  }).then(() => (isMigrated = true))
  const isWaiting = async () =>
    ((await caller?.query('select from pg_locks where not granted'))?.rows.length ?? 0) > 0
  while (!(await isWaiting())) await Bun.sleep(5)
  // Waits behind the migration until that gives up for a while.
  await caller?.query('select count(*) from projects')
  expect(isMigrated).toBeFalse()
  await holder?.query('commit')
  await migration
  await holder?.end()
  await caller?.end()
  await database.dispose()
})

test.skipIf(!testPostgresUrl)('ends no call by a deadlock that locks tables in another order', async () => {
  const database = await createMigratedPostgres(testPostgresUrl ?? '')
  const ended = new AbortController()
  // As operations do: applications before phones.
  async function callUntilMigrated() {
    const caller = await database.connect?.()
    while (!ended.signal.aborted) {
      await caller?.query('begin')
      await caller?.query('select from applications for update')
      await Bun.sleep(20)
      await caller?.query('select from phones for update')
      await caller?.query('commit')
    }
    await caller?.end()
  }
  const calls = Promise.all([callUntilMigrated(), callUntilMigrated()])
  const names = ['phones', 'applications', 'phones', 'applications']
  const available = names.reduce<Migration[]>(
    (all, table, index) => [
      ...all,
      later(`-- expand\nalter table ${table} add column test_${index} text;\n`, all.length),
    ],
    [...postgresMigrations],
  )
  await migratePostgres(database.client, { migrate: true, available })
  ended.abort()
  await calls
  await database.dispose()
})

test.skipIf(!testPostgresUrl)('goes on after a migration that fails', async () => {
  const database = await createMigratedPostgres(testPostgresUrl ?? '')
  const broken = later('-- expand\nalter table nothing add column x text;\n', postgresMigrations.length + 1)
  const available = [...postgresMigrations, expand, broken]
  await expect(migratePostgres(database.client, { migrate: true, available })).rejects.toThrow(broken.name)
  expect((await readPostgresSchema(database.client)).applied).toHaveLength(postgresMigrations.length + 1)
  const mended = available.with(postgresMigrations.length + 1, { ...broken, sql: '-- expand\nselect 1;\n' })
  expect((await migratePostgres(database.client, { migrate: true, available: mended })).migrated).toEqual([
    broken.name,
  ])
  await database.dispose()
})
