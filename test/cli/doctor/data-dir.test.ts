import { describe, expect, test } from 'bun:test'
import { dataDirChecks, type DataDirInfo } from '../../../cli/doctor/data-dir.ts'
import type { HostInspection } from '../../../src/host/host.ts'

type OpenInspection = Extract<HostInspection, { state: 'accessible' }>
type ReadableDatabase = Extract<OpenInspection['database'], { state: 'readable' }>

const dataDirInfo: DataDirInfo = {
  dataDir: '/srv/otpd data',
  displayPath: '/srv/otpd data',
  migrate: true,
  masterKeySource: null,
}
const readable: ReadableDatabase = {
  state: 'readable',
  pending: [],
  missingSpace: null,
  schemaError: null,
  masterKeys: 1,
  damage: null,
  openCircuits: [],
  guardAlerts: [],
  verifiedCountries: [],
  sendCounts: { sends: 0, untold: 0 },
  moved: null,
  seals: { percent: null, unreadable: [] },
}
const unbrokenTrail = { isUnbroken: true, breaks: [], entries: 1, deleted: 0, provedSince: 0, heads: [] }
const healthyInspection: OpenInspection = {
  state: 'accessible',
  ownerId: 7,
  isOwn: true,
  isExposed: false,
  exposed: [],
  wrongOwner: [],
  freeBytes: 5_400_000_000,
  isHeld: false,
  upgrade: null,
  masterKey: 'matches',
  database: readable,
  auditTrail: unbrokenTrail,
  unsealedBackups: [],
}

const findProblems = (changes: Partial<OpenInspection>, location = dataDirInfo) =>
  dataDirChecks({ ...healthyInspection, ...changes }, location).filter(({ status }) => status !== 'ok')

test('names the source of the master key, and a second one that still opens the database', () => {
  const location = { ...dataDirInfo, masterKeySource: 'OTPD_MASTER_KEY' }
  expect(dataDirChecks(healthyInspection, location)).toContainEqual(
    expect.objectContaining({ message: 'from OTPD_MASTER_KEY, matches the database' }),
  )
  expect(findProblems({ database: { ...readable, masterKeys: 2 } }, location)).toEqual([
    expect.objectContaining({ status: 'warning', remedy: expect.stringContaining('--finish') }),
  ])
})

