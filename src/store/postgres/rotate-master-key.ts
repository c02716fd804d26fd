import type { ClientBase } from 'pg'
import { isAuthenticHead, signHead, type ChainHead } from '../../domain/model/audit-chain.ts'
import {
  createKeyring,
  masterKeyCheck,
  unwrapDataKey,
  wrapDataKey,
  type DataKey,
  type Purpose,
} from '../../domain/model/keys.ts'
import { nextDataKeys } from '../files/data-keys.ts'
import { OperationRefused, StartRefused } from '../files/data-dir.ts'
import { nodeGoneMs } from './nodes.ts'

export type SharedRotation = {
  /** `replaced`: only the new master key opens the database. `both`: the old one too, until the rotation is finished. */
  state: 'replaced' | 'both'
  /** The data keys were replaced too. */
  areDataKeysNew: boolean
}

/** Fact in the database: the rotation that is not finished yet makes new data keys at its end. */
const compromisedMark = 'master_key_compromised'

/**
 * Lets a second master key open the database, while nodes serve it: both wrap the data keys until the rotation is
 * finished, so that nodes can be started with the new one in turn.
 *
 * @param options.compromised replaces the data keys when the rotation is finished
 * @throws StartRefused the master key in use does not open the database
 * @throws OperationRefused NEW_KEY_IS_OLD, ROTATION_UNFINISHED
 */
export const beginRotation = (
  client: ClientBase,
  masterKey: Uint8Array,
  { newKey, compromised }: { newKey: Uint8Array; compromised: boolean },
): Promise<SharedRotation> =>
  inTransaction(client, async () => {
    const dataKeys = await readDataKeys(client, masterKey)
    if (Buffer.compare(newKey, masterKey) === 0)
      throw new OperationRefused(
        'NEW_KEY_IS_OLD',
        'the new master key is the one in use',
        'Make another one.',
      )
    const known = [masterKey, newKey].map(masterKeyCheck)
    if ((await listChecks(client)).some((check) => !known.includes(check))) {
      throw new OperationRefused(
        'ROTATION_UNFINISHED',
        'another master key is still being replaced',
        'Finish that first: otpd admin rotate-master-key --finish',
      )
    }
    await storeDataKeys(client, newKey, dataKeys)
    if (compromised) await writeMeta(client, compromisedMark, 'yes')
    return { state: 'both', areDataKeysNew: false }
  })

/**
 * Removes what the old master key wraps, after all nodes have started with the new one. Makes new data keys if the old
 * master key was compromised; nodes must not serve then, because they would go on to write with the old ones.
 *
 * @throws StartRefused the master key in use does not open the database
 * @throws OperationRefused NOTHING_TO_FINISH, NODES_RUNNING; NEW_KEY_NOT_IN_USE this command still reads the old one
 */
export const finishSharedRotation = (
  client: ClientBase,
  masterKey: Uint8Array,
  options: { compromised: boolean },
): Promise<SharedRotation> =>
  inTransaction(client, async () => {
    const dataKeys = await readDataKeys(client, masterKey)
    const check = masterKeyCheck(masterKey)
    if ((await listChecks(client)).length === 1) {
      throw new OperationRefused(
        'NOTHING_TO_FINISH',
        'only one master key opens the database',
        'Begin with: otpd admin rotate-master-key --new-key-file FILE',
      )
    }
    if ((await readMeta(client, 'master_key_check')) !== check) {
      throw new OperationRefused(
        'NEW_KEY_NOT_IN_USE',
        'this command still reads the old master key',
        'Configure the new one, restart the nodes with it, and repeat this.',
      )
    }
    const areDataKeysNew = options.compromised || (await readMeta(client, compromisedMark)) !== undefined
    if (areDataKeysNew) await requireNoNodes(client)
    await client.query('delete from data_keys where master_key <> $1', [check])
    const kept = areDataKeysNew ? await replaceDataKeys(client, dataKeys) : dataKeys
    await storeDataKeys(client, masterKey, kept)
    await client.query('delete from meta where name = $1', [compromisedMark])
    return { state: 'replaced', areDataKeysNew }
  })

