import type { Config } from '../config/config.ts'
import { sharedSettings } from '../config/shared-settings.ts'
import { withoutSecrets } from '../config/without-secrets.ts'
import type { Clock } from '../domain/model/clock.ts'
import { hmac } from '../shared/hmac.ts'
import { masterKeyCheck, type Keys } from '../domain/model/keys.ts'
import type { ServerRecord } from '../host/server-record.ts'
import type { Log } from '../log/log.ts'
import type { Database } from '../store/engine/database.ts'
import { nodeRenewMs, registerNode, removeNode, renewNode } from '../store/postgres/nodes.ts'
import { startPeriodicTask } from './periodic-tasks.ts'
import type { Cleanups } from './shutdown.ts'
import { isRecord } from '../shared/json.ts'
import { systemWorld } from '../world/system.ts'

/** Formats settings for the table of nodes; their order in the file does not change the text. */
const toText = (value: unknown): string =>
  JSON.stringify(value, (_, part: unknown) =>
    isRecord(part) ? Object.fromEntries(Object.entries(part).toSorted(([a], [b]) => (a < b ? -1 : 1))) : part,
  )

/** Hashes the settings that all nodes should share, with the secrets of providers. */
const hashConfiguration = (config: Config, keys: Pick<Keys, 'configuration'>): string =>
  hmac(keys.configuration)
    .update(toText(sharedSettings(config)))
    .digest('base64url')

/**
 * Keeps the row of this node in a shared database, until the server stops.
 *
 * @returns writes what the server says of itself into the row
 */
export async function registerThisNode(
  config: Config,
  needs: {
    database: Database
    keys: Pick<Keys, 'configuration'>
    clock: Clock
    version: string
    log: Log
    cleanups: Cleanups
    /** Called when the row was renewed, which shows that the database can be written. */
    onRenewed(): void
  },
): Promise<(record: ServerRecord, config: Config) => Promise<void>> {
  const { database, keys, clock, version, log, cleanups } = needs
  const identity = { name: config.node, process: systemWorld.uuid() }
  const { masterKey } = config.secrets
  // Tells `otpd admin rotate-master-key --finish` which key this node was started with.
  const ofThisStart = { masterKey: masterKey && masterKeyCheck(masterKey) }
  let isNameTaken = false

  async function renew(fields: { configuration?: string; settings?: string } = {}) {
    const isRenewed = await renewNode(database, { ...identity, ...fields, seenAt: clock.now() })
    if (!isRenewed && !isNameTaken)
      log.warn('another process has the name of this node; give each its own with OTPD_NODE', {
        node: config.node,
      })
    isNameTaken = !isRenewed
    needs.onRenewed()
  }

  const now = clock.now()
  await registerNode(database, {
    ...identity,
    version,
    configuration: hashConfiguration(config, keys),
    settings: toText({ ...ofThisStart, config: withoutSecrets(config) }),
    startedAt: now,
    seenAt: now,
  })
  cleanups.push(() => removeNode(database, identity))
  cleanups.push(startPeriodicTask(nodeRenewMs, systemWorld, log, () => renew()))
  return (record, changed) =>
    renew({
      configuration: hashConfiguration(changed, keys),
      settings: toText({ ...ofThisStart, ...record }),
    })
}
