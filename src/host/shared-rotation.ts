import type { Config } from '../config/config.ts'
import { OperationRefused } from '../store/data-dir/data-dir.ts'
import { withPostgres } from '../store/postgres/connect.ts'
import { beginRotation } from '../store/data-dir/rotation.ts'
import { finishSharedRotation, rotateShared as rotate } from '../store/postgres/rotate-master-key.ts'
import { completeRotation, type HostRotation } from './complete-rotation.ts'
import { openSharedStore, requireSharedKey, type SharedConfig } from './shared.ts'

/** Replaces the master key of a shared database; the new one always comes from a file. */
export async function rotateShared(
  config: Config & SharedConfig,
  { newKey, compromised, finish }: { newKey: Uint8Array | null; compromised: boolean; finish: boolean },
): Promise<HostRotation> {
  const masterKey = requireSharedKey(config)
  // Checks the server and the schema first.
  const before = await openSharedStore(config, 'read')
  await before.close()
  const rotation = await withPostgres(config.database.url, async (client) => {
    const options = { compromised, now: Date.now() }
    if (finish) return rotate(client, masterKey, (opened) => finishSharedRotation(opened, options))
    if (newKey !== null)
      return rotate(client, masterKey, (opened) => beginRotation(opened, { ...options, newKey }))
    throw new OperationRefused(
      'NEW_KEY_NEEDED',
      'nodes share one master key, so the new one cannot be made here',
      'Make one with: openssl rand -base64 32 > FILE, only for yourself (umask 077), and name it with --new-key-file FILE.',
    )
  })
  return completeRotation(await openSharedStore(config, 'write'), config, rotation)
}