/** Runs a rotation in a transaction that no other rotation, and no start of a node, overlaps. */
async function inTransaction<T>(client: ClientBase, work: () => Promise<T>): Promise<T> {
  await client.query('begin')
  try {
    await client.query('lock table data_keys, nodes in exclusive mode')
    const result = await work()
    await client.query('commit')
    return result
  } catch (error) {
    await client.query('rollback').catch(() => {})
    throw error
  }
}

async function readDataKeys(client: ClientBase, masterKey: Uint8Array): Promise<DataKey[]> {
  const { rows } = await client.query<{ purpose: Purpose; version: number; wrapped: string }>(
    'select purpose, version, wrapped from data_keys where master_key = $1 order by purpose, version',
    [masterKeyCheck(masterKey)],
  )
  if (rows.length === 0) {
    throw new StartRefused(
      'the database belongs to another master key',
      'Use the key that the nodes use, in OTPD_MASTER_KEY_FILE.',
    )
  }
  return rows.map(({ wrapped, ...id }) => unwrapDataKey(masterKey, id, wrapped))
}

async function listChecks(client: ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ check: string }>(
    'select distinct master_key as "check" from data_keys',
  )
  return rows.map(({ check }) => check)
}

/** Stores data keys under a master key, which becomes the current one. Nodes notice the new epoch. */
async function storeDataKeys(client: ClientBase, masterKey: Uint8Array, dataKeys: readonly DataKey[]) {
  const check = masterKeyCheck(masterKey)
  await client.query('delete from data_keys where master_key = $1', [check])
  for (const dataKey of dataKeys) {
    const wrapped = wrapDataKey(masterKey, dataKey, (bytes) => crypto.getRandomValues(bytes))
    await client.query(
      `insert into data_keys (master_key, purpose, version, wrapped, created_at)
       values ($1, $2, $3, $4, (extract(epoch from clock_timestamp()) * 1000)::bigint)`,
      [check, dataKey.purpose, dataKey.version, wrapped],
    )
  }
  await writeMeta(client, 'master_key_check', check)
  await writeMeta(client, 'key_epoch', crypto.randomUUID())
}

/** Adds a new version of the data keys, and drops what only the old ones can read. */
async function replaceDataKeys(client: ClientBase, dataKeys: readonly DataKey[]): Promise<DataKey[]> {
  // Nothing that these keys made is read again: signing keys are replaced, and callback tokens are derived.
  const kept = dataKeys.filter(({ purpose }) => purpose !== 'signing' && purpose !== 'callbacks')
  const replaced = [...kept, ...nextDataKeys(dataKeys)]
  // Their private keys could be read: tokens that they signed end, and the next login makes a new one.
  await client.query('delete from signing_keys')
  const before = createKeyring(dataKeys).keys
  const after = createKeyring(replaced).keys
  const { rows } = await client.query<ChainHead>(
    `select chain, entries, last_hash as "lastHash", deleted, deleted_hash as "deletedHash", chains,
       started_at as "startedAt", key_version as "keyVersion", mac from audit_chains`,
  )
  for (const head of rows) {
    // A broken head stays broken.
    if (!isAuthenticHead(before, head)) continue
    const { keyVersion, mac } = signHead(after, head)
    await client.query('update audit_chains set key_version = $1, mac = $2 where chain = $3', [
      keyVersion,
      mac,
      head.chain,
    ])
  }
  return replaced
}

async function requireNoNodes(client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    'select name from nodes where seen_at > (extract(epoch from clock_timestamp()) * 1000)::bigint - $1 order by name',
    [nodeGoneMs],
  )
  if (rows.length === 0) return
  throw new OperationRefused(
    'NODES_RUNNING',
    `the data keys cannot be replaced while nodes run: ${rows.map(({ name }) => name).join(', ')}`,
    'Stop all nodes, run this command again, and start them with the new key. A node that was killed counts for 35 seconds.',
  )
}

async function readMeta(client: ClientBase, name: string): Promise<string | undefined> {
  const { rows } = await client.query<{ value: string }>('select value from meta where name = $1', [name])
  return rows[0]?.value
}

const writeMeta = (client: ClientBase, name: string, value: string) =>
  client.query(
    'insert into meta (name, value) values ($1, $2) on conflict (name) do update set value = excluded.value',
    [name, value],
  )
