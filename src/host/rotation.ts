import { existsSync } from 'node:fs'
import type { Config } from '../config/config.ts'
import { recordAudit } from '../domain/accounts/audit.ts'
import { hostOrigin } from '../domain/model/audit.ts'
import { callbackPath } from '../domain/otp/callback-tokens.ts'
import { createKeyWalks } from '../domain/upkeep/key-walks.ts'
import { createEndedCodesWalk } from '../domain/upkeep/replaced-keys.ts'
import { noDatabaseError } from '../store/files/backup.ts'
import { dataFiles, OperationRefused } from '../store/files/data-dir.ts'
import { readMigrationStatus } from '../store/files/inspection.ts'
import { toStartError } from '../store/files/prepare-database.ts'
import { finishRotation, rotateMasterKey as rotate, type Rotation } from '../store/files/rotate-master-key.ts'
import { withPostgres } from '../store/postgres/connect.ts'
import { beginRotation, finishSharedRotation } from '../store/postgres/rotate-master-key.ts'
import { readMasterKeyFile, requireDataDir } from './data.ts'
import { openStore, type OpenedStore } from './open.ts'
import { openSharedStore, requireSharedKey, type SharedConfig } from './shared.ts'

export type HostRotation = Rotation & {
  /** Pending codes that were canceled. */
  canceledCodes: number
  /** New URLs for delivery receipts, if the old ones ended. */
  callbackUrls: Record<string, string>
}

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
 * @throws OperationRefused NO_DATABASE, NOT_MIGRATED, KEY_FILE_INVALID, or as rotateMasterKey and finishRotation, or
 *   beginRotation and finishSharedRotation do; StartRefused
 */
export async function rotateMasterKey(
  { config }: { config: Config },
  { newKeyFile, compromised, finish }: RotationOptions,
): Promise<HostRotation> {
  const newKey = newKeyFile === undefined ? null : readMasterKeyFile(newKeyFile)
  if (config.database)
    return rotateShared({ ...config, database: config.database }, { newKey, compromised, finish })
  const dataDir = requireDataDir(config)
  requireMigrated(dataDir)
  const options = { configured: config.secrets.masterKey, compromised, now: Date.now() }
  let rotation: Rotation
  try {
    rotation = finish ? finishRotation(dataDir, options) : rotate(dataDir, { ...options, newKey })
  } catch (error) {
    throw error instanceof OperationRefused ? error : toStartError(error, dataDir)
  }
  return completeRotation(openStore(dataDir, config), config, rotation)
}

/** Replaces the master key of a shared database; the new one always comes from a file. */
async function rotateShared(
  config: Config & SharedConfig,
  { newKey, compromised, finish }: { newKey: Uint8Array | null; compromised: boolean; finish: boolean },
): Promise<HostRotation> {
  const masterKey = requireSharedKey(config)
  // Checks the server and the schema first.
  const before = await openSharedStore(config, 'read')
  await before.close()
  const rotation = await withPostgres(config.database.url, async (client) => {
    if (finish) return finishSharedRotation(client, masterKey, { compromised })
    if (newKey !== null) return beginRotation(client, masterKey, { newKey, compromised })
    throw new OperationRefused(
      'NEW_KEY_NEEDED',
      'nodes share one master key, so the new one cannot be made here',
      'Give it with --new-key-file FILE: 32 random bytes in hexadecimal or base64.',
    )
  })
  return completeRotation(await openSharedStore(config, 'write'), config, rotation)
}

function requireMigrated(dataDir: string): void {
  const { database } = dataFiles(dataDir)
  if (!existsSync(database)) throw noDatabaseError(database)
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

/** A command that is killed before this leaves it to the server, whose walks do the same. */
async function completeRotation(
  { store, keyring, keys, clock, newId, close }: OpenedStore,
  config: Config,
  rotation: Rotation,
): Promise<HostRotation> {
  const { state, areDataKeysNew } = rotation
  try {
    const operator = { developerId: null, actorId: null, origin: hostOrigin }
    const detail = areDataKeysNew ? 'data keys replaced' : state === 'both' ? 'to be finished' : null
    await store.write((tx) =>
      recordAudit(tx, newId, operator, { action: 'master_key.rotated', detail }, clock.now()),
    )
    if (!areDataKeysNew) return { ...rotation, canceledCodes: 0, callbackUrls: {} }
    let canceledCodes = 0
    const onCanceled = (count: number) => (canceledCodes += count)
    const walks = [createEndedCodesWalk({ keys, clock, newId, onCanceled })]
    const { run } = createKeyWalks({ store, keyring, walks })
    await run({ batchSize: 100, yieldToRequests })
    return { ...rotation, canceledCodes, callbackUrls: callbackUrls(config, keys) }
  } finally {
    await close()
  }
}

/** Lets a running server write between two batches. */
const yieldToRequests = async () => {
  await new Promise((resolve) => setTimeout(resolve, 10))
  return true
}

const callbackUrls = ({ publicUrl, delivery }: Config, keys: Parameters<typeof callbackPath>[0]) =>
  publicUrl === null
    ? {}
    : Object.fromEntries(delivery.providers.map(({ name }) => [name, publicUrl + callbackPath(keys, name)]))
