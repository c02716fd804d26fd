import type { Config } from '../config/config.ts'
import { recordAudit } from '../domain/accounts/audit.ts'
import { hostOrigin } from '../domain/model/audit.ts'
import { callbackPath } from '../domain/otp/callback-tokens.ts'
import { createBackfills } from '../domain/upkeep/backfills.ts'
import { createEndedCodesBackfill } from '../domain/upkeep/replaced-keys.ts'
import type { Rotation } from '../store/data-dir/rotation.ts'
import type { HostKeptKey } from './kept-keys.ts'
import type { OpenedStore } from './open.ts'

export type HostRotation = Rotation & {
  /** New URLs for delivery receipts, if the old ones ended. */
  callbackUrls: Record<string, string>
  /** The replaced master key; null if it does not come from the data directory. */
  keptKey: HostKeptKey | null
}

/**
 * Records a rotation, and cancels pending codes of replaced keys. A command that is killed before this leaves it to the
 * server, whose backfills do the same.
 */
export async function completeRotation(
  { store, keyring, keys, clock, newId, close }: OpenedStore,
  config: Config,
  rotation: Rotation,
  keptKey: HostKeptKey | null = null,
): Promise<HostRotation> {
  const { state, areDataKeysNew } = rotation
  try {
    const operator = { developerId: null, actorId: null, origin: hostOrigin }
    const detail = areDataKeysNew ? 'data keys replaced' : state === 'both' ? 'to be finished' : null
    await store.write((tx) =>
      recordAudit(tx, newId, operator, { action: 'master_key.rotated', detail }, clock.now()),
    )
    if (!areDataKeysNew) return { ...rotation, callbackUrls: {}, keptKey }
    const backfills = [createEndedCodesBackfill({ keys, clock, newId })]
    const { run } = createBackfills({ store, keyring, backfills })
    await run({ batchSize: 100, yieldToRequests })
    return { ...rotation, callbackUrls: callbackUrls(config, keys), keptKey }
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
