import { readLastBackup } from '../backups/last-backup.ts'
import type { Config } from '../config/config.ts'
import type { Clock } from '../domain/model/clock.ts'
import type { Store } from '../domain/store/store.ts'
import type { Leadership } from '../domain/upkeep/leadership.ts'
import type { AppServices } from '../http/app.ts'
import type { ListenerNeeds } from '../http/listener.ts'
import type { Log } from '../log/log.ts'
import type { Messaging } from './messaging.ts'
import { bindOrExplain } from './listen.ts'
import type { Cleanups } from './shutdown.ts'
import type { World } from '../world/world.ts'

/** Upper bound of the backlog count, so that a scrape stays cheap however long the backlog is. */
const backlogMax = 100_000

/** Creates the Prometheus metrics; undefined if they are not configured, so that the library is never loaded. */
export async function createServerMetrics(
  config: Pick<Config, 'backup' | 'metricsListen'>,
  {
    store,
    clock,
    version,
    leadership,
    dataDir,
  }: {
    store: Store<'webhookOutbox'>
    clock: Clock
    version: string
    leadership: Pick<Leadership, 'isLeader'>
    /** Null without one: otpd then makes no backups. */
    dataDir: string | null
  },
) {
  if (config.metricsListen === null) return undefined
  const { createMetrics } = await import('../metrics/metrics.ts')
  return createMetrics({
    version,
    now: () => clock.now(),
    ...(dataDir !== null && {
      backups: { last: () => readLastBackup(dataDir), areScheduled: config.backup.everyMs !== null },
    }),
    // The backlog is that of all nodes: only one may count it.
    backlog: async () =>
      leadership.isLeader() ? store.read.webhookOutbox.backlog(backlogMax) : { pending: 0, oldestAt: null },
  })
}

export type ServerMetrics = Awaited<ReturnType<typeof createServerMetrics>>

/** Wraps the built-in identity provider to count failed logins, and adds the hook that counts refusals. */
export function withLoginMetrics(
  metrics: ServerMetrics,
  builtIn: AppServices['builtIn'],
): Pick<AppServices, 'builtIn' | 'onRefusal'> {
  if (!metrics) return { builtIn }
  return {
    builtIn: builtIn && { ...builtIn, provider: metrics.instrumentLogins(builtIn.provider) },
    onRefusal: metrics.recordRefusal,
  }
}

/** Sets where the metrics read circuits and waiting messages. */
export function watchDelivery(
  metrics: ServerMetrics,
  messaging: Pick<Messaging, 'listCircuits'>,
  store: Store<'messages'>,
  leadership: Pick<Leadership, 'isLeader'>,
): void {
  metrics?.watchDelivery({
    circuits: messaging.listCircuits,
    // Those of all nodes: only one may count them.
    pendingMessages: async () => (leadership.isLeader() ? store.read.messages.countPending(backlogMax) : 0),
  })
}

/** Combines the metrics with another observer of responses; undefined if there is neither. */
export function requestObserver(
  metrics: ServerMetrics,
  onResponse: ListenerNeeds['onResponse'],
): ListenerNeeds['onResponse'] {
  if (!metrics) return onResponse
  return (completed) => {
    metrics.observeRequest(completed)
    onResponse?.(completed)
  }
}

/**
 * Starts the metrics listener, if one is configured.
 *
 * @param cleanups receives the function that stops the listener
 * @returns URL of the metrics with the bound port; null if metrics are not configured
 * @throws StartRefused when the address is in use or cannot be bound
 */
export async function startMetricsListener(
  address: Config['metricsListen'],
  metrics: ServerMetrics,
  { log, cleanups, world }: { log: Log; cleanups: Cleanups; world: World },
): Promise<string | null> {
  if (!metrics || address === null) return null
  const { serveMetrics } = await import('../metrics/metrics.ts')
  const onError = (error: unknown) => log.error('collecting metrics failed', { error })
  const listener = bindOrExplain(address, 'OTPD_METRICS_LISTEN', () =>
    serveMetrics(address, metrics, onError, world),
  )
  cleanups.push(listener.stop)
  return listener.url
}
