import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir, uptime } from 'node:os'
import { join } from 'node:path'
import type { Config } from '../config/config.ts'
import { repairAfterClockRollback } from '../domain/upkeep/clock-rollback.ts'
import { systemClock, type Clock } from '../domain/model/clock.ts'
import { createRetention } from '../domain/upkeep/retention.ts'
import { createApp } from '../http/app.ts'
import { listen, type Listener, type ListenerNeeds } from '../http/listener.ts'
import type { Log } from '../log/log.ts'
import { bindOrExplain } from './listen.ts'
import { createServerMetrics, requestObserver, startMetricsListener, withLoginMetrics } from './metrics.ts'
import { createReadiness } from './readiness.ts'
import { createServices, type Services } from './services.ts'
import { createClockStepLogger, createPurgeThrottle, startPeriodicTask } from './periodic-tasks.ts'
import { dataFiles, prepareDataDir, readMasterKey, StartRefused } from '../store/files/data-dir.ts'
import { checkIntegrity } from '../store/files/integrity.ts'
import { acquireLock } from '../store/files/lock.ts'
import { toStartError, prepareDatabase, wasUncleanStop } from '../store/files/prepare-database.ts'
import { openSqlite } from '../store/engine/sqlite.ts'
import { createStore } from '../store/store.ts'
import { createWebhookWorker } from '../webhooks/worker.ts'
import { minuteMs } from '../shared/durations.ts'

export { openProviders, type ConfiguredProvider, type ProviderTestResult } from './providers.ts'
export { createLog, descriptorSink, type Log } from '../log/log.ts'
export { StartRefused } from '../store/files/data-dir.ts'

export type RunningServer = {
  /** URL of the listener, with the bound port. */
  url: string
  dataDir: string
  /** URL of the metrics, with the bound port; null if metrics are not configured. */
  metricsUrl: string | null
  /** Single-use token for creating the first account; undefined once an account exists. */
  setupToken: { token: string; expiresAt: number } | undefined
  /** Applies the providers, routes and guard of a new configuration. Deliveries in progress keep the old ones. */
  reload(config: Pick<Config, 'delivery' | 'guard'>): Promise<void>
  /** Graceful shutdown: finishes work in progress and closes everything, within ten seconds. Idempotent. */
  stop(): Promise<void>
  /** Resolves with the error when a disk fault forces the server to exit: continuing could lose acknowledged writes. */
  failed: Promise<unknown>
}

export type ServerNeeds = {
  log: Log
  version: string
  clock?: Clock
}

/**
 * Graceful shutdown takes at most ten seconds: up to one second to drain keep-alive connections, then the requests in
 * progress, then the messages and webhooks that they caused.
 */
const requestsDrainMs = 7_000
const messagesDrainMs = 500
const webhooksDrainMs = 1_000
const lockWaitMs = 1_000
const expirySweepMs = 10_000
const clockCheckMs = 10_000
const setupTokenCheckMs = 10_000
const purgeIntervalMs = 10 * minuteMs
/** Wakes streams for entries that another process wrote and for tokens that expired. */
const streamsPollMs = 2_000

/**
 * Starts the server: data directory, lock, master key, database, services, workers and finally the listener. If a step
 * fails, everything started before it is shut down again.
 *
 * @throws StartRefused with the cause and a remedy
 */
