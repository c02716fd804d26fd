import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openTestFile } from '../../helpers/databases.ts'
import { readFixture, unpackDatabase } from '../../upgrade/fixture.ts'
import { createDatabase } from '../../../src/store/data-dir/create-database.ts'
import { dataFiles } from '../../../src/store/data-dir/data-dir.ts'
import { inspectDataDir } from '../../../src/store/data-dir/inspection.ts'
import { connect } from '../../../src/store/sqlite/database.ts'
import { makeSchemaDigest, newestSchemaDigest } from '../../../src/store/data-dir/schema.ts'
import {
  hasWal,
  markCleanStop,
  prepareDatabase,
  takeCleanStop,
} from '../../../src/store/data-dir/prepare-database.ts'

const options = { masterKey: new Uint8Array(32).fill(1), migrate: true, now: 0 }
const create = () => createDatabase(dataDir, { configured: options.masterKey, isForced: false, now: 0 })
let dataDir: string

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'otpd-prepare-'))
})
afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

test('the digest of the schema is that of all migrations', () => {
  expect(newestSchemaDigest).toBe(makeSchemaDigest())
})

describe('a database that was changed outside of otpd', () => {
  const plant = 'create trigger planted after insert on login_failures begin delete from login_failures; end'

  test.each([
    ['a trigger', plant, 'a trigger that otpd did not make: planted'],
    ['a view', 'create view seen as select * from accounts', 'a view that otpd did not make: seen'],
    ['a table', 'create table extra (a)', 'a table that otpd did not make: extra'],
    ['an index less', 'drop index otp_requests_pending', 'no index otp_requests_pending'],
    [
      'a changed trigger',
      `drop trigger projects_numbered;
       create trigger projects_numbered after insert on projects begin select 1; end`,
      'a changed trigger: projects_numbered',
    ],
    ['an escape sequence', 'create table "a\u001b[2J" (a)', 'a table that otpd did not make: a?[2J'],
  ])('is refused with %s', (_, sql, message) => {
    create()
    const connection = connect(dataFiles(dataDir).database, 0)
    for (const statement of sql.split(';\n')) connection.run(statement)
    connection.close()
    expect(() => prepareDatabase(dataDir, options)).toThrow(message)
    expect(inspectDataDir(dataDir, options.masterKey)).toMatchObject({
      database: { schemaError: expect.stringContaining(message) },
    })
  })

  test('may have the tables of ANALYZE and Litestream', () => {
    create()
    const connection = connect(dataFiles(dataDir).database, 0)
    connection.run('analyze')
    connection.run('create table _litestream_seq (id integer primary key, seq integer)')
    connection.run('create table _litestream_lock (id integer)')
    connection.close()
    expect(prepareDatabase(dataDir, options).migrated).toEqual([])
  })
})

test('a database without the end of its last page is damaged, unless the write-ahead log has that page', () => {
  create()
  const { database } = dataFiles(dataDir)
  truncateSync(database, statSync(database).size - 1)
  const before = readFileSync(database)
  expect(() => prepareDatabase(dataDir, options)).toThrow(`${database} is damaged`)
  expect(readFileSync(database).equals(before)).toBe(true)
  writeFileSync(`${database}-wal`, 'a log')
  expect(prepareDatabase(dataDir, options).migrated).toEqual([])
})

test('an upgrade that fails again and again leaves one copy, and a new one only if the database has changed', () => {
  const folder = join(dataDir, 'old')
  unpackDatabase('0.1.0', folder)
  const old = join(folder, 'data')
  const masterKey = Buffer.from(readFixture('0.1.0').masterKey, 'hex')
  const copies = () => readdirSync(dataFiles(old).backups).toSorted()
  const attempt = (now: number, failsAt?: string) =>
    prepareDatabase(old, {
      masterKey,
      migrate: true,
      now,
      onStep({ step }) {
        if (failsAt !== undefined && step.includes(failsAt)) throw new Error('interrupted')
      },
    })

  expect(() => attempt(1, 'copying')).toThrow('interrupted')
  expect(copies()).toEqual([])
  for (const now of [2, 3, 4]) expect(() => attempt(now, '0022')).toThrow('interrupted')
  const nameOf = (now: number) => `before-migration-1970-01-01T00-00-00-00${now}Z.db`
  expect(copies()).toEqual([nameOf(2), `${nameOf(2)}.hmac`, 'before-migration.json'])

  const connection = connect(dataFiles(old).database, 0)
  connection.run('update developers set updated_at = updated_at + 1')
  connection.close()
  expect(() => attempt(5, '0022')).toThrow('interrupted')
  expect(copies()).toEqual([nameOf(5), `${nameOf(5)}.hmac`, 'before-migration.json'])

  expect(attempt(6).backup).toEndWith(nameOf(5))
  expect(copies()).toEqual([nameOf(5), `${nameOf(5)}.hmac`])
})

const canMount =
  Bun.spawnSync(['unshare', '-rm', 'mount', '-t', 'tmpfs', 'tmpfs', tmpdir()], { stderr: 'ignore' })
    .exitCode === 0

test.skipIf(!canMount)('an upgrade says how much free space it needs before it copies anything', () => {
  unpackDatabase('0.1.0', dataDir)
  const script = `mount -t tmpfs -o size=1m,mode=700 tmpfs '${dataDir}/disk' && cp '${dataDir}/data/otpd.db' '${dataDir}/disk' &&
    '${process.execPath}' '${join(import.meta.dir, '../../../cli/main.ts')}' migrate up --data-dir '${dataDir}/disk'; ls '${dataDir}/disk/backups'`
  mkdirSync(join(dataDir, 'disk'), { mode: 0o700 })
  const { stdout, stderr } = Bun.spawnSync(['unshare', '-rm', 'sh', '-c', `umask 077; ${script}`], {
    env: { PATH: process.env.PATH ?? '', HOME: dataDir, OTPD_MASTER_KEY: readFixture('0.1.0').masterKey },
  })
  expect(stderr.toString()).toMatch(
    /^Error: The upgrade needs 2 MB of free space in \S+, and there are 1 MB\.\n {2}Make room on that disk/,
  )
  expect(stdout.toString()).toBe('')
})

test('a clean stop is told from a crash, also while a program that copies the database keeps its write-ahead log', async () => {
  create()
  const { database } = dataFiles(dataDir)
  const copier = connect(database, 0)
  copier.run('begin')
  copier.query('select count(*) from meta').get()
  const stopping = openTestFile(database)
  await markCleanStop(stopping)
  await stopping.close()
  expect(hasWal(dataDir)).toBe(true)
  const started = openTestFile(database)
  expect([await takeCleanStop(started), await takeCleanStop(started)]).toEqual([true, false])
  await started.close()
  copier.close()
})

test('a stop and a start wait for a program that writes for a moment, such as Litestream at a checkpoint', async () => {
  create()
  const { database } = dataFiles(dataDir)
  const hold = `const db = new (require('bun:sqlite').Database)(process.argv[1]); db.run('begin immediate');
    console.log('holds it'); setTimeout(() => db.run('rollback'), 300)`
  const stopping = openTestFile(database)
  for (const step of [() => markCleanStop(stopping), () => takeCleanStop(stopping)]) {
    const writer = Bun.spawn([process.execPath, '-e', hold, database], { stdout: 'pipe' })
    await writer.stdout.getReader().read()
    await step()
    await writer.exited
  }
  await stopping.close()
})
