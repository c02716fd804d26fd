import { eq } from 'drizzle-orm'
import {
  createKeyring,
  masterKeyCheck,
  newDataKey,
  purposes,
  unwrapDataKey,
  wrapDataKey,
  type DataKey,
  type Keyring,
} from '../../domain/model/keys.ts'
import type { Random } from '../../domain/model/random.ts'
import { firstHash, hostChain, signHead } from '../../domain/model/audit-chain.ts'
import type { Database, QueryExecutor } from '../engine/database.ts'
import { onTable } from '../engine/on-table.ts'
import { StartRefused } from '../data-dir/data-dir.ts'

/** The keyring of a database that other nodes and host commands may give new keys. */
export type SharedKeyring = Keyring & {
  /**
   * Reads the data keys again if they were replaced.
   *
   * @throws StartRefused the database has another master key now; UNAVAILABLE it cannot be read now
   */
  refresh(): Promise<void>
}

const random: Random = (bytes) => crypto.getRandomValues(bytes)

/**
 * Opens the keyring of a migrated database, and makes its data keys if it has none. Nodes that start at once end up with
 * the same keys: the row of the first one's master key makes the others wait for its commit.
 *
 * @param options.mustExist makes no keys
 * @param options.onReplaced called after the keys were replaced
 * @throws StartRefused the database belongs to another master key
 */
export async function openSharedKeyring(
  database: Database,
  masterKey: Uint8Array,
  options: { now: number; mustExist?: boolean; onReplaced?: () => void },
): Promise<{ keyring: SharedKeyring; isNew: boolean }> {
  const { now, mustExist = false, onReplaced = () => {} } = options
  const created = !mustExist && (await database.write((tx) => createDataKeys(database, tx, masterKey, now)))
  let { epoch, dataKeys } = await readDataKeys(database, database.read, masterKey)
  let refreshing: Promise<void> | undefined
  async function refreshOnce() {
    const current = await readDataKeys(database, database.read, masterKey, epoch).catch((error: unknown) => {
      throw database.convertError(error)
    })
    if (current.epoch === epoch) return
    keyring.replace(current.dataKeys)
    epoch = current.epoch
    onReplaced()
  }
  const refresh = () => (refreshing ??= refreshOnce().finally(() => (refreshing = undefined)))
  // The text that names an unknown key stays unreadable this time. The periodic refresh reports what fails.
  const keyring = createKeyring(dataKeys, () => void refresh().catch(() => {}))
  return { keyring: { ...keyring, refresh }, isNew: created }
}

/** Creates the first keys, and with them the chain of the installation's audit trail. @returns whether this call did */
async function createDataKeys(
  { tables: { auditChains, dataKeys, meta } }: Database,
  tx: QueryExecutor,
  masterKey: Uint8Array,
  now: number,
): Promise<boolean> {
  const check = masterKeyCheck(masterKey)
  const facts = onTable(tx, meta)
  if (!(await facts.insertMissing({ name: 'master_key_check', value: check }))) return false
  await facts.insert({ name: 'key_epoch', value: crypto.randomUUID() })
  const created = purposes.map((purpose) => newDataKey(purpose, 1, random))
  await onTable(tx, dataKeys).insert(
    created.map((dataKey) => ({
      masterKey: check,
      purpose: dataKey.purpose,
      version: dataKey.version,
      wrapped: wrapDataKey(masterKey, dataKey, random),
      createdAt: now,
    })),
  )
  const { keys } = createKeyring(created, () => {})
  const chain = { chain: hostChain, entries: 0, lastHash: firstHash, deleted: 0, deletedHash: firstHash }
  await onTable(tx, auditChains).insert(signHead(keys, { ...chain, chains: 1, startedAt: now }))
  return true
}

/**
 * Reads the data keys that a master key opens.
 *
 * @param knownEpoch reads no keys if they were not replaced since
 * @throws StartRefused it opens none
 */
async function readDataKeys(
  { tables: { dataKeys, meta } }: Database,
  executor: QueryExecutor,
  masterKey: Uint8Array,
  knownEpoch?: string,
): Promise<{ epoch: string; dataKeys: DataKey[] }> {
  // Before the keys: if they are replaced in between, the next refresh reads them again.
  const row = await onTable(executor, meta).find(eq(meta.name, 'key_epoch'))
  const epoch = row?.value ?? ''
  if (epoch === knownEpoch) return { epoch, dataKeys: [] }
  const isOwn = eq(dataKeys.masterKey, masterKeyCheck(masterKey))
  const rows = await onTable(executor, dataKeys).list(isOwn, dataKeys.purpose, dataKeys.version)
  if (rows.length === 0) {
    throw new StartRefused(
      'the database belongs to another master key',
      'Use the key that the other nodes use, in OTPD_MASTER_KEY_FILE.',
    )
  }
  return {
    epoch,
    dataKeys: rows.map(({ purpose, version, wrapped }) =>
      unwrapDataKey(masterKey, { purpose, version }, wrapped),
    ),
  }
}
