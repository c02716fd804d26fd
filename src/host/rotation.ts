import type { Config } from '../config/config.ts'
import type { OnStep } from '../shared/progress.ts'
import { dataFiles, OperationRefused } from '../store/data-dir/data-dir.ts'
import { readMigrationStatus } from '../store/data-dir/inspection.ts'
import { keepDamagedLog } from '../store/data-dir/damaged-log.ts'
import { lockDataDir } from '../store/data-dir/server-record.ts'
import { requireDatabase } from '../store/data-dir/missing-database.ts'
import { toStartError } from '../store/data-dir/prepare-database.ts'
import {
  finishMasterKey,
  rotateMasterKey as rotate,
  type rotationSteps,
} from '../store/data-dir/rotate-master-key.ts'
import type { Rotation } from '../store/data-dir/rotation.ts'
import { completeRotation, type HostRotation } from './complete-rotation.ts'
import { readMasterKeyFile, requireDataDir } from './data.ts'
import { inspectKeptKeys } from './kept-keys.ts'
import { openStore } from './open.ts'

export type { HostRotation } from './complete-rotation.ts'

type RotationOptions = {
  /** File with the new master key; undefined: a new one, in the data directory. */
  newKeyFile?: string | undefined
  /** The old master key may be in wrong hands: replace the data keys too. */
  compromised: boolean
  /** End a rotation that all nodes have followed. */
  finish: boolean
}

/**
 * Replaces the master key, while a server runs or not. After a compromise also replaces the data keys and cancels pending
 * codes; the server, or its next start, brings old rows to the new keys.
 *
 * @throws OperationRefused NO_DATABASE, NOT_MIGRATED, KEY_FILE_INVALID, or as beginRotation and finishSharedRotation do;
 *   StartRefused
 */
export async function rotateMasterKey(
  { config, onStep = () => {} }: { config: Config; onStep?: OnStep },
  { newKeyFile, compromised, finish }: RotationOptions,
): Promise<HostRotation> {
  const newKey = newKeyFile === undefined ? null : readMasterKeyFile(newKeyFile)
  if (config.database) {
    const { rotateShared } = await import('./shared-rotation.ts')
    return rotateShared({ ...config, database: config.database }, { newKey, compromised, finish })
  }
  const dataDir = requireDataDir(config)
  requireMigrated(dataDir)
  const lock = lockDataDir(dataDir)
  if (lock) keepDamagedLog(dataDir)
  lock?.release()
  const options = {
    configured: config.secrets.masterKey,
    compromised,
    now: Date.now(),
    onStep: (step: keyof typeof stepTexts) => onStep({ step: stepTexts[step] }),
  }
  let rotation: Rotation
  try {
    rotation = finish ? finishMasterKey(dataDir, options) : rotate(dataDir, { ...options, newKey })
  } catch (error) {
    throw error instanceof OperationRefused ? error : toStartError(error, dataDir)
  }
  const isInDataDir = rotation.state === 'replaced' && !finish
  const keptKey = isInDataDir ? inspectKeptKeys(config, dataDir).keys[0] : null
  return completeRotation(openStore(dataDir, config), config, rotation, keptKey)
}

/** Names the work that follows each step on disk. */
const stepTexts = {
  opened: 'writing the new master key',
  written: 'encrypting the data keys again',
  rewrapped: 'committing',
  committed: 'replacing the key file',
  renamed: 'finishing',
} as const satisfies Record<(typeof rotationSteps)[number], string>

function requireMigrated(dataDir: string): void {
  requireDatabase(dataDir)
  const { database } = dataFiles(dataDir)
  let isOlder: boolean
  try {
    isOlder = readMigrationStatus(database).pending.length > 0
  } catch (error) {
    throw toStartError(error, dataDir)
  }
  if (!isOlder) return
  throw new OperationRefused(
    'NOT_MIGRATED',
    'the database is older than this otpd',
    'Start the server with this otpd first, or run: otpd migrate up',
  )
}