describe('a data directory', () => {
  test('without problems has no remedies', () => {
    const checks = dataDirChecks(healthyInspection, dataDirInfo)
    expect(checks.map(({ name, message }) => `${name}: ${message}`)).toEqual([
      'data directory: /srv/otpd data, owned by you, private, not in use',
      'disk space: 5.4 GB free',
      'master key: from /srv/otpd data/master.key, matches the database',
      'schema: up to date',
      'database: intact',
      'encryption: all stored data is encrypted with the newest key',
      'audit trail: unbroken, 1 entry',
    ])
    expect(checks.every(({ remedy }) => remedy === null)).toBe(true)
  })

  test('shows how much is encrypted, which values are unreadable, and which backups hold plain text', () => {
    const seals = (changes: Partial<NonNullable<ReadableDatabase['seals']>>) => ({
      database: { ...readable, seals: { percent: null, unreadable: null, ...changes } },
    })
    expect(findProblems({ ...seals({ percent: 42 }), isHeld: true })).toMatchObject([
      { status: 'warning', message: 'stored data is being encrypted with the newest key: 42 % done' },
    ])
    expect(findProblems(seals({ percent: 42 }))[0]?.remedy).toContain('Start the server')
    const unreadable = ['otp_requests.phone otp_1', 'events.payload evt_1', 'a 1', 'a 2', 'a 3']
    const [broken] = findProblems(seals({ unreadable }))
    expect(broken).toMatchObject({ status: 'fault', remedy: expect.stringContaining('otpd restore latest') })
    expect(broken?.message).toBe(
      'stored values cannot be decrypted: otp_requests.phone otp_1, events.payload evt_1, a 1 and 2 more',
    )
    const [backups] = findProblems({ unsealedBackups: ['before-migration-1.db', 'otpd-2.db'] })
    expect(backups).toMatchObject({
      status: 'warning',
      remedy: expect.stringContaining(
        "rm '/srv/otpd data/backups/before-migration-1.db' '/srv/otpd data/backups/otpd-2.db'",
      ),
    })
  })

  test('that is missing and only guessed is not to be created', () => {
    const [check] = dataDirChecks({ state: 'missing' }, { ...dataDirInfo, isGuess: true })
    expect(check?.status).toBe('warning')
    expect(check?.remedy).toBe('Correct the configuration, or name the directory: --data-dir DIR')
  })

  test('that is missing is created by the first start', () => {
    const [check, ...rest] = dataDirChecks({ state: 'missing' }, dataDirInfo)
    expect(check).toMatchObject({ status: 'warning', remedy: expect.stringContaining('otpd serve') })
    expect(rest).toEqual([])
  })

  test('of another user names the user to run as', () => {
    const [check] = dataDirChecks({ state: 'inaccessible', ownerId: 7, cause: 'EACCES' }, dataDirInfo)
    expect(check).toMatchObject({ status: 'fault' })
    expect(check?.remedy).toContain("sudo -u '#7' otpd doctor --data-dir '/srv/otpd data'")
  })

  test('that is a file is named as such, and the modes of a foreign directory stay as they are', () => {
    const [check] = dataDirChecks({ state: 'inaccessible', ownerId: 7, cause: 'ENOTDIR' }, dataDirInfo)
    expect(check?.message).toBe('/srv/otpd data is not a directory')
    const database = {
      state: 'missing',
      isNew: false,
      isForeign: true,
      message: 'there is no database in /etc',
      remedy: '',
    } as const
    expect(findProblems({ isExposed: true, database })).toMatchObject([{ name: 'database' }])
    const [directory] = dataDirChecks({ ...healthyInspection, isExposed: true, database }, dataDirInfo)
    expect(directory?.message).toBe('/srv/otpd data, owned by you, without files of otpd')
  })

  test('that others can read is a warning, and files that they can read are a fault', () => {
    const [directory, files] = findProblems({ isExposed: true, exposed: ['master.key'] })
    expect(directory).toMatchObject({ status: 'warning', remedy: "Restrict it: chmod go= '/srv/otpd data'" })
    expect(files).toMatchObject({
      status: 'fault',
      remedy: "Restrict it: chmod go= '/srv/otpd data/master.key'",
    })
  })

  test('with files of another owner says how to restore the owner', () => {
    expect(findProblems({ wrongOwner: ['otpd.db-wal'] })).toEqual([
      {
        name: 'data directory',
        status: 'fault',
        message: expect.stringContaining('otpd.db-wal'),
        remedy: "Restore the owner: sudo chown -R 7 '/srv/otpd data'",
      },
    ])
  })

  test.each([
    [99_000_000, 'fault', '99 MB free'],
    [100_000_000, 'warning', '100 MB free'],
    [999_999_999, 'warning', '999 MB free'],
    [1_000_000_000, 'ok', '1.0 GB free'],
  ])('with %i bytes free: %s', (freeBytes, status, message) => {
    const check = dataDirChecks({ ...healthyInspection, freeBytes }, dataDirInfo).find(
      ({ name }) => name === 'disk space',
    )
    expect(check).toMatchObject({ status, message })
  })

  test.each(['missing', 'mismatch', 'unusable'] as const)(
    'whose master key is %s has a fault',
    (masterKey) => {
      expect(findProblems({ masterKey })).toEqual([
        expect.objectContaining({ name: 'master key', status: 'fault' }),
      ])
    },
  )

  test('whose data was moved to PostgreSQL has that as its fault', () => {
    const moved = { message: 'the data of this directory was moved', remedy: 'Set OTPD_DATABASE_URL.' }
    expect(findProblems({ database: { ...readable, moved } })).toEqual([
      { name: 'database', status: 'fault', ...moved },
    ])
  })

  test('without a database yet has no fault', () => {
    const missing = {
      state: 'missing',
      isNew: true,
      isForeign: false,
      message: 'there is no database',
      remedy: '',
    } as const
    expect(findProblems({ masterKey: 'missing', database: missing })).toEqual([])
    const lost = { ...missing, isNew: false, message: 'there is no database, but master.key' }
    expect(findProblems({ masterKey: 'unchecked', database: lost })).toMatchObject([
      { name: 'database', status: 'fault', message: lost.message },
    ])
  })

  test('with an older database is a warning, and a fault if automatic migration is off', () => {
    const database = { ...readable, pending: ['0006_x'] }
    expect(findProblems({ database })).toMatchObject([{ name: 'schema', status: 'warning' }])
    expect(findProblems({ database, isHeld: true })[0]?.message).toContain('an older otpd is running')
    const upgrade = { step: 'copying', percent: 40, remainingSeconds: 90 }
    expect(findProblems({ database, isHeld: true, upgrade })[0]?.message).toBe(
      'the server is upgrading the database: 40 %, about 1 min 30 s left (copying)',
    )
    const missingSpace = { folder: '/srv', neededBytes: 6e9, freeBytes: 65e6 }
    expect(findProblems({ database: { ...database, missingSpace } })).toMatchObject([
      {
        status: 'fault',
        message:
          'pending migrations: 0006_x; the upgrade needs 6.0 GB of free space in /srv, and there are 65 MB',
      },
    ])
    expect(findProblems({ database }, { ...dataDirInfo, migrate: false })).toMatchObject([
      { status: 'fault' },
    ])
  })

  test('with a newer database, a damaged one or one that cannot be read has a fault', () => {
    const versionMismatch = 'the database is newer than this otpd: it has 9. Install the newer otpd, or else.'
    expect(findProblems({ database: { ...readable, schemaError: versionMismatch } })).toEqual([
      {
        name: 'schema',
        status: 'fault',
        message: 'the database is newer than this otpd: it has 9',
        remedy: 'Install the newer otpd, or else.',
      },
    ])
    expect(findProblems({ database: { ...readable, damage: 'x' } })[0]?.remedy).toContain('backup')
    expect(findProblems({ database: { state: 'unreadable', cause: 'SQLITE_NOTADB' } })[0]?.remedy).toContain(
      'backup',
    )
    expect(
      findProblems({ database: { state: 'unreadable', cause: 'SQLITE_CANTOPEN' } })[0]?.remedy,
    ).toContain('permissions')
  })
})

test('an audit trail that was tampered with is a fault, which names the first broken entry', () => {
  const entry = { chain: 'dev_1', kind: 'entry_changed', position: 12, entryId: 'aud_1' } as const
  const chain = { chain: null, kind: 'chain_missing', position: null, entryId: null } as const
  const [one] = findProblems({ auditTrail: { ...unbrokenTrail, isUnbroken: false, breaks: [entry] } })
  expect(one).toMatchObject({ status: 'fault', message: 'tampered with: chain dev_1 at entry 12' })
  expect(one?.remedy).toContain("otpd audit verify --data-dir '/srv/otpd data'")
  const [two] = findProblems({ auditTrail: { ...unbrokenTrail, isUnbroken: false, breaks: [chain, entry] } })
  expect(two?.message).toBe('tampered with: chain unknown, and 1 more')
  expect(findProblems({ auditTrail: null })).toEqual([])
})
