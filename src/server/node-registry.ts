import type { Config } from '../config/config.ts'
import type { Clock } from '../domain/model/clock.ts'
import { hmac, type Keys } from '../domain/model/keys.ts'
import type { Log } from '../log/log.ts'
import type { Database } from '../store/engine/database.ts'
import { nodeRenewMs, registerNode, removeNode, renewNode } from '../store/postgres/nodes.ts'
import { pick } from '../shared/fields.ts'
import { startPeriodicTask } from './periodic-tasks.ts'
import type { Cleanups } from './shutdown.ts'

/** Settings that a change of makes nodes answer the same call differently. Addresses and logs are each node's own. */
const sharedNames = [
  'publicUrl',
  'oidc',
  'signup',
  'requireTotp',
  'tokenMaxHours',
  'trustedProxies',
  'corsOrigins',
  'webhooks',
  'budgets',
  'guard',
  'retention',
  'plans',
  'delivery',
  'templates',
] as const

/** Formats settings for the nodes' table; their order in the file does not change the text. */
const toText = (value: unknown): string =>
  JSON.stringify(value, (_, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  )

/** Describes settings of a node for its row. The hash covers the providers' secrets; the text does not have them. */
export function describeConfiguration(config: Config, keys: Pick<Keys, 'configuration'>) {
  const settings = pick(config, sharedNames)
  const { providers, routes } = settings.delivery
  const shown = {
    ...settings,
    delivery: { providers: providers.map(({ name, kind }) => ({ name, kind })), routes },
  }
  return {
    configuration: hmac(keys.configuration).update(toText(settings)).digest('base64url'),
    settings: toText(shown),
  }
}

/**
 * Keeps the row of this node in a shared database, until the server stops.
 *
 * @returns updates the row after a reload
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
  },
): Promise<(config: Config) => Promise<void>> {
  const { database, keys, clock, version, log, cleanups } = needs
  const identity = { name: config.node, process: crypto.randomUUID() }
  let isNameTaken = false

  async function renew(fields: ReturnType<typeof describeConfiguration> | object = {}) {
    const isRenewed = await renewNode(database, { ...identity, ...fields, seenAt: clock.now() })
    if (!isRenewed && !isNameTaken)
      log.warn('another process has the name of this node; give each its own with OTPD_NODE', {
        node: config.node,
      })
    isNameTaken = !isRenewed
  }

  const now = clock.now()
  await registerNode(database, {
    ...identity,
    version,
    ...describeConfiguration(config, keys),
    startedAt: now,
    seenAt: now,
  })
  cleanups.push(() => removeNode(database, identity))
  cleanups.push(startPeriodicTask(nodeRenewMs, log, () => renew()))
  return (changed) => renew(describeConfiguration(changed, keys))
}
