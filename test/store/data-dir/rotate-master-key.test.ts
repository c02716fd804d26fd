import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { purposes, type Keys, type Purpose } from '../../../src/domain/model/keys.ts'
import { backUpDatabase } from '../../../src/store/data-dir/backup.ts'
import { dataFiles, prepareDataDir } from '../../../src/store/data-dir/data-dir.ts'
import { openKeyring } from '../../../src/store/data-dir/live-keyring.ts'
import {
  listKeptKeys,
  readMasterKey,
  readMasterKeyCandidates,
} from '../../../src/store/data-dir/master-key.ts'
import { movedToKey } from '../../../src/store/data-dir/moved.ts'
import { prepareDatabase } from '../../../src/store/data-dir/prepare-database.ts'
import { restoreDatabase } from '../../../src/store/data-dir/restore.ts'
import {
  finishMasterKey,
  rotateMasterKey,
  rotationSteps,
} from '../../../src/store/data-dir/rotate-master-key.ts'
import { connect } from '../../../src/store/sqlite/database.ts'
import { createTestDatabase } from '../../helpers/data-dir.ts'

const now = 0
let dataDir: string
let files: ReturnType<typeof dataFiles>

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'otpd-rotation-'))
  files = dataFiles(dataDir)
})
afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

/** Does what a start does. */
function start(configured: Uint8Array | null = null): Keys {
  prepareDataDir(dataDir, () => {})
  createTestDatabase(dataDir, configured)
  const masterKey = readMasterKey(dataDir, configured)
  prepareDatabase(dataDir, { masterKey, migrate: true, now })
  return openRing(configured).keys
}

const openRing = (configured: Uint8Array | null = null) =>
  openKeyring(files.database, () => readMasterKeyCandidates(dataDir, configured))

/** Everything that a key makes, for comparison. */
const snapshot = ({ seals, ...keys }: Keys) => ({
  ...keys,
  seals: [seals.version, seals.find(seals.version)],
})

const readKey = () => readFileSync(files.masterKey, 'utf8').trim()

function query(sql: string) {
  const connection = connect(files.database, 0)
  try {
    return connection.query<Record<string, unknown>, []>(sql).all()
  } finally {
    connection.close()
  }
}

const versions = (purpose: Purpose) =>
  query(`select version from data_keys where purpose = '${purpose}' order by version`).map(
    (row) => row['version'],
  )

