import { isAuthenticHead, signHead } from '../../domain/model/audit-chain.ts'
import { createKeyring, masterKeyCheck, type DataKey, type Keys } from '../../domain/model/keys.ts'
import { query, type SqlSteps } from '../engine/sql-steps.ts'
import { listHeads } from './audit-verification.ts'
import { OperationRefused, StartRefused } from './data-dir.ts'
import {
  listMasterKeys,
  nextDataKeys,
  readDataKeys,
  selectMeta,
  storeDataKeys,
  upsertMeta,
  type OpenDataKeys,
} from './data-keys.ts'

export type { OpenDataKeys } from './data-keys.ts'

export type Rotation = {
  /** `replaced`: only the new master key opens the database. `both`: the old one too, until the rotation is finished. */
  state: 'replaced' | 'both'
  /** The data keys were replaced too. */
  areDataKeysNew: boolean
  /** Codes that were pending when the data keys were replaced, which ends them; 0 if they were not replaced. */
  canceledCodes: number
}

/** Fact in the database: the rotation that is not finished yet makes new data keys at its end. */
const compromisedMark = 'master_key_compromised'

/** Opens the data keys of a database that nodes share. @throws StartRefused it has another master key */
export function* openSharedKeys(masterKey: Uint8Array): SqlSteps<OpenDataKeys> {
  const dataKeys = yield* readDataKeys(masterKey)
  if (dataKeys.length > 0) return { masterKey, dataKeys }
  throw new StartRefused(
    'the database belongs to another master key',
    'Use the key that the nodes use, in OTPD_MASTER_KEY_FILE.',
  )
}

/**
 * Lets a second master key open the database: both wrap the data keys until the rotation is finished, so that servers can
 * be started with the new one in turn. The steps run in one transaction.
 *
 * @param options.compromised replaces the data keys when the rotation is finished
 * @throws OperationRefused NEW_KEY_IS_OLD, ROTATION_UNFINISHED
 */
export function* beginRotation(
  { masterKey, dataKeys }: OpenDataKeys,
  { newKey, compromised, now }: { newKey: Uint8Array; compromised: boolean; now: number },
): SqlSteps<Rotation> {
  if (Buffer.compare(newKey, masterKey) === 0) {
    throw new OperationRefused(
      'NEW_KEY_IS_OLD',
      'the new master key is the one in use',
      'Make another one: openssl rand -base64 32 > FILE',
    )
  }
  yield* requireSingleKey(masterKey, newKey)
  yield* storeDataKeys(newKey, dataKeys, { keepOthers: true, now })
  if (compromised) yield* upsertMeta(compromisedMark, 'yes')
  return { state: 'both', areDataKeysNew: false, canceledCodes: 0 }
}

/**
 * Removes what the old master key wraps, after all servers have started with the new one. Makes new data keys if the old
 * master key was compromised. The steps run in one transaction.
 *
 * @param options.check runs before anything is changed, and may refuse
 * @throws OperationRefused NOTHING_TO_FINISH; NEW_KEY_NOT_IN_USE this command still reads the old one
 */
export function* finishRotation(
  { masterKey, dataKeys }: OpenDataKeys,
  options: { compromised: boolean; now: number; check?: (areDataKeysNew: boolean) => SqlSteps<void> },
): SqlSteps<Rotation> {
  const { compromised, now, check } = options
  if ((yield* listMasterKeys()).length === 1) {
    throw new OperationRefused(
      'NOTHING_TO_FINISH',
      'only one master key opens the database',
      'Begin with: otpd admin rotate-master-key --new-key-file FILE',
    )
  }
  if ((yield* selectMeta('master_key_check')) !== masterKeyCheck(masterKey)) {
    throw new OperationRefused(
      'NEW_KEY_NOT_IN_USE',
      'this command still reads the old master key',
      'Configure the new one, restart the servers with it, and repeat this.',
    )
  }
  const areDataKeysNew = compromised || (yield* selectMeta(compromisedMark)) !== null
  if (check) yield* check(areDataKeysNew)
  const rotation = yield* wrapDataKeys({ masterKey, dataKeys }, { areReplaced: areDataKeysNew, now })
  yield* query('delete from meta where name = ?', compromisedMark)
  return rotation
}

/**
 * Wraps the data keys with a master key that alone opens the database from now on.
 *
 * @param options.areReplaced also makes a new version of them
 */
export function* wrapDataKeys(
  { masterKey, dataKeys }: OpenDataKeys,
  { areReplaced, now }: { areReplaced: boolean; now: number },
): SqlSteps<Rotation> {
  const wrapped = areReplaced ? yield* replaceDataKeys(dataKeys) : dataKeys
  yield* storeDataKeys(masterKey, wrapped, { keepOthers: false, now })
  // Counted here, where no other transaction writes: the server cancels these codes too, perhaps before the command does.
  const canceledCodes = areReplaced ? yield* countPending(now) : 0
  return { state: 'replaced', areDataKeysNew: areReplaced, canceledCodes }
}

function* countPending(now: number): SqlSteps<number> {
  const [counted] = yield* query<{ pending: number }>(
    `select cast(count(*) as integer) as pending from otp_requests where status = 'pending' and expires_at > ?`,
    now,
  )
  return counted?.pending ?? 0
}

/** Adds a new version of the data keys, and drops what only the old ones can read. The caller stores them. */
function* replaceDataKeys(dataKeys: readonly DataKey[]): SqlSteps<DataKey[]> {
  // Nothing that these keys made is read again: signing keys are replaced, and callback tokens are derived.
  const kept = dataKeys.filter(({ purpose }) => purpose !== 'signing' && purpose !== 'callbacks')
  const replaced = [...kept, ...nextDataKeys(dataKeys)]
  // Their private keys could be read: tokens that they signed end, and the next login makes a new one.
  yield* query('delete from signing_keys')
  yield* resignHeads(createKeyring(dataKeys).keys, createKeyring(replaced).keys)
  return replaced
}

/** Authenticates the heads of the audit chains with a new key; a broken head stays broken. */
export function* resignHeads(before: Pick<Keys, 'audit'>, after: Pick<Keys, 'audit'>): SqlSteps<void> {
  for (const head of yield* listHeads()) {
    if (!isAuthenticHead(before, head)) continue
    const { keyVersion, mac } = signHead(after, head)
    yield* query(
      'update audit_chains set key_version = ?, mac = ? where chain = ?',
      keyVersion,
      mac,
      head.chain,
    )
  }
}

/** Refuses a second rotation before the first is finished; repeating the first one is allowed. */
export function* requireSingleKey(...known: Uint8Array[]): SqlSteps<void> {
  const checks = known.map(masterKeyCheck)
  if ((yield* listMasterKeys()).every(({ check }) => checks.includes(check))) return
  throw new OperationRefused(
    'ROTATION_UNFINISHED',
    'another master key is still being replaced',
    'Finish that first: otpd admin rotate-master-key --finish',
  )
}
