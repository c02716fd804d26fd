import { randomBytes } from 'node:crypto'
import type { Database as SqliteConnection } from 'bun:sqlite'
import {
  createKeyring,
  masterKeyBytes,
  masterKeyCheck,
  type DataKey,
  type Keys,
} from '../../domain/model/keys.ts'
import { connect } from '../engine/sqlite.ts'
import { resignHeads } from './audit-chains.ts'
import { dataFiles, OperationRefused } from './data-dir.ts'
import {
  listMasterKeyChecks,
  nextDataKeys,
  noMasterKeyOpens,
  openDataKeys,
  readMeta,
  replaceDataKeys,
  writeMeta,
} from './data-keys.ts'
import { readMasterKeyCandidates, settleNewMasterKey, writeKeyFile } from './master-key.ts'

export type Rotation = {
  /** `replaced`: only the new master key opens the database. `both`: the old one too, until the rotation is finished. */
  state: 'replaced' | 'both'
  /** The data keys were replaced too. */
  areDataKeysNew: boolean
}

/** Steps of a rotation on disk, in their order. */
export const rotationSteps = ['opened', 'written', 'rewrapped', 'committed', 'renamed'] as const

type RotationNeeds = {
  /** Master key in use; null if it is the data directory's. */
  configured: Uint8Array | null
  now: number
  /** Called after each step. */
  onStep?: (step: (typeof rotationSteps)[number]) => void
}

/** Rows that are authenticated with data keys, and authenticated again in the transaction that replaces them. */
const resigned: ReadonlyArray<(connection: SqliteConnection, before: Keys, after: Keys) => void> = [
  resignHeads,
]

/** Fact in the database: the rotation that is not finished yet makes new data keys at its end. */
const compromisedMark = 'master_key_compromised'

/** Longer than a batch of a running server takes. */
const busyTimeoutMs = 5_000

/**
 * Replaces the master key, while a server runs or not. Servers notice it before their next write.
 *
 * The key file of the data directory is replaced in this order: the new key is written next to it, the data keys are
 * wrapped by it in one transaction, and the file is renamed. A start that finds two files takes the one that the
 * database names. A key from elsewhere cannot be replaced at once for all nodes: both wrap the data keys until
 * `finishRotation`.
 *
 * @param options.newKey null: make one, in the data directory
 * @param options.compromised also replace the data keys; with a new key from elsewhere when the rotation is finished,
 *   because until then the old master key opens every data key in the database
 * @throws StartRefused the master key in use does not open the database
 * @throws OperationRefused NEW_KEY_NEEDED, NEW_KEY_IS_OLD, ROTATION_UNFINISHED
 */
export function rotateMasterKey(
  dataDir: string,
  options: RotationNeeds & { newKey: Uint8Array | null; compromised: boolean },
): Rotation {
  const { configured, newKey, compromised, now, onStep = () => {} } = options
  if (configured !== null && newKey === null) {
    throw new OperationRefused(
      'NEW_KEY_NEEDED',
      'the master key does not come from the data directory, so it cannot be replaced there',
      'Give the new one with --new-key-file FILE: 32 random bytes in hexadecimal or base64.',
    )
  }
  return withWriteLock(
    dataDir,
    (connection) => {
      const { masterKey, dataKeys } = requireDataKeys(connection, dataDir, configured)
      onStep('opened')
      if (newKey === null) {
        requireSingleKey(connection, masterKey)
        const made = randomBytes(masterKeyBytes)
        writeKeyFile(dataFiles(dataDir).newMasterKey, made)
        onStep('written')
        const wrapped = compromised ? replacedDataKeys(connection, dataKeys) : dataKeys
        replaceDataKeys(connection, { masterKey: made, keepOthers: false }, wrapped, now)
        onStep('rewrapped')
        return { state: 'replaced', areDataKeysNew: compromised }
      }
      if (Buffer.compare(newKey, masterKey) === 0) {
        throw new OperationRefused(
          'NEW_KEY_IS_OLD',
          'the new master key is the one in use',
          'Make another one.',
        )
      }
      requireSingleKey(connection, masterKey, newKey)
      replaceDataKeys(connection, { masterKey: newKey, keepOthers: true }, dataKeys, now)
      if (compromised) writeMeta(connection, compromisedMark, 'yes')
      onStep('rewrapped')
      return { state: 'both', areDataKeysNew: false }
    },
    onStep,
  )
}

