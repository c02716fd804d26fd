import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dataFiles, prepareDataDir } from '../../../src/store/data-dir/data-dir.ts'
import { inspectDataDir } from '../../../src/store/data-dir/inspection.ts'
import { acquireLock } from '../../../src/store/data-dir/lock.ts'
import { sqliteMigrations } from '../../../src/store/engine/migration-files.ts'
import { migrateSqlite } from '../../../src/store/sqlite/migrate.ts'
import { connect } from '../../../src/store/sqlite/database.ts'
import { createTestDatabase } from '../../helpers/data-dir.ts'

let folder: string
let dataDir: string
let files: ReturnType<typeof dataFiles>

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'otpd-inspection-'))
  dataDir = join(folder, 'data')
  files = dataFiles(dataDir)
  prepareDataDir(dataDir, () => {})
  createTestDatabase(dataDir)
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function inspectOpen(key: Uint8Array | null | undefined = null) {
  const inspection = inspectDataDir(dataDir, key)
  if (inspection.state !== 'accessible') throw new Error(inspection.state)
  return inspection
}

function runStatements(...statements: string[]) {
  const connection = connect(files.database, 0)
  for (const statement of statements) connection.run(statement)
  connection.close()
}

const contents = () => readdirSync(dataDir).map((name) => [name, readFileSync(join(dataDir, name), 'base64')])

describe('an inspection', () => {
  test('of a missing directory does not create it', () => {
    rmSync(dataDir, { recursive: true })
    expect(inspectDataDir(dataDir, null)).toEqual({ state: 'missing' })
    expect(existsSync(dataDir)).toBe(false)
  })

  test('of an intact directory finds no fault and changes nothing', () => {
    const before = contents()
    expect(inspectOpen()).toMatchObject({
      isExposed: false,
      exposed: [],
      wrongOwner: [],
      isHeld: false,
      masterKey: 'matches',
      database: {
        state: 'readable',
        pending: [],
        schemaError: null,
        damage: null,
        openCircuits: [],
        guardAlerts: [],
      },
    })
    expect(inspectOpen().freeBytes).toBeGreaterThan(0)
    expect(contents()).toEqual(before)
  })

  test('sees the writes of a running server and its lock, without taking the lock', () => {
    const lock = acquireLock(files.lock)
    const server = connect(files.database, 0)
    server.run(
      `insert into provider_circuits (node, name, failure, open_until) values ('a', 'main', 'throttled', 7)`,
    )
    expect(inspectOpen()).toMatchObject({
      isHeld: true,
      database: { openCircuits: [{ node: 'a', name: 'main', failure: 'throttled', openUntil: 7 }] },
    })
    server.close()
    lock?.release()
    expect(inspectOpen().isHeld).toBe(false)
    const secondLock = acquireLock(files.lock)
    expect(secondLock).toBeDefined()
    secondLock?.release()
  })

  test('finds files that other users can read', () => {
    chmodSync(dataDir, 0o755)
    chmodSync(files.database, 0o644)
    expect(inspectOpen()).toMatchObject({ isExposed: true, exposed: ['otpd.db'], masterKey: 'matches' })
    chmodSync(files.masterKey, 0o640)
    expect(inspectOpen()).toMatchObject({ exposed: ['otpd.db', 'master.key'], masterKey: 'unchecked' })
  })

  test('compares the master key with the database', () => {
    expect(inspectOpen(new Uint8Array(32)).masterKey).toBe('mismatch')
    expect(inspectDataDir(dataDir, undefined)).toMatchObject({ masterKey: 'unchecked' })
    writeFileSync(files.masterKey, 'no key\n')
    expect(inspectOpen().masterKey).toBe('unusable')
    rmSync(files.masterKey)
    expect(inspectOpen().masterKey).toBe('missing')
    expect(existsSync(files.masterKey)).toBe(false)
  })

  test('distinguishes an older database from a newer one', () => {
    rmSync(files.database)
    const older = connect(files.database, 0)
    migrateSqlite(older, 0, sqliteMigrations.slice(0, -1))
    older.close()
    chmodSync(files.database, 0o600)
    expect(inspectOpen().database).toMatchObject({
      schemaError: null,
      pending: [expect.stringMatching(/^\d{4}_/)],
    })
    runStatements(`insert into migrations (name, checksum, applied_at) values ('9999_later', '', 0)`)
    expect(inspectOpen().database).toMatchObject({
      pending: [],
      schemaError: expect.stringContaining('9999_later'),
    })
  })

  test('finds values that its keys do not open, in each table', () => {
    const text = `s1.${'A'.repeat(60)}`
    runStatements(
      `insert into otp_sessions values ('ses_1', 'dev_1', 'app_1', 'hash', '${text}', 'created', null, 0, 0, 0)`,
    )
    expect(inspectOpen().database).toMatchObject({
      seals: { percent: 0, unreadable: ['otp_sessions.details ses_1'] },
    })
  })

  test('finds damage, and a file that is not a database', () => {
    runStatements('PRAGMA wal_checkpoint(TRUNCATE)')
    const bytes = readFileSync(files.database)
    bytes.fill(0xa5, 4096 * 3, 4096 * 6)
    writeFileSync(files.database, bytes)
    expect(inspectOpen().database).toMatchObject({ state: 'readable', damage: expect.any(String) })
    writeFileSync(files.database, 'Dear diary, '.repeat(1000))
    expect(inspectOpen().database).toEqual({ state: 'unreadable', cause: 'SQLITE_NOTADB' })
  })
})
