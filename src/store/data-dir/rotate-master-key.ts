import { runOnSqlite, type SqlSteps } from '../engine/sql-steps.ts'
import { connect } from '../sqlite/database.ts'
import { transact } from '../sqlite/transact.ts'
import { dataFiles, OperationRefused } from './data-dir.ts'
import { requireDataKeys, type OpenDataKeys } from './data-keys.ts'
import { requireNotMoved } from './moved.ts'
import { newMasterKey, readMasterKeyCandidates, settleNewMasterKey, writeKeyFile } from './master-key.ts'
import { beginRotation, finishRotation, requireSingleKey, wrapDataKeys, type Rotation } from './rotation.ts'

/** Steps of a rotation on disk, in their order. */
export const rotationSteps = ['opened', 'written', 'rewrapped', 'committed', 'renamed'] as const

type RotationNeeds = {
  /** Master key in use; null if it is the data directory's. */
  configured: Uint8Array | null
  /** The old master key may be in wrong hands: also replace the data keys. */
  compromised: boolean
  now: number
  /** Called after each step. */
  onStep?: (step: (typeof rotationSteps)[number]) => void
}

/** Longer than a batch of a running server takes. */
const busyTimeoutMs = 5_000

/**
 * Replaces the master key, while a server runs or not. Servers notice it before their next write.
 *
 * The key file of the data directory is replaced in this order: the new key is written next to it, the data keys are
 * wrapped by it in one transaction, and the file is renamed. A start that finds two files takes the one that the
 * database names. A key from elsewhere cannot be replaced at once for all nodes: both wrap the data keys until
 * `finishMasterKey`, which also replaces the data keys, because until then the old master key opens each of them.
 *
 * @param options.newKey null: make one, in the data directory
 * @throws StartRefused the master key in use does not open the database, or its data was moved to PostgreSQL
 * @throws OperationRefused NEW_KEY_NEEDED, or as beginRotation
 */
export function rotateMasterKey(
  dataDir: string,
  options: RotationNeeds & { newKey: Uint8Array | null },
): Rotation {
  const { configured, newKey } = options
  if (newKey !== null)
    return withWriteLock(dataDir, options, (opened) => beginRotation(opened, { ...options, newKey }))
  if (configured === null)
    return withWriteLock(dataDir, options, (opened) => replaceKey(dataDir, opened, options))
  throw new OperationRefused(
    'NEW_KEY_NEEDED',
    'the master key does not come from the data directory, so it cannot be replaced there',
    'Make the new one with: openssl rand -base64 32 > FILE, only for yourself (umask 077), and name it with --new-key-file FILE.',
  )
}

/**
 * Ends a rotation to a key from elsewhere, after all nodes have started with it.
 *
 * @throws StartRefused the master key in use does not open the database; OperationRefused as finishRotation
 */
export const finishMasterKey = (dataDir: string, options: RotationNeeds): Rotation =>
  withWriteLock(dataDir, options, (opened) => finishRotation(opened, options))

/** Makes a new master key next to the key file, and wraps the data keys with it. */
function* replaceKey(
  dataDir: string,
  { masterKey, dataKeys }: OpenDataKeys,
  { compromised, now, onStep }: RotationNeeds,
): SqlSteps<Rotation> {
  yield* requireSingleKey(masterKey)
  const made = newMasterKey()
  writeKeyFile(dataFiles(dataDir).newMasterKey, made)
  onStep?.('written')
  return yield* wrapDataKeys({ masterKey: made, dataKeys }, { areReplaced: compromised, now })
}

/**
 * Runs a rotation in one transaction that holds the write lock from the start, then decides about `master.key.new` under the
 * lock again, so that two rotations never touch the key files at once. Overwrites the old wrappings in the file and the
 * write-ahead log.
 */
function withWriteLock(
  dataDir: string,
  { configured, onStep = () => {} }: RotationNeeds,
  rotate: (opened: OpenDataKeys) => SqlSteps<Rotation>,
): Rotation {
  const connection = connect(dataFiles(dataDir).database, busyTimeoutMs)
  const settle = () => transact(connection, () => settleNewMasterKey(connection, dataDir))
  try {
    connection.run('PRAGMA secure_delete = ON')
    settle()
    const rotation = transact(connection, () => {
      // The nodes on PostgreSQL use the key file of this directory until theirs is elsewhere.
      requireNotMoved(connection)
      const opened = requireDataKeys(connection, readMasterKeyCandidates(dataDir, configured))
      onStep('opened')
      const rotated = runOnSqlite(connection, rotate(opened))
      onStep('rewrapped')
      return rotated
    })
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
