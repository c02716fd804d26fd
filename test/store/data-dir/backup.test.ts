import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { Database as SqliteConnection } from 'bun:sqlite'
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
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
import { backUpDatabase } from '../../../src/store/data-dir/backup.ts'
import { dataFiles } from '../../../src/store/data-dir/data-dir.ts'
import { readMigrationStatus } from '../../../src/store/data-dir/inspection.ts'
import { masterKeyCheck } from '../../../src/domain/model/keys.ts'
import { sqliteMigrations } from '../../../src/store/engine/migration-files.ts'
import { migrateSqlite } from '../../../src/store/sqlite/migrate.ts'
import { removeRestoreDrafts, restoreDatabase } from '../../../src/store/data-dir/restore.ts'
import { connect } from '../../../src/store/sqlite/database.ts'
import { createTestDatabase } from '../../helpers/data-dir.ts'

const masterKey = new Uint8Array(32).fill(1)
const now = Date.parse('2026-11-20T12:00:00Z')
const rows = 400
let folder: string
let dataDir: string
let database: string
let file: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'otpd-backup-'))
  dataDir = makeDataDir('data')
  database = dataFiles(dataDir).database
  file = join(folder, 'copy.db')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function makeDataDir(name: string) {
  const directory = join(folder, name)
  createTestDatabase(directory, masterKey)
  write(dataFiles(directory).database, name, rows)
  return directory
}

/** Inserts `count` rows whose names start with `name`. */
function write(path: string, name: string, count: number) {
  const connection = connect(path, 0)
  const insert = connection.prepare('insert into meta (name, value) values (?, ?)')
  // One transaction, and so one flush of the disk.
  connection.transaction(() => {
    for (let index = 0; index < count; index += 1) insert.run(`${name} ${index}`, 'x'.repeat(200))
  })()
  insert.finalize()
  connection.close()
}

function countIn(path: string, name: string) {
  const connection = new SqliteConnection(path, { readonly: true })
  try {
    const counting = connection.query<{ count: number }, [string]>(
      'select count(*) as count from meta where name like ?',
    )
    return counting.get(`${name} %`)?.count
  } finally {
    connection.close()
  }
}

/** Lists files, without those that a read-only connection leaves next to the database. */
const filesIn = (directory: string) =>
  readdirSync(directory)
    .filter((name) => !/-(wal|shm)$/.test(name))
    .toSorted()

const restore = (from = file, target = dataDir, key = masterKey) =>
  restoreDatabase(target, from, { masterKey: key, now })

/** As for a backup of 0.1.0, which has no HMAC. */
const restoreUnauthenticated = () => {
  rmSync(`${file}.hmac`, { force: true })
  return restoreDatabase(dataDir, file, { masterKey, allowUnauthenticated: true, now })
}

describe('a backup', () => {
  test('has every committed row, including those in the write-ahead log, and no log of its own', async () => {
    const server = connect(database, 0)
    server.run(`insert into meta (name, value) values ('data late', 'x')`)
    expect(statSync(`${database}-wal`).size).toBeGreaterThan(0)
    await backUpDatabase(database, file, masterKey)
    server.close()
    expect(countIn(file, 'data')).toBe(rows + 1)
    // Bytes 18 and 19 of the header: 1 is a rollback journal, 2 a write-ahead log.
    expect([...readFileSync(file).subarray(18, 20)]).toEqual([1, 1])
    expect(filesIn(folder)).toEqual(['copy.db', 'copy.db.hmac', 'data'])
  })

  test('is private to its owner, and reported with size and checksum', async () => {
    const backup = await backUpDatabase(database, file, masterKey)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const sha256 = createHash('sha256').update(readFileSync(file)).digest('hex')
    const rows = { accounts: 0, applications: 0, otpRequests: 0, logEntries: 0 }
    expect(backup).toEqual({ file, bytes: statSync(file).size, sha256, rows })
  })

  test('never overwrites a file', async () => {
    writeFileSync(file, 'dear')
    await expect(backUpDatabase(database, file, masterKey)).rejects.toMatchObject({ reason: 'FILE_EXISTS' })
    expect(readFileSync(file, 'utf8')).toBe('dear')
  })

  test('succeeds for one of two concurrent calls with the same name', async () => {
    const results = await Promise.allSettled([
      backUpDatabase(database, file, masterKey),
      backUpDatabase(database, file, masterKey),
    ])
    expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    expect(countIn(file, 'data')).toBe(rows)
  })

  test('whose HMAC cannot be written leaves nothing behind', async () => {
    mkdirSync(`${file}.hmac`)
    await expect(backUpDatabase(database, file, masterKey)).rejects.toMatchObject({
      reason: 'FILE_NOT_WRITABLE',
    })
    rmSync(`${file}.hmac`, { recursive: true })
    await backUpDatabase(database, file, masterKey)
    expect(readdirSync(folder).toSorted()).toEqual(['copy.db', 'copy.db.hmac', 'data'])
  })

  test('of a damaged or missing database leaves nothing behind', async () => {
    truncateSync(database, statSync(database).size - 8192)
    await expect(backUpDatabase(database, file, masterKey)).rejects.toMatchObject({
      reason: 'DATABASE_DAMAGED',
    })
    await expect(backUpDatabase(join(folder, 'none'), file, masterKey)).rejects.toMatchObject({
      reason: 'NO_DATABASE',
    })
    const target = join(folder, 'none', 'copy.db')
    await expect(
      backUpDatabase(dataFiles(makeDataDir('other')).database, target, masterKey),
    ).rejects.toMatchObject({
      reason: 'FILE_NOT_WRITABLE',
    })
    expect(filesIn(folder)).toEqual(['data', 'other'])
  })
})

