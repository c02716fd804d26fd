import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dataFiles, prepareDataDir, readMasterKey } from '../../../src/store/files/data-dir.ts'
import { inspectDataDir } from '../../../src/store/files/inspection.ts'
import { acquireLock } from '../../../src/store/files/lock.ts'
import { prepareDatabase } from '../../../src/store/files/open.ts'
import { connect } from '../../../src/store/engine/sqlite.ts'

let folder: string
let dataDir: string
let files: ReturnType<typeof dataFiles>

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'otpd-inspection-'))
  dataDir = join(folder, 'data')
  files = dataFiles(dataDir)
  prepareDataDir(dataDir, () => {})
  const masterKey = readMasterKey(dataDir, null)
  prepareDatabase(dataDir, { masterKey, migrate: true, now: 0 })
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function look(key: Uint8Array | null | undefined = null) {
  const found = inspectDataDir(dataDir, key)
  if (found.state !== 'open') throw new Error(found.state)
  return found
}

function change(...statements: string[]) {
  const connection = connect(files.database, 0)
  for (const statement of statements) connection.run(statement)
  connection.close()
}

const contents = () => readdirSync(dataDir).map((name) => [name, readFileSync(join(dataDir, name), 'base64')])

describe('an inspection', () => {
  test('of a directory that is not there makes none', () => {
    rmSync(dataDir, { recursive: true })
    expect(inspectDataDir(dataDir, null)).toEqual({ state: 'missing' })
    expect(existsSync(dataDir)).toBe(false)
  })

  test('of a sound directory finds nothing and changes no byte', () => {
    const before = contents()
    expect(look()).toMatchObject({
      isExposed: false,
      exposed: [],
      strayed: [],
      isHeld: false,
      masterKey: 'fits',
      database: { state: 'readable', pending: [], misfit: null, damage: null, resting: [] },
    })
    expect(look().freeBytes).toBeGreaterThan(0)
    expect(contents()).toEqual(before)
  })

  test('sees what a server is writing, and that it holds the directory, without taking its lock', () => {
    const lock = acquireLock(files.lock)
    const server = connect(files.database, 0)
    server.run(`insert into resting_providers (name, failure, resting_until) values ('main', 'throttled', 7)`)
    expect(look()).toMatchObject({
      isHeld: true,
      database: { resting: [{ name: 'main', failure: 'throttled', restingUntil: 7 }] },
    })
    server.close()
    lock?.release()
    expect(look().isHeld).toBe(false)
    const again = acquireLock(files.lock)
    expect(again).toBeDefined()
    again?.release()
  })

  test('finds what others can read', () => {
    chmodSync(dataDir, 0o755)
    chmodSync(files.database, 0o644)
    expect(look()).toMatchObject({ isExposed: true, exposed: ['otpd.db'], masterKey: 'fits' })
    chmodSync(files.masterKey, 0o640)
    expect(look()).toMatchObject({ exposed: ['otpd.db', 'master.key'], masterKey: 'unchecked' })
  })

  test('compares the master key with the database', () => {
    expect(look(new Uint8Array(32)).masterKey).toBe('wrong')
    expect(inspectDataDir(dataDir, undefined)).toMatchObject({ masterKey: 'unchecked' })
    writeFileSync(files.masterKey, 'no key\n')
    expect(look().masterKey).toBe('unusable')
    rmSync(files.masterKey)
    expect(look().masterKey).toBe('missing')
    expect(existsSync(files.masterKey)).toBe(false)
  })

  test('tells an older database from a newer one', () => {
    change(`delete from migrations where name = (select max(name) from migrations)`)
    expect(look().database).toMatchObject({ misfit: null, pending: [expect.stringMatching(/^\d{4}_/)] })
    change(`insert into migrations (name, checksum, applied_at) values ('9999_later', '', 0)`)
    expect(look().database).toMatchObject({ pending: [], misfit: expect.stringContaining('9999_later') })
  })

  test('finds damage, and a file that is no database', () => {
    change('PRAGMA wal_checkpoint(TRUNCATE)')
    const bytes = readFileSync(files.database)
    bytes.fill(0xa5, 4096 * 3, 4096 * 6)
    writeFileSync(files.database, bytes)
    expect(look().database).toMatchObject({ state: 'readable', damage: expect.any(String) })
    writeFileSync(files.database, 'Dear diary, '.repeat(1000))
    expect(look().database).toEqual({ state: 'unreadable', cause: 'SQLITE_NOTADB' })
  })
})
