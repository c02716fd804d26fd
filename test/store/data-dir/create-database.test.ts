import { afterEach, beforeEach, expect, test } from 'bun:test'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { Database as SqliteConnection } from 'bun:sqlite'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDatabase } from '../../../src/store/data-dir/create-database.ts'
import { dataFiles } from '../../../src/store/data-dir/data-dir.ts'
import { readMasterKey } from '../../../src/store/data-dir/master-key.ts'
import { describeMissing, requireDatabase } from '../../../src/store/data-dir/missing-database.ts'
import { prepareDatabase } from '../../../src/store/data-dir/prepare-database.ts'

const now = Date.UTC(2026, 10, 23, 12)
let dataDir: string
let files: ReturnType<typeof dataFiles>

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'otpd-create-'))
  files = dataFiles(dataDir)
})
afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

const create = (isForced = false) => createDatabase(dataDir, { configured: null, isForced, now })
const open = () => prepareDatabase(dataDir, { masterKey: readMasterKey(dataDir, null), migrate: true, now })
const contents = () => readdirSync(dataDir).map((name) => [name, readFileSync(join(dataDir, name), 'base64')])

test('a first start creates the database and its key once, for their owner only', () => {
  expect([create(), create()]).toEqual([true, false])
  expect(readdirSync(dataDir).toSorted()).toEqual(['master.key', 'otpd.db'])
  for (const path of [files.database, files.masterKey]) expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(open()).toEqual({ migrated: [], backup: undefined })
})

test('a first start that is killed is repeated by the next one', () => {
  writeFileSync(files.newDatabase, 'half a database', { mode: 0o600 })
  expect(create()).toBe(true)
  const key = readMasterKey(dataDir, null)
  renameSync(files.database, files.newDatabase)
  expect(create()).toBe(true)
  expect(readMasterKey(dataDir, null)).toEqual(key)
  expect(open().migrated).toEqual([])
})

test.each([
  [['master.key'], 'serve --new', /^there is no database in \S+, but master\.key$/],
  [['otpd.db-wal'], 'restore', /, but otpd\.db-wal$/],
  [
    ['otpd.db=', 'master.key', 'otpd.db-wal'],
    'restore',
    /: otpd\.db is empty, next to master\.key and otpd\.db-wal$/,
  ],
  [['otpd.db='], 'restore', /: otpd\.db is empty$/],
  [['setup-token', 'last-backup.json', 'notes.txt'], 'restore', /, but last-backup\.json and setup-token$/],
  [['a', 'b', 'c', 'd', 'e'], '--data-dir', /, but a, b, c, and 2 more$/],
])(
  'a start next to %j creates and removes nothing, unless a new database is asked for',
  (names, remedy, message) => {
    create()
    const key = readFileSync(files.masterKey)
    for (const path of [files.database, files.masterKey]) rmSync(path)
    for (const name of names) {
      const content = name === 'master.key' ? key : name.endsWith('=') ? '' : 'acknowledged'
      writeFileSync(join(dataDir, name.replace('=', '')), content, { mode: 0o600 })
    }
    const before = contents()
    expect(() => create()).toThrow(message)
    expect(() => requireDatabase(dataDir)).toThrow(message)
    expect(describeMissing(dataDir).remedy).toContain(remedy)
    expect(contents()).toEqual(before)
    expect(create(true)).toBe(true)
    expect(open().migrated).toEqual([])
    const after = contents().map(([, content]) => content)
    for (const [name, content] of before) expect([name, after.includes(content)]).toEqual([name, true])
    expect(() => create(true)).toThrow('already')
  },
)

test.each([
  // Docker makes one where a file to mount is missing.
  ['a folder', (path: string) => mkdirSync(path)],
  ['a device', (path: string) => symlinkSync('/dev/zero', path)],
  ['too large', (path: string) => (writeFileSync(path, '', { mode: 0o600 }), truncateSync(path, 2 ** 40))],
])('a master key that is %s is refused before it is read', (_, make) => {
  create()
  rmSync(files.masterKey)
  make(files.masterKey)
  expect(open).toThrow(`${files.masterKey} does not hold a master key`)
})

test('a database without tables is refused as it is', () => {
  create()
  rmSync(files.database)
  const bare = new SqliteConnection(files.database)
  bare.run('PRAGMA journal_mode = WAL')
  bare.run('vacuum')
  bare.close()
  chmodSync(files.database, 0o600)
  expect(open).toThrow('has no tables')
})