describe('a new master key in the data directory', () => {
  test('opens the same data keys, and the old one opens nothing', () => {
    const before = snapshot(start())
    const old = readMasterKey(dataDir, null)
    expect(rotateMasterKey(dataDir, { configured: null, newKey: null, compromised: false, now })).toEqual({
      state: 'replaced',
      areDataKeysNew: false,
      canceledCodes: 0,
    })
    expect(readKey()).not.toBe(Buffer.from(old).toString('base64'))
    const [kept, ...others] = listKeptKeys(dataDir)
    expect([kept?.key, others]).toEqual([old, []])
    expect(kept?.path).toMatch(/\/master\.key\.before-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z$/)
    expect(statSync(kept?.path ?? '').mode & 0o777).toBe(0o600)
    expect(statSync(files.masterKey).mode & 0o777).toBe(0o600)
    expect(existsSync(files.newMasterKey)).toBe(false)
    expect(snapshot(start())).toEqual(before)
    expect(() => start(old)).toThrow('another master key')
  })

  test('leaves no wrapping of the old one in the file or its log', () => {
    start()
    const wrapped = query('select wrapped from data_keys').map((row) => String(row['wrapped']))
    expect(wrapped).toHaveLength(purposes.length)
    rotateMasterKey(dataDir, { configured: null, newKey: null, compromised: false, now })
    const bytes = ['', '-wal']
      .map((end) => files.database + end)
      .filter((path) => existsSync(path))
      .map((path) => readFileSync(path, 'latin1'))
      .join()
    for (const text of wrapped) expect(bytes).not.toContain(text)
  })

  test('is not made once the data was moved to PostgreSQL, whose nodes use the key file', () => {
    start()
    const old = readKey()
    const moved = JSON.stringify({ id: 'move', target: 'db.example.com/otpd', at: now })
    const connection = connect(files.database, 0)
    connection.run('insert into meta (name, value) values (?, ?)', [movedToKey, moved])
    connection.close()
    const wrapped = query('select wrapped from data_keys')
    for (const compromised of [false, true])
      expect(() => rotateMasterKey(dataDir, { configured: null, newKey: null, compromised, now })).toThrow(
        'was moved to PostgreSQL (db.example.com/otpd)',
      )
    expect(readKey()).toBe(old)
    expect(listKeptKeys(dataDir)).toEqual([])
    expect(existsSync(files.newMasterKey)).toBe(false)
    expect(query('select wrapped from data_keys')).toEqual(wrapped)
  })

  test('is found by a running process that has the old one', () => {
    start()
    const ring = openRing()
    const before = snapshot(ring.keys)
    rotateMasterKey(dataDir, { configured: null, newKey: null, compromised: true, now })
    ring.refresh()
    expect(ring.keys.seals.version).toBe(2)
    expect(Buffer.from(ring.masterKey).toString('base64')).toBe(readKey())
    expect(ring.keys.clientId).toEqual(before.clientId)
  })

  test.each(rotationSteps)('survives kill -9 after it was %s', async (step) => {
    const before = snapshot(start())
    const old = readMasterKey(dataDir, null)
    const module = join(import.meta.dir, '../../../src/store/data-dir/rotate-master-key.ts')
    const code = `
      const { rotateMasterKey } = await import(${JSON.stringify(module)})
      rotateMasterKey(${JSON.stringify(dataDir)}, {
        configured: null, newKey: null, compromised: false, now: 0,
        onStep: (step) => { if (step === ${JSON.stringify(step)}) process.kill(process.pid, 'SIGKILL') },
      })
      console.log('not killed')`
    const killed = Bun.spawn([process.execPath, '-e', code], { stdout: 'pipe', stderr: 'inherit' })
    await killed.exited
    expect([killed.signalCode, await new Response(killed.stdout).text()]).toEqual(['SIGKILL', ''])
    expect(snapshot(start())).toEqual(before)
    expect(existsSync(files.newMasterKey)).toBe(false)
    rotateMasterKey(dataDir, { configured: null, newKey: null, compromised: false, now })
    expect(snapshot(start())).toEqual(before)
    const isReplaced = step !== 'opened' && step !== 'written' && step !== 'rewrapped'
    expect(listKeptKeys(dataDir)).toHaveLength(isReplaced ? 2 : 1)
    expect(listKeptKeys(dataDir).at(-1)?.key).toEqual(old)
  })

  test.each(['', 'half a k'])('ignores a key file that was cut short: %p', (text) => {
    const before = snapshot(start())
    writeFileSync(files.newMasterKey, text, { mode: 0o600 })
    expect(snapshot(openRing().keys)).toEqual(before)
    expect(snapshot(start())).toEqual(before)
    expect(existsSync(files.newMasterKey)).toBe(false)
  })

  test('is made once at a time', async () => {
    const before = snapshot(start())
    const module = join(import.meta.dir, '../../../src/store/data-dir/rotate-master-key.ts')
    const code = `
      const { rotateMasterKey } = await import(${JSON.stringify(module)})
      for (let i = 0; i < 5; i++)
        rotateMasterKey(${JSON.stringify(dataDir)}, { configured: null, newKey: null, compromised: false, now: 0 })`
    const runs = Array.from({ length: 4 }, () => Bun.spawn([process.execPath, '-e', code]))
    expect(await Promise.all(runs.map((run) => run.exited))).toEqual([0, 0, 0, 0])
    expect(snapshot(start())).toEqual(before)
  })
})

