import type { Config } from '../config/config.ts'
import { alertDestinationKinds } from '../delivery/alerts/all-alert-kinds.ts'
import type { SendAlert } from '../delivery/alerts/alert-kind.ts'
import { createProviderHttp } from '../delivery/kit/http-client.ts'
import type { AlertCause, AlertDestination, AlertNotice } from '../domain/model/alert.ts'
import type { Clock } from '../domain/model/clock.ts'
import type { Store } from '../domain/store/store.ts'
import { createNoticeSender, type NoticeResult } from '../domain/upkeep/alert-notices.ts'
import { recordObservation, resolveAlertsOfGoneNodes } from '../domain/upkeep/alerts.ts'
import { LeadershipLostError, type Leadership } from '../domain/upkeep/leadership.ts'
import type { Log } from '../log/log.ts'
import { secondMs } from '../shared/durations.ts'
import type { World } from '../world/world.ts'
import { createNodeObservers, createSharedObservers, type Observer } from './alert-observations.ts'
import type { Node } from './leadership.ts'
import { startPeriodicTask } from './periodic-tasks.ts'
import type { Services } from './services.ts'
import type { Cleanups } from './shutdown.ts'
import type { Storage } from './storage.ts'
import { createUnstoredAlert } from './unstored-alerts.ts'

const observationMs = 30 * secondMs
const sendingMs = 2 * secondMs
/** Shorter than the lease of a notice. */
const sendMsMax = 20 * secondMs
const unsentText = 'an alert could not be sent; it is tried again'
/** Source of the alerts that are about all nodes. */
const sharedSource = 'installation'

/**
 * Starts the alerts to the operator: each node looks after itself, and the leader after what they share, sending included.
 * Without destinations nothing is looked for.
 *
 * @returns takes over the destinations of a new configuration
 */
export function startAlerts(
  config: Config,
  needs: {
    store: Store
    services: Pick<Services, 'guard' | 'messaging' | 'publicUrl'>
    storage: Pick<Storage, 'dataDir' | 'isShared' | 'listNodes'>
    node: Node
    leadership: Leadership
    clock: Clock
    wall: Clock
    version: string
    log: Log
    cleanups: Cleanups
    world: World
    completeCommands?: ((text: string) => string) | undefined
  },
): (destinations: readonly AlertDestination[]) => void {
  const { services, storage, node, leadership, clock, log, cleanups, world } = needs
  const { completeCommands = (text: string) => text } = needs
  const store = leadership.fence(needs.store)
  const nodeSource = `node/${node.name}`
  let destinations: readonly AlertDestination[] = config.alerts
  const { messaging, guard, publicUrl } = services
  const shared = createSharedObservers({
    ...needs,
    guardSettings: guard.settings,
    providers: () => messaging.listProviders().map(({ name }) => name),
    listNodes: storage.listNodes,
    nextTurn: world.timers.nextTurn,
  })
  const own = createNodeObservers({ ...needs, ...storage, config, node: node.isSole ? '' : node.name })

  const sender = createSender({ version: needs.version, publicUrl, world })
  const unstoredAlert = createUnstoredAlert({
    source: nodeSource,
    destinations: () => destinations,
    now: clock.now,
    async send(notice) {
      const { failure } = await sender.send(destinations, notice)
      const { destination, kind, event } = notice
      if (failure !== null) log.warn(unsentText, { destination, kind, event, failure })
      return failure === null
    },
  })

  async function record(source: string, observers: readonly Observer[], target: Store) {
    for (const { kind, observe, describe } of observers) {
      let causes: AlertCause[] = []
      try {
        const found = await observe()
        causes = found.map((cause) => ({ ...cause, remedy: completeCommands(cause.remedy) }))
        if (kind === 'disk') await unstoredAlert.store(target)
        const observation = { source, kinds: [kind], causes, describe }
        await recordObservation(target, observation, destinations, clock.now())
      } catch (error) {
        if (error instanceof LeadershipLostError) throw error
        log.warn('a check for alerts failed', { kind, error })
        if (kind === 'disk') await unstoredAlert.send(target, causes)
      }
    }
  }

  async function observe() {
    if (destinations.length === 0) return
    await record(nodeSource, own, needs.store)
    await leadership.run(async () => {
      await record(sharedSource, shared, store)
      const nodes = (await storage.listNodes()).map(({ name }) => `node/${name}`)
      const sources = [sharedSource, nodeSource, ...nodes]
      await resolveAlertsOfGoneNodes(store, sources, destinations, clock.now())
    })
  }

  const notices = createNoticeSender({
    store,
    now: clock.now,
    destinations: () => destinations.map(({ name }) => name),
    send: (notice) => sender.send(destinations, notice),
    onFailed: ({ destination, kind, event, attempts }, failure) =>
      // A test is sent while a person waits for it, or not at all.
      log.warn(event === 'test' ? 'an alert could not be sent' : unsentText, {
        destination,
        kind,
        event,
        failure,
        attempt: attempts + 1,
      }),
    onDropped: ({ destination, kind, event }) =>
      log.error('an alert could not be sent for a day and was dropped', { destination, kind, event }),
  })
  cleanups.push(
    sender.close,
    startPeriodicTask(observationMs, world, log, observe),
    startPeriodicTask(sendingMs, world, log, () => leadership.run(notices.sendDue), {
      changes: store.changes,
      untilDueMs: notices.untilDueMs,
    }),
    sender.stop,
  )
  return (changed) => void (destinations = changed)
}

const stopped: NoticeResult = { failure: 'the server stopped before the answer' }

/** Sends notices to their destinations. */
function createSender(needs: { version: string; publicUrl: () => string; world: World }) {
  const { version, publicUrl, world } = needs
  const http = createProviderHttp({ version, world })
  const stopping = new AbortController()
  const opened = new WeakMap<AlertDestination, SendAlert>()

  function open(destination: AlertDestination): SendAlert {
    const kind = alertDestinationKinds.find((candidate) => candidate.kind === destination.kind)
    if (!kind) throw new Error(`unknown kind of alert: ${destination.kind}`)
    const send = opened.get(destination) ?? kind.create(destination.values, { http, server: publicUrl })
    opened.set(destination, send)
    return send
  }

  return {
    async send(destinations: readonly AlertDestination[], notice: AlertNotice): Promise<NoticeResult> {
      const destination = destinations.find(({ name }) => name === notice.destination)
      if (!destination) return { failure: 'it is no longer configured' }
      if (stopping.signal.aborted) return stopped
      const signal = AbortSignal.any([stopping.signal, world.timers.timeoutSignal(sendMsMax)])
      const failure = await open(destination)(notice, signal)
      return failure !== null && stopping.signal.aborted ? stopped : { failure }
    },
    /** Ends what is being sent: a destination that does not answer must not hold up a shutdown. */
    stop: () => stopping.abort(),
    close: http.close,
  }
}
