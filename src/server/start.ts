import type { Config, SettingValue } from '../config/config.ts'
import { repairAfterClockRollback } from '../domain/upkeep/clock-rollback.ts'
import { moveIdentities } from '../domain/upkeep/move-identities.ts'
import { systemClock, type Clock } from '../domain/model/clock.ts'
import type { Log } from '../log/log.ts'
import { startAlerts } from './alerts.ts'
import { startBackups } from './backup-schedule.ts'
import { soleNodeName, startLeadership, type Node } from './leadership.ts'
import { createServerWorld, logFault } from './log-fault.ts'
import { createServerMetrics, type ServerMetrics, startMetricsListener, watchDelivery } from './metrics.ts'
import { createCodeReporter, type DevLine } from './dev-lines.ts'
import { createChallengeReporter } from './report-challenges.ts'
import { atMostEvery, createUnreadableReporter } from './periodic-tasks.ts'
import { minuteMs } from '../shared/durations.ts'
import type { OnStep } from '../shared/progress.ts'
import { withoutOutages } from './outage-log.ts'
import { createReadiness } from './readiness.ts'
import { recordServer } from './server-record.ts'
import { createServices } from './services.ts'
import { publishSetupToken } from './setup-token.ts'
import { shutdown, type Cleanups } from './shutdown.ts'
import { openStorage } from './open-storage.ts'
import type { Storage } from './storage.ts'
import { startListener } from './start-listener.ts'
import { openTls } from './tls.ts'
import { watchEvents } from './watch-events.ts'
import { startWorkers } from './workers.ts'
import { createStore } from '../store/store.ts'
import { createWebhookWorker, type WebhookWorker } from '../webhooks/worker.ts'
import type { World } from '../world/world.ts'

export { openProviders, type ConfiguredProvider, type ProviderTestResult } from './providers.ts'
export { createLog, descriptorSink, type Log } from '../log/log.ts'
export type { DevLine } from './dev-lines.ts'
export { StartRefused } from '../store/data-dir/data-dir.ts'

/** The part of the configuration that a running server takes over. */
type Reloadable = Pick<Config, 'alerts' | 'budgets' | 'configFile' | 'delivery' | 'guard'>

export type RunningServer = {
  /** URL of the listener, with the bound port. */
  url: string
  /** Resolves when connections are accepted: at once, unless there is no certificate yet. */
  listening: Promise<void>
  /** Null if nothing is kept in files. */
  dataDir: string | null
  /** URL of the metrics, with the bound port; null if metrics are not configured. */
  metricsUrl: string | null
  /** Single-use token for creating the first account; undefined once an account exists. */
  setupToken: { token: string; expiresAt: number } | undefined
  /** Whether developers log in at an OpenID provider, and there was none yet at the start. */
  awaitsFirstDeveloper: boolean
  /** Applies a new configuration, and its certificate. Deliveries in progress keep the old providers and routes. */
  reload(config: Reloadable, settings?: readonly SettingValue[]): Promise<void>
  /** Shuts down gracefully: drains, and finishes work in progress, within ten seconds and `drainSeconds`. Idempotent. */
  stop(): Promise<void>
  /** Resolves with the error when a disk fault forces the server to exit: continuing could lose acknowledged writes. */
  failed: Promise<unknown>
}

type ServerNeeds = {
  log: Log
  version: string
  clock?: Clock
  /** By default the system's, which logs and counts a broken invariant. */
  world?: World
  /** Called in development mode with each request and each code in an inbox. */
  onDevLine?: (line: DevLine) => void
  /** Create a database next to files of an earlier one, and refuse one that exists; false by default. */
  mustBeNew?: boolean
  /** Called as a migration goes on. */
  onStep?: OnStep
  /** Starts this program, for the backups of the schedule. Without it there are none. */
  command?: readonly string[]
  /** Completes the commands that an alert suggests, so that they work when pasted. */
  completeCommands?: (text: string) => string
  /** Settings with their origins, for `otpd config show`. */
  settings?: readonly SettingValue[]
}

