import type { Config } from '../config/config.ts'
import type { Clock } from '../domain/model/clock.ts'
import type { Store } from '../domain/store/store.ts'
import type { AppServices } from '../http/app.ts'
import type { ListenerNeeds } from '../http/listener.ts'
import type { Log } from '../log/log.ts'
import { bindOrExplain } from './listen.ts'

/** A count beyond tells no more than that there is a lot, and would cost each scrape. */
const backlogMax = 100_000

/** Counts for Prometheus, or nothing where nobody asks: then not even the library is loaded. */
export async function createServerMetrics(
  config: Pick<Config, 'metricsListen'>,
  { store, clock, version }: { store: Store; clock: Clock; version: string },
) {
  if (config.metricsListen === null) return undefined
  const { createMetrics } = await import('../metrics/metrics.ts')
  return createMetrics({
    version,
    now: () => clock.now(),
    backlog: () => store.read.webhookOutbox.backlog(backlogMax),
  })
}

export type ServerMetrics = Awaited<ReturnType<typeof createServerMetrics>>

/** What the application tells metrics of, and through which it does so. */
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

/** Who is told of each call; nobody where it would cost for nothing. */
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
 * @param cleanups gets what ends it
 * @returns where Prometheus asks, with the port that was really bound; null where nobody does
 * @throws StartRefused the address is taken or not ours
 */
export async function startMetricsListener(
  address: Config['metricsListen'],
  metrics: ServerMetrics,
  log: Log,
  cleanups: Array<() => unknown>,
): Promise<string | null> {
  if (!metrics || address === null) return null
  const { serveMetrics } = await import('../metrics/metrics.ts')
  const onError = (error: unknown) => log.error('the metrics could not be read', { error })
  const listener = bindOrExplain(address, 'OTPD_METRICS_LISTEN', () =>
    serveMetrics(address, metrics, onError),
  )
  cleanups.push(listener.stop)
  return listener.url
}