describe('a master key from elsewhere', () => {
  const [old, fresh, third] = [1, 2, 3].map((byte) => new Uint8Array(32).fill(byte)) as [
    Uint8Array,
    Uint8Array,
    Uint8Array,
  ]
  const rotate = (configured = old, newKey: Uint8Array | null = fresh, compromised = false) =>
    rotateMasterKey(dataDir, { configured, newKey, compromised, now })
  const finish = (configured = fresh) => finishMasterKey(dataDir, { configured, compromised: false, now })
  const reason = (code: string) => expect.objectContaining({ reason: code })

  test('opens the database besides the old one until the rotation is finished', () => {
    const before = snapshot(start(old))
    expect(rotate()).toEqual({ state: 'both', areDataKeysNew: false, canceledCodes: 0 })
    expect(snapshot(start(old))).toEqual(before)
    expect(snapshot(start(fresh))).toEqual(before)
    expect(() => start(third)).toThrow('another master key')
    expect(finish()).toEqual({ state: 'replaced', areDataKeysNew: false, canceledCodes: 0 })
    expect(snapshot(start(fresh))).toEqual(before)
    expect(() => start(old)).toThrow('another master key')
    expect(existsSync(files.masterKey)).toBe(false)
  })

  test('is needed, is another one, and is replaced one at a time', () => {
    start(old)
    expect(() => rotate(old, null)).toThrow(reason('NEW_KEY_NEEDED'))
    expect(() => rotate(old, old)).toThrow(reason('NEW_KEY_IS_OLD'))
    expect(() => finish(old)).toThrow(reason('NOTHING_TO_FINISH'))
    expect(() => rotate(third)).toThrow('another master key')
    rotate()
    // A repetition changes nothing.
    expect(rotate().state).toBe('both')
    expect(() => rotate(old, third)).toThrow(reason('ROTATION_UNFINISHED'))
    expect(() => finish(old)).toThrow(reason('NEW_KEY_NOT_IN_USE'))
    finish()
  })

  test('protects the new data keys from the old one, which they are made without', () => {
    start(old)
    rotate(old, fresh, true)
    expect(versions('codes')).toEqual([1, 1])
    expect(start(old).seals.version).toBe(1)
    expect(finish()).toEqual({ state: 'replaced', areDataKeysNew: true, canceledCodes: 0 })
    expect(versions('codes')).toEqual([1, 2])
    expect(() => start(old)).toThrow('another master key')
    expect(() => finish()).toThrow(reason('NOTHING_TO_FINISH'))
  })

  test('ends a process that only knows the old one', () => {
    start(old)
    const ring = openRing(old)
    rotate()
    ring.refresh()
    finish()
    expect(() => ring.refresh()).toThrow('another master key')
  })
})

test('after a compromise all keys are new but that of client IDs, and hashes are chained', () => {
  const before = { ...start() }
  query(`insert into signing_keys values ('kid', '{}', 'x', 0, null)`)
  rotateMasterKey(dataDir, { configured: null, newKey: null, compromised: true, now })
  const after = start()
  expect(after.clientId).toEqual(before.clientId)
  for (const name of ['code', 'codeHash', 'callback', 'signingKey', 'refreshToken', 'cursor'] as const) {
    expect(after[name]).not.toEqual(before[name])
  }
  expect(after.endedCodes).toEqual([{ code: before.code, codeHash: before.codeHash }])
  for (const name of ['phone', 'guard', 'pseudonym', 'context', 'idempotency'] as const) {
    expect(after[name]).toHaveLength(2)
    expect(after[name][0]).toEqual(before[name][0])
  }
  expect(after.seals.find(1)).toBeInstanceOf(Buffer)
  expect(versions('signing')).toEqual([2])
  expect(versions('client-ids')).toEqual([1])
  expect(query('select * from signing_keys')).toEqual([])
})

test('a backup of the time of an old master key gets the present one', async () => {
  const before = snapshot(start())
  const old = readMasterKey(dataDir, null)
  const backup = join(dataDir, 'old.db')
  await backUpDatabase(files.database, backup, old)
  rotateMasterKey(dataDir, { configured: null, newKey: null, compromised: false, now })
  const masterKey = readMasterKey(dataDir, null)
  expect(() => restoreDatabase(dataDir, backup, { masterKey, now })).toThrow(/does not match its HMAC/)
  restoreDatabase(dataDir, backup, { masterKey, oldMasterKeys: [Buffer.alloc(32, 9), old], now })
  expect(snapshot(start())).toEqual(before)
  expect(() => start(old)).toThrow('another master key')
})