/**
 * Starts the server: database, services, workers and finally the listener. If a step fails, everything started before it
 * is shut down again.
 *
 * @throws StartRefused with the cause and a remedy
 */
export async function startServer(config: Config, needs: ServerNeeds): Promise<RunningServer> {
  const { version, settings = [], mustBeNew = false, onStep = () => {} } = needs
  let { log } = needs
  let metrics: ServerMetrics
  const world = needs.world ?? createServerWorld(log, (invariant) => metrics?.recordBroken(invariant))
  // `clock` follows monotonic time; `wall` is for times that other systems compare with their own clocks.
  const nodeClock = needs.clock ?? systemClock(world.now, world.monotonic, world.uptimeSeconds)
  const wall = needs.clock ?? { now: world.now }
  const cleanups: Cleanups = []
  let shutdownPromise: Promise<void> | undefined
  const stop = () => (shutdownPromise ??= shutdown(cleanups, log))
  const failure = Promise.withResolvers<unknown>()
  let hasFailed = false
  const onFault = (error: unknown) => {
    logFault(log, error)
    hasFailed = true
    failure.resolve(error)
  }

  let storage: Storage | undefined
  try {
    const storageNeeds = { world, log, version, clock: nodeClock, cleanups, mustBeNew, onFault, onStep }
    storage = await openStorage(config, storageNeeds)
    const { database, keyring, clock } = storage
    if (storage.isShared) log = withoutOutages(log)
    // Set below: the store wakes the worker and the streams, which are built on the store, and the services need the
    // URL, whose port is known once the listener is bound.
    let webhookWorker: WebhookWorker | undefined
    let wakeStreams = (_developerId: string) => {}
    let url = ''
    const isSole = !database.postgres
    const node: Node = { name: isSole ? soleNodeName : config.node, isSole }
    const rawStore = createStore(database, {
      keys: keyring.keys,
      clock,
      onDelivery: () => webhookWorker?.wake(),
      deliveryQueue: {
        offerLease: (now, use) => webhookWorker?.offerLease(now, use),
        push: (deliveries) => webhookWorker?.push(deliveries),
      },
      onEvent: (developerId) => wakeStreams(developerId),
      onUnreadable: createUnreadableReporter(log),
    })
    const leadership = await startLeadership(node, { store: rawStore, clock, log, cleanups, world })
    const { dataDir } = storage
    const sources = { store: rawStore, clock, version, leadership, dataDir }
    metrics = await createServerMetrics(config, sources)
    const store = metrics?.instrumentWrites(rawStore) ?? rawStore
    const services = createServices({
      config,
      store,
      keys: keyring.keys,
      clock,
      wall,
      world,
      version,
      node,
      random: world.random,
      publicUrl: () => config.publicUrl ?? url,
      report: (level, text, fields) => log[level](text, fields),
      onProviderTried: metrics?.observeProviderSend,
      onCircuitOpened: metrics?.recordCircuitOpened,
      onKeysFailed: (owner, cause) => log.warn(`the keys of ${owner} could not be loaded`, { cause }),
      onTokenTooLong: (hours) =>
        log.warn('an ID token was refused, because its lifetime exceeds auth.tokenMaxHours', {
          hours: Math.round(hours),
          maxHours: config.tokenMaxHours,
        }),
      onGuardFailed: (error) => log.error('guard check failed; request allowed (fail open)', { error }),
      onRefusalLost: (error) => log.error('a refused send could not be recorded', { error }),
      onChallengeChecked: createChallengeReporter({ log, clock, metrics }),
      onSignUpRefused: atMostEvery(minuteMs, clock, () =>
        log.warn(
          'a login was refused because sign-up is closed; create the account with `otpd admin create --email ADDRESS` if the provider sends email_verified, or set OTPD_SIGNUP=open',
        ),
      ),
      onTotpClockSetBack: ({ developerId, acceptedAgainAt }) =>
        log.warn(
          'right codes of an authenticator app are refused as used, because the clock was set back since the last login with one: log in with a recovery code, or wait until acceptedAgainAt',
          { developerId, acceptedAgainAt: new Date(acceptedAgainAt).toISOString() },
        ),
      onGuardAlert: (alert, { developerId, appId }) => {
        metrics?.recordGuardAlert(alert.country)
        log.warn(
          'more messages than usual are not verified: this may be SMS pumping; see otpd guard status, and stop sending there with otpd guard deny COUNTRY',
          { developerId, appId, ...alert, prefix: alert.prefix ?? undefined },
        )
      },
    })
    watchDelivery(metrics, services.messaging, store, leadership)
    const reportCodes =
      config.dev && needs.onDevLine ? createCodeReporter(() => services.inbox, needs.onDevLine) : undefined
    wakeStreams = (developerId) => {
      services.logStreams.wake(developerId)
      reportCodes?.(developerId)
    }
    const movedIdentities = await moveIdentities({ store, keys: services.keys, random: world.random })
    if (movedIdentities > 0) log.info('users moved to the new table of phones', { users: movedIdentities })
    // The clock of a shared database is not this node's, and is the other nodes' too.
    const rollbackMs = storage.isShared ? 0 : await repairAfterClockRollback({ store, clock })
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

    webhookWorker = createWebhookWorker({
      store,
      clock,
      world,
      random: world.randomNumber,
      send: metrics?.instrumentWebhooks(services.sendWebhook) ?? services.sendWebhook,
      ownsAllLeases: node.isSole,
      onError: (error) => log.error('webhook delivery failed unexpectedly', { error }),
    })
    cleanups.push(services.closeIdleConnections)
    const parts = { services, storage, store, leadership, clock, wall, log, cleanups, world }
    await startWorkers({ ...parts, config, webhookWorker, nodeClock })

    const tls = config.tls
      ? await openTls(
          { ...config, tls: config.tls },
          { dataDir: storage.dataDir, wall, log, version, metrics, world },
        )
      : undefined
    const isDraining = () => shutdownPromise !== undefined
    const lacksCertificate = () => tls?.isReady() === false
    const states = { isDraining, lacksCertificate, disk: storage.disk }
    const readiness = createReadiness(store, { clock, node: node.name, timers: world.timers }, states)
    if (!node.isSole) cleanups.push(watchEvents(store, services, webhookWorker, log, world))
    const { onDevLine } = needs
    const listener = startListener({
      config,
      world,
      services,
      metrics,
      readiness,
      log,
      cleanups,
      onDevLine,
      tls,
      changes: database.changes,
      hasFailed: () => hasFailed,
    })
    url = listener.url
    const metricsUrl = await startMetricsListener(config.metricsListen, metrics, { log, cleanups, world })

    startBackups(config, { command: needs.command, clock: wall, log, cleanups, metrics, world })
    const configureAlerts = startAlerts(config, {
      ...parts,
      node,
      version,
      completeCommands: needs.completeCommands,
    })
    const awaitsFirstDeveloper = !services.builtIn && !(await store.read.developers.hasAny())
    const setupToken = await publishSetupToken(services, storage, { store, log, cleanups, world })
    await storage.watch()
    const startedAt = nodeClock.now()
    // No certificate covers the address that a server listens on.
    const ownUrl = tls ? (config.publicUrl ?? url) : url
    const record = { config, settings, url: ownUrl, version, startedAt, log }
    const updateRecord = await recordServer(storage, record)
    const reload = async (changed: Reloadable, changedSettings = settings) => {
      const { delivery } = changed
      await services.messaging.reload(delivery)
      services.configureLimits(changed)
      const { alerts, budgets, configFile, guard } = changed
      configureAlerts(alerts)
      const reloaded = { ...config, alerts, budgets, configFile, delivery, guard }
      await updateRecord(reloaded, changedSettings)
      void tls?.refresh()
    }
    const listening = tls?.ready ?? Promise.resolve()
    const access = { setupToken, awaitsFirstDeveloper }
    return { url, listening, dataDir, metricsUrl, ...access, reload, stop, failed: failure.promise }
  } catch (error) {
    await stop()
    // A disk fault can occur in any of these steps.
    throw storage?.toStartError(error) ?? error
  }
}