/**
 * Removes what the old master key wraps, after all nodes have started with the new one. Makes new data keys if the old
 * master key was compromised.
 *
 * @throws StartRefused the master key in use does not open the database
 * @throws OperationRefused NOTHING_TO_FINISH; NEW_KEY_NOT_IN_USE this command still reads the old one
 */
export function finishRotation(dataDir: string, options: RotationNeeds & { compromised: boolean }): Rotation {
  const { configured, now, onStep = () => {} } = options
  return withWriteLock(
    dataDir,
    (connection) => {
      const { masterKey, dataKeys } = requireDataKeys(connection, dataDir, configured)
      onStep('opened')
      if (listMasterKeyChecks(connection).length === 1) {
        throw new OperationRefused(
          'NOTHING_TO_FINISH',
          'only one master key opens the database',
          'Begin with: otpd admin rotate-master-key --new-key-file FILE',
        )
      }
      if (readMeta(connection, 'master_key_check') !== masterKeyCheck(masterKey)) {
        throw new OperationRefused(
          'NEW_KEY_NOT_IN_USE',
          'this command still reads the old master key',
          'Configure the new one, restart the servers with it, and repeat this.',
        )
      }
      const areDataKeysNew = options.compromised || readMeta(connection, compromisedMark) !== null
      const wrapped = areDataKeysNew ? replacedDataKeys(connection, dataKeys) : dataKeys
      replaceDataKeys(connection, { masterKey, keepOthers: false }, wrapped, now)
      connection.run('delete from meta where name = ?', [compromisedMark])
      onStep('rewrapped')
      return { state: 'replaced', areDataKeysNew }
    },
    onStep,
  )
}

/** Adds a new version of the data keys, and drops what only the old ones can read. */
function replacedDataKeys(connection: SqliteConnection, dataKeys: readonly DataKey[]): DataKey[] {
  const next = nextDataKeys(dataKeys)
  // Nothing that these keys made is read again: signing keys are replaced, and callback tokens are derived.
  const kept = dataKeys.filter(({ purpose }) => purpose !== 'signing' && purpose !== 'callbacks')
  const replaced = [...kept, ...next]
  // Their private keys could be read: tokens that they signed end, and the next login makes a new one.
  connection.run('delete from signing_keys')
  const before = createKeyring(dataKeys).keys
  const after = createKeyring(replaced).keys
  for (const resign of resigned) resign(connection, before, after)
  return replaced
}

function requireDataKeys(connection: SqliteConnection, dataDir: string, configured: Uint8Array | null) {
  const candidates = readMasterKeyCandidates(dataDir, configured)
  const opened = openDataKeys(connection, candidates)
  if (opened) return opened
  throw noMasterKeyOpens(candidates)
}

/** Refuses a second rotation before the first is finished; repeating the first one is allowed. */
function requireSingleKey(connection: SqliteConnection, ...known: Uint8Array[]): void {
  const checks = known.map(masterKeyCheck)
  if (listMasterKeyChecks(connection).every((check) => checks.includes(check))) return
  throw new OperationRefused(
    'ROTATION_UNFINISHED',
    'another master key is still being replaced',
    'Finish that first: otpd admin rotate-master-key --finish',
  )
}

/**
 * Runs `work` in one transaction that holds the write lock from the start, then decides about `master.key.new` under the
 * lock again, so that two rotations never touch the key files at once. Overwrites the old wrappings in the file and the
 * write-ahead log.
 */
function withWriteLock(
  dataDir: string,
  work: (connection: SqliteConnection) => Rotation,
  onStep: NonNullable<RotationNeeds['onStep']>,
): Rotation {
  const connection = connect(dataFiles(dataDir).database, busyTimeoutMs)
  const transact = <T>(body: () => T): T => {
    connection.run('BEGIN IMMEDIATE')
    try {
      const result = body()
      connection.run('COMMIT')
      return result
    } catch (error) {
      if (connection.inTransaction) connection.run('ROLLBACK')
      throw error
    }
  }
  const settle = () => transact(() => settleNewMasterKey(connection, dataDir))
  try {
    connection.run('PRAGMA secure_delete = ON')
    settle()
    const rotation = transact(() => work(connection))
    onStep('committed')
    settle()
    onStep('renamed')
    connection.run('PRAGMA wal_checkpoint(TRUNCATE)')
    return rotation
  } catch (error) {
    settle()
    throw error
  } finally {
    connection.close()
  }
}