describe('a restore', () => {
  test('restores the backup, and keeps the old database', async () => {
    await backUpDatabase(database, file, masterKey)
    write(database, 'later', 5)
    const { keptAs, pendingMigrations } = restore()
    expect(pendingMigrations).toEqual([])
    expect([countIn(database, 'data'), countIn(database, 'later')]).toEqual([rows, 0])
    expect(statSync(database).mode & 0o777).toBe(0o600)
    expect(keptAs).toBe(join(dataDir, 'backups/before-restore-2026-11-20T12-00-00-000Z.db'))
    expect(countIn(keptAs ?? '', 'later')).toBe(5)
    expect(filesIn(dataDir)).toEqual(['backups', 'otpd.db'])
  })

  test('keeps the old database with the write-ahead log of a killed server, and it can be restored', async () => {
    await backUpDatabase(database, file, masterKey)
    const server = connect(database, 0)
    server.run(`insert into meta (name, value) values ('late 1', 'x')`)
    const killed = join(folder, 'killed')
    mkdirSync(killed)
    for (const end of ['', '-wal']) copyFileSync(database + end, dataFiles(killed).database + end)
    server.close()
    const { keptAs } = restore(file, killed)
    expect(countIn(dataFiles(killed).database, 'late')).toBe(0)
    restoreDatabase(killed, keptAs ?? '', { masterKey, now: now + 1 })
    expect(countIn(dataFiles(killed).database, 'late')).toBe(1)
  })

  test('that was killed left working files, which the next start deletes', async () => {
    const names = ['otpd.db.restoring', 'otpd.db.restoring.copy', 'otpd.db.restoring-journal']
    for (const name of names) writeFileSync(join(dataDir, name), 'half')
    expect(removeRestoreDrafts(dataDir)).toBe(true)
    expect(readdirSync(dataDir).filter((name) => name.includes('restoring'))).toEqual([])
    expect(removeRestoreDrafts(dataDir)).toBe(false)
  })

  test('replaces a database that is too damaged to open, and keeps it', async () => {
    await backUpDatabase(database, file, masterKey)
    writeFileSync(database, 'not a database at all, and longer than a header '.repeat(50))
    const { keptAs } = restore()
    expect(countIn(database, 'data')).toBe(rows)
    expect(readFileSync(keptAs ?? '', 'utf8')).toStartWith('not a database')
  })

  test('into an empty directory keeps nothing', async () => {
    await backUpDatabase(database, file, masterKey)
    const empty = join(folder, 'empty')
    mkdirSync(empty)
    expect(restore(file, empty)).toEqual({ keptAs: null, pendingMigrations: [] })
    expect(countIn(dataFiles(empty).database, 'data')).toBe(rows)
  })

  test('of an older backup lists the pending migrations', async () => {
    const last = sqliteMigrations.at(-1)?.name ?? ''
    const older = connect(file, 0)
    migrateSqlite(older, now, sqliteMigrations.slice(0, -1))
    const check = masterKeyCheck(masterKey)
    older.run(`insert into meta (name, value) values ('master_key_check', ?)`, [check])
    older.close()
    expect(restoreUnauthenticated().pendingMigrations).toEqual([last])
    expect(readMigrationStatus(database).pending).toEqual([last])
  })

  /** Runs a statement on the backup. */
  function change(sql: string, ...values: string[]) {
    const connection = new SqliteConnection(file)
    connection.run(sql, values)
    connection.close()
  }

  const foreign = () => {
    rmSync(file)
    const connection = new SqliteConnection(file)
    connection.run('create table migrations (id integer primary key, migration text)')
    connection.run(`insert into migrations (migration) values ('2014_10_12_create_users_table')`)
    connection.close()
  }
  const flip = () => {
    const bytes = readFileSync(file)
    bytes.fill(0xff, 3 * 4096, 3 * 4096 + 64)
    writeFileSync(file, bytes)
  }

  test.each<[what: string, reason: string, spoil: () => void]>([
    ['no file', 'FILE_MISSING', () => rmSync(file)],
    ['text', 'BACKUP_INVALID', () => writeFileSync(file, 'hello '.repeat(1000))],
    ['an empty file', 'BACKUP_INVALID', () => writeFileSync(file, '')],
    ['a truncated file', 'BACKUP_INVALID', () => truncateSync(file, statSync(file).size - 4096)],
    ['a file without its last byte', 'BACKUP_INVALID', () => truncateSync(file, statSync(file).size - 1)],
    [
      'a file of another tool without its last byte',
      'BACKUP_INVALID',
      () => {
        change('PRAGMA journal_mode = WAL')
        truncateSync(file, statSync(file).size - 1)
      },
    ],
    ['half a page', 'BACKUP_INVALID', () => truncateSync(file, 2000)],
    ['a page overwritten', 'BACKUP_INVALID', flip],
    ["another program's database", 'BACKUP_INVALID', foreign],
    [
      'a backup of a newer version',
      'BACKUP_OF_ANOTHER_VERSION',
      () => change(`insert into migrations (name, checksum, applied_at) values ('9999_next', 'x', 1)`),
    ],
    [
      'a backup of another build',
      'BACKUP_OF_ANOTHER_VERSION',
      () => change(`update migrations set checksum = 'x' where name = '0001_initial'`),
    ],
    [
      'a backup with another master key',
      'BACKUP_OF_ANOTHER_KEY',
      () => change(`update data_keys set master_key = 'x'`),
    ],
    [
      'a backup without a master key',
      'BACKUP_OF_ANOTHER_KEY',
      () => {
        change(`delete from data_keys`)
        change(`delete from meta where name = 'master_key_check'`)
      },
    ],
    ['a backup without its HMAC', 'BACKUP_NOT_AUTHENTICATED', () => rmSync(`${file}.hmac`)],
    ['a backup with another HMAC', 'BACKUP_FORGED', () => writeFileSync(`${file}.hmac`, 'ab'.repeat(32))],
    ['a backup with an empty HMAC', 'BACKUP_FORGED', () => writeFileSync(`${file}.hmac`, '')],
    ['a changed backup', 'BACKUP_FORGED', () => change(`update meta set value = 'y' where name = 'data 1'`)],
    [
      'a planted trigger',
      'BACKUP_SCHEMA_CHANGED',
      () => change('create trigger t after insert on login_failures begin delete from login_failures; end'),
    ],
    ['a planted view', 'BACKUP_SCHEMA_CHANGED', () => change('create view v as select 1')],
    ['a planted table', 'BACKUP_SCHEMA_CHANGED', () => change('create table t (a)')],
    ['a planted index', 'BACKUP_SCHEMA_CHANGED', () => change('create index i on otp_requests (phone)')],
    ['a missing index', 'BACKUP_SCHEMA_CHANGED', () => change('drop index otp_requests_pending')],
  ])('refuses %s and changes nothing', async (_, reason, corrupt) => {
    await backUpDatabase(database, file, masterKey)
    corrupt()
    const before = readFileSync(database)
    const restoreIt = /AUTHENTICATED|FORGED/.test(reason) ? restore : restoreUnauthenticated
    expect(() => restoreIt()).toThrow(expect.objectContaining({ reason }))
    expect(readFileSync(database).equals(before)).toBe(true)
    expect(filesIn(dataDir)).toEqual(['otpd.db'])
  })

  test('refuses a directory', () => {
    expect(() => restore(folder)).toThrow(expect.objectContaining({ reason: 'BACKUP_INVALID' }))
  })

  test('fails while another command uses the database, and changes nothing', async () => {
    await backUpDatabase(database, file, masterKey)
    const command = connect(database, 0)
    expect(() => restore()).toThrow(expect.objectContaining({ reason: 'DATABASE_BUSY' }))
    command.close()
    expect(existsSync(dataFiles(dataDir).backups)).toBe(false)
    expect(countIn(database, 'data')).toBe(rows)
  }, 300_000)
})

test('a wrong HMAC is refused even if a missing one would not be', async () => {
  await backUpDatabase(database, file, masterKey)
  writeFileSync(`${file}.hmac`, 'ab'.repeat(32))
  const options = { masterKey, allowUnauthenticated: true, now }
  expect(() => restoreDatabase(dataDir, file, options)).toThrow(
    expect.objectContaining({ reason: 'BACKUP_FORGED' }),
  )
})

test('the status of migrations is read without creating files', () => {
  expect(readMigrationStatus(join(folder, 'none.db'))).toEqual({
    applied: [],
    pending: sqliteMigrations.map(({ name }) => name),
  })
  expect(existsSync(join(folder, 'none.db'))).toBe(false)
  expect(readMigrationStatus(database)).toEqual({
    applied: sqliteMigrations.map(({ name }) => name),
    pending: [],
  })
})