export async function startServer(config: Config, needs: ServerNeeds): Promise<RunningServer> {
  const { log, version } = needs
  const clock = needs.clock ?? systemClock(Date.now, () => performance.now(), uptime)
  const wall = needs.clock ?? { now: Date.now }
  const cleanups: Array<() => unknown> = []
  let shutdownPromise: Promise<void> | undefined
  const stop = () => (shutdownPromise ??= shutdown(cleanups, log))
  const failure = Promise.withResolvers<unknown>()

  const dataDir = config.dataDir ?? makeTemporaryDir(cleanups)
  try {
    prepareDataDir(dataDir, (message) => log.warn(message))
    const files = dataFiles(dataDir)
    // An operator command may hold the lock briefly.
    const lock = acquireLock(files.lock, lockWaitMs)
    if (!lock) {
      throw new StartRefused(
        `another otpd is already running on ${dataDir}`,
        'Stop it, or choose another data directory with --data-dir.',
      )
    }
    cleanups.push(lock.release)

    const masterKey = readMasterKey(dataDir, config.secrets.masterKey)
    const wasUnclean = wasUncleanStop(dataDir)
    const { migrated, backup } = prepareDatabase(dataDir, {
      masterKey,
      migrate: config.migrate,
      now: clock.now(),
    })
    if (migrated.length > 0) log.info('database migrated', { migrations: migrated, backup })

    const onDiskFault = (error: unknown) => {
      log.error('a disk write failed during a commit, so its outcome is unknown; the server exits', { error })
      failure.resolve(error)
    }
    const database = openSqlite(files.database, { onDiskFault })
    cleanups.push(database.close)
    let wakeWebhookWorker = () => {}
    let wakeStreams = (_developerId: string) => {}
    const store = createStore(database, {
      onDelivery: () => wakeWebhookWorker(),
      onEvent: (developerId) => wakeStreams(developerId),
    })
    let url = ''
    const metrics = await createServerMetrics(config, { store, clock, version })
    const services = createServices({
      config,
      store,
      masterKey,
      clock,
      wall,
      version,
      random: (bytes) => crypto.getRandomValues(bytes),
      publicUrl: () => config.publicUrl ?? url,
      report: (level, text, fields) => log[level](text, fields),
      onProviderTried: metrics?.observeProviderSend,
      onKeysFailed: (cause) => log.warn('the keys of the identity provider could not be loaded', { cause }),
      onGuardFailed: (error) => log.error('guard check failed; request allowed (fail open)', { error }),
    })
    const { logStreams } = services
    wakeStreams = logStreams.wake
    const rollbackMs = await repairAfterClockRollback({ store, clock })
    if (rollbackMs > 0) {
      const seconds = Math.round(rollbackMs / 1000)
      log.warn('the system clock was set back since the last run; pending deadlines were moved back', {
        seconds,
      })
    }
    const { adminEmail, secrets } = config
    if (adminEmail !== null && secrets.adminPassword !== null) {
      await services.ensureAccount({ email: adminEmail, password: secrets.adminPassword })
    }

    const worker = createWebhookWorker({
      store,
      clock,
      newId: services.newId,
      keys: services.keys,
      random: Math.random,
      send: metrics?.instrumentWebhooks(services.sendWebhook) ?? services.sendWebhook,
      ownsAllLeases: true,
      onError: (error) => log.error('webhook delivery failed unexpectedly', { error }),
    })
    wakeWebhookWorker = worker.wake
    await worker.start()
    cleanups.push(() => worker.stop(webhooksDrainMs))
    const { messaging } = services
    await messaging.start(config.delivery)
    cleanups.push(() => messaging.stop(messagesDrainMs))
    cleanups.push(startPeriodicTask(expirySweepMs, log, () => services.otp.expireRequests()))
    const checkClockStep = createClockStepLogger(clock, wall, log)
    cleanups.push(startPeriodicTask(clockCheckMs, log, async () => checkClockStep()))
    const { keys } = services
    const retention = createRetention({ store, clock, keys, settings: config.retention })
    cleanups.push(
      startPeriodicTask(purgeIntervalMs, log, (isStopping) =>
        retention.purge(createPurgeThrottle(isStopping)),
      ),
    )

    const readiness = createReadiness(store, clock, () => shutdownPromise !== undefined)
    const onBug = (error: unknown, traceId: string) => log.error('unexpected error', { error, traceId })
    const app = createApp({ ...services, ...withLoginMetrics(metrics, services.builtIn), readiness, onBug })
    const listener = bind(config, app, {
      newId: services.newId,
      onBug,
      onResponse: requestObserver(
        metrics,
        config.log.level === 'debug' ? (completed) => log.debug('request', completed) : undefined,
      ),
    })
    cleanups.push(() => listener.stop(requestsDrainMs))
    cleanups.push(listener.beginDrain)
    cleanups.push(startPeriodicTask(streamsPollMs, log, async () => logStreams.wake()))
    // Runs first: the listener waits for open requests, and a stream would never end on its own.
    cleanups.push(() => logStreams.drain())
    url = listener.url
    const metricsUrl = await startMetricsListener(config.metricsListen, metrics, log, cleanups)

    const setupToken = await publishSetupToken(services, files.setupToken)
    // Another process may have created the first account, which invalidates the token.
    cleanups.push(
      startPeriodicTask(setupTokenCheckMs, log, async () => {
        if (existsSync(files.setupToken) && (await store.read.accounts.hasAny())) rmSync(files.setupToken)
      }),
    )
    if (wasUnclean) cleanups.push(checkIntegrity(files.database, log))
    const reload = async ({ delivery, guard }: Pick<Config, 'delivery' | 'guard'>) => {
      await messaging.reload(delivery)
      services.guard.configure(guard)
      const { providers, routes } = delivery
      log.info('delivery reloaded', { providers: providers.length, routes: routes.length })
    }
    return { url, dataDir, metricsUrl, setupToken, reload, stop, failed: failure.promise }
  } catch (error) {
    await stop()
    // A disk fault can occur in any of these steps.
    throw toStartError(error, dataDir)
  }
}

/** Graceful shutdown: runs the cleanups in reverse order. A cleanup that fails is logged and does not stop the rest. */
async function shutdown(cleanups: Array<() => unknown>, log: Log): Promise<void> {
  for (const cleanup of cleanups.splice(0).toReversed()) {
    try {
      await cleanup()
    } catch (error) {
      log.error('a part of the server did not shut down cleanly', { error })
    }
  }
}

function makeTemporaryDir(cleanups: Array<() => unknown>): string {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-dev-'))
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/**
 * While there is no account, issues a setup token for the person who can read this machine's terminal or files. Without
 * a terminal the token is written to a file.
 */
async function publishSetupToken(services: Services, path: string) {
  const setupToken = services.builtIn ? await services.setupTokens.issueForFirstStart() : undefined
  rmSync(path, { force: true })
  if (setupToken && !process.stderr.isTTY)
    writeFileSync(path, `${setupToken.token}\n`, { mode: 0o600, flag: 'wx' })
  return setupToken
}

const bind = (config: Config, app: Parameters<typeof listen>[1], needs: ListenerNeeds): Listener =>
  bindOrExplain(config.listen, '--listen', () => listen(config.listen, app, needs))
