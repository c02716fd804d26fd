import type { Config } from '../config/config.ts'
import { isLoopbackListen } from '../config/values.ts'
import { onlyForeign } from '../domain/model/due-worker.ts'
import { createApp } from '../http/app.ts'
import { createErrorPresenter } from '../http/compat/facades.ts'
import { listenHttp } from '../http/http-listener.ts'
import { listen, type Listener } from '../http/listener.ts'
import type { Log } from '../log/log.ts'
import { requestReporter, type DevLine } from './dev-lines.ts'
import { secondMs } from '../shared/durations.ts'
import { bindOrExplain } from './listen.ts'
import { requestObserver, withLoginMetrics, type ServerMetrics } from './metrics.ts'
import { startPeriodicTask } from './periodic-tasks.ts'
import type { createReadiness } from './readiness.ts'
import type { Services } from './services.ts'
import { requestsDrainMs, type Cleanups } from './shutdown.ts'
import type { Database } from '../store/engine/database.ts'
import type { Tls } from './tls.ts'
import type { World } from '../world/world.ts'

/** Wakes streams for what another process wrote: entries, and the end of an account. */
const streamsPollMs = 2_000

/**
 * Binds the HTTP listener, with HTTPS also the one of plain HTTP, and adds the cleanups that drain them.
 *
 * @throws StartRefused when an address is in use or cannot be bound
 */
export function startListener(needs: {
  config: Config
  world: World
  services: Services
  metrics: ServerMetrics
  readiness: ReturnType<typeof createReadiness>
  log: Log
  cleanups: Cleanups
  onDevLine: ((line: DevLine) => void) | undefined
  tls: Tls | undefined
  changes: Database['changes']
  /** Whether the server must exit, and not serve any longer than it has to. */
  hasFailed: () => boolean
}): Listener {
  const { config, services, metrics, readiness, log, cleanups, onDevLine, tls, hasFailed, world, changes } =
    needs
  const { logStreams, newId } = services
  const onBug = (error: unknown, traceId: string) => log.error('unexpected error', { error, traceId })
  const onResponse = requestObserver(metrics, requestReporter(config, log, onDevLine))
  const app = createApp({ ...services, ...withLoginMetrics(metrics, services.builtIn), readiness, onBug })
  const { presentError } = createErrorPresenter(config.compat)
  const listener = bindOrExplain(config.listen, '--listen', () =>
    listen(config.listen, app, {
      newId,
      onBug,
      // A turn of the event loop may take 50 ms, in which a host command ends and calls follow that must see what it changed.
      onArrival: changes?.lookForForeign,
      onResponse,
      presentError,
      tls,
      world,
    }),
  )
  if (tls) {
    const httpListen = config.tls?.httpListen
    const answerProbe = app.compile().fetch
    if (httpListen) {
      const http = bindOrExplain(httpListen, 'OTPD_TLS_HTTP_LISTEN', () =>
        listenHttp(httpListen, { newId, onBug, answerProbe, presentError, world, ...tls }),
      )
      cleanups.push(http.stop)
    }
    tls.start(listener, cleanups)
  } else warnOfPlainHttp(config, log)
  cleanups.push(() => listener.stop(requestsDrainMs))
  cleanups.push(() => listener.beginDrain(hasFailed() ? 0 : config.drainSeconds * secondMs))
  cleanups.push(
    startPeriodicTask(streamsPollMs, world, log, async () => logStreams.wake(), {
      changes: changes && onlyForeign(changes),
    }),
  )
  // Runs before the listener drains: it waits for open requests, and a stream would never end on its own.
  cleanups.push(() => logStreams.drain())
  return listener
}

/** Warns of a server that others may reach, whose clients send their secrets unencrypted. */
function warnOfPlainHttp({ listen: { host, port }, trustedProxies }: Config, log: Log) {
  if (isLoopbackListen(host) || trustedProxies.length > 0) return
  log.warn(
    'plain HTTP on an address that other machines can reach: passwords, secrets and codes cross the network unencrypted. Serve HTTPS with --domain or --tls-cert, or name the proxy that does in OTPD_TRUSTED_PROXIES',
    { host, port },
  )
}
