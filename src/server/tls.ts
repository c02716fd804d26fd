import type { Config } from '../config/config.ts'
import type { TlsConfig } from '../config/tls.ts'
import type { Clock } from '../domain/model/clock.ts'
import type { Listener } from '../http/listener.ts'
import type { Log } from '../log/log.ts'
import { StartRefused } from '../store/data-dir/data-dir.ts'
import type { InspectedPair } from '../tls/pair.ts'
import type { ServerMetrics } from './metrics.ts'
import { startPeriodicTask } from './periodic-tasks.ts'
import type { Cleanups } from './shutdown.ts'
import type { World } from '../world/world.ts'

export type Tls = Awaited<ReturnType<typeof openTls>>

/**
 * Opens the source of the certificate. Nothing is obtained before `start`.
 *
 * @throws StartRefused the files of the certificate cannot be served
 */
export async function openTls(
  config: Pick<Config, 'publicUrl'> & { tls: TlsConfig },
  needs: {
    dataDir: string | null
    wall: Clock
    log: Log
    version: string
    metrics: ServerMetrics
    world: World
  },
) {
  const { log, wall, version, metrics, world } = needs
  const { openFiles, createKeeper, coversHost, tlsFolder } = await import('../tls/tls.ts')
  const challenges = new Map<string, string>()
  const ready = Promise.withResolvers<void>()
  let listener: Listener | undefined
  let current: InspectedPair | undefined
  const base = {
    log,
    wall,
    onPair(next: InspectedPair) {
      listener?.exchange(next.pair)
      current = next
      ready.resolve()
    },
    onOutcome: (outcome: 'renewed' | 'failed') => metrics?.recordRenewal(outcome),
  }
  const { certificate } = config.tls
  const source =
    certificate.kind === 'files'
      ? openFiles({ ...base, ...certificate })
      : createKeeper({
          ...base,
          ...certificate,
          version,
          folder: tlsFolder(needs.dataDir ?? ''),
          answer(token, text) {
            challenges.set(token, text)
            return () => void challenges.delete(token)
          },
        })
  if ('fault' in source) throw new StartRefused(source.fault.replace(/\.$/, ''), source.remedy)
  current = source.first
  if (current) ready.resolve()
  metrics?.watchCertificate(() => current?.facts)

  let looking: Promise<void> | undefined
  const look = (isAsked: boolean) =>
    (looking ??= source.look(isAsked).finally(() => {
      looking = undefined
    }))

  return {
    /** Certificate of the start; null while there is none. */
    pair: current?.pair ?? null,
    hstsSeconds: config.tls.hstsSeconds,
    /** Whether HTTPS is served. */
    isReady: () => current !== undefined,
    /** Resolves when HTTPS is served. */
    ready: ready.promise,
    findChallenge: (token: string) => challenges.get(token),
    /** Returns where plain HTTP to a host is redirected. */
    httpsOrigin(host: string): string | undefined {
      const { publicUrl } = config
      const own = URL.parse(publicUrl ?? listener?.url ?? '')
      if (current && own && coversHost(current.pair.certificate, host))
        return `https://${host}${own.port === '' ? '' : `:${own.port}`}`
      return publicUrl?.startsWith('https:') ? new URL(publicUrl).origin : undefined
    },
    /** Looks for new certificates from now on. @param cleanups receives what stops that */
    start(served: Listener, cleanups: Cleanups) {
      listener = served
      const stopTask = startPeriodicTask(source.intervalMs, world, log, () => look(false))
      cleanups.push(async () => {
        source.stop()
        await Promise.all([stopTask(), looking])
      })
      if (!current) void look(false)
    },
    /** Looks at once. */
    refresh: () => look(true),
  }
}
