import type { Report } from '../delivery/dispatcher.ts'
import type { ProviderKind } from '../delivery/kit/provider-kinds.ts'
import { createDeliveryService } from '../delivery/delivery-service.ts'
import { createDeliveryWorker } from '../delivery/worker.ts'
import type { Guard } from '../domain/guard/guard.ts'
import { recordAudit } from '../domain/accounts/audit.ts'
import { serverOrigin } from '../domain/model/audit.ts'
import { callbackPath, isCallbackToken } from '../domain/otp/callback-tokens.ts'
import { createMessageAttempts } from '../domain/otp/message-attempts.ts'
import { useCostCurrency } from '../domain/log/cost-currency.ts'
import { createRelayReceipts } from '../domain/otp/relay-receipts.ts'
import { createRouteLearning } from '../domain/routing/learning.ts'
import { createOutcomeReports } from '../domain/otp/outcome-reports.ts'
import { createDeliveryReceipts, earlyReceiptLifetimeMs } from '../domain/otp/delivery-receipts.ts'
import { createDueWorker } from '../domain/model/due-worker.ts'
import type { DeliverySettings } from '../domain/model/delivery.ts'
import type { NewId } from '../domain/model/ids.ts'
import type { Keys } from '../domain/model/keys.ts'
import type { MessageTemplates } from '../domain/model/message-settings.ts'
import type { OtpRequest } from '../domain/model/request.ts'
import type { Clock } from '../domain/model/clock.ts'
import type { PurgeThrottle } from '../domain/upkeep/retention.ts'
import type { Store } from '../domain/store/store.ts'
import type { ReceiveCallback } from '../http/routes/callbacks.ts'
import { isLoopback } from '../shared/loopback.ts'
import type { Node } from './leadership.ts'
import type { World } from '../world/world.ts'

export type MessagingNeeds = {
  store: Store
  clock: Clock
  /** Wall clock, for timestamps that providers compare with their own clocks; defaults to `clock`. */
  wall?: Clock | undefined
  newId: NewId
  keys: Keys
  node: Node
  version: string
  templates: MessageTemplates
  /** URL under which clients and providers reach this server. */
  publicUrl: () => string
  /** Judges messages that fail over. */
  guard: Guard
  /** Called with a request that failed because none of its messages can arrive. Never rejects. */
  onUndeliverable(request: OtpRequest): Promise<void>
  report?: Report | undefined
  onProviderTried?: ((provider: string, outcome: string, tookMs: number) => void) | undefined
  /** Called when a provider's circuit opens because of a failure, not again until it has closed. */
  onCircuitOpened?: ((provider: string) => void) | undefined
  /** Replaces the built-in provider kinds. */
  kinds?: readonly ProviderKind[] | undefined
  /** Certificates to trust instead of the system's, as PEM. */
  ca?: string | undefined
  /** Time limit of a dispatch, over all providers that it tries. */
  dispatchMs?: number | undefined
  /** Interval at which the worker polls for due messages. */
  pollMs?: number | undefined
  world: World
}

export type Messaging = ReturnType<typeof createMessaging>

/** Assembles message delivery: providers, routes, delivery attempts, receipts and the delivery worker. */
export function createMessaging(needs: MessagingNeeds) {
  const { store, clock, newId, keys, version, templates, publicUrl, report = () => {}, kinds, ca } = needs
  const { dispatchMs, pollMs } = needs
  const { node, world } = needs
  /** One after the other, so that the last change is the one that stays. */
  let circuitWrites = Promise.resolve()
  /** Providers whose circuits are open because of a failure, as the audit trail has it. */
  const failed = new Set<string>()
  const onError = (error: unknown) => report('error', 'message delivery failed unexpectedly', { error })

  const learning = createRouteLearning({
    store,
    clock,
    isShared: !node.isSole,
    randomNumber: () => world.randomNumber(),
  })
  const sharing = createDueWorker({
    async runRound() {
      await learning.share()
      return false
    },
    after: world.timers.after,
    // Each count follows a commit, of the message's or of the request's row.
    changes: store.changes,
    pollMs: sharingMs,
    onError: (error) => report('error', 'statistics of routes could not be shared', { error }),
  })
  const service = createDeliveryService({
    clock,
    choose: learning.choose,
    wall: needs.wall,
    version,
    templates,
    report,
    onProviderTried: needs.onProviderTried,
    dispatchMs,
    world,
    ...(kinds && { kinds }),
    ...(ca !== undefined && { ca }),
    callbackUrl: ({ name, isLocal }) =>
      canReach(publicUrl(), isLocal) ? `${publicUrl()}${callbackPath(keys, name)}` : null,
    onReceipt: (name, receipt) => void receipts.receive(name, [receipt]).catch(onError),
    onCircuitChange: (name, openState) => {
      const key = { node: node.name, name }
      const circuit = openState && {
        ...key,
        failure: openState.failure.class,
        openUntil: openState.openUntilMs,
      }
      // A pause that the provider asked for is no failure.
      const isFailure = circuit !== undefined && circuit.failure !== 'throttled'
      const hasChanged = circuit === undefined ? failed.delete(name) : isFailure && !failed.has(name)
      if (isFailure) failed.add(name)
      if (isFailure && hasChanged) needs.onCircuitOpened?.(name)
      circuitWrites = circuitWrites
        .then(() =>
          store.write(async (tx) => {
            await (circuit ? tx.providerCircuits.put(circuit) : tx.providerCircuits.remove(key))
            if (!hasChanged) return
            const action = circuit ? 'provider.circuit_opened' : 'provider.circuit_closed'
            const detail = circuit?.failure ?? null
            await recordAudit(tx, newId, operator, { action, targetName: name, detail }, clock.now())
          }),
        )
        .catch(onError)
    },
  })
  const { delivery } = service
  const attempts = createMessageAttempts({
    store,
    clock,
    newId,
    keys,
    delivery,
    owner: world.uuid(),
    applyEarlyReceipt: (key, provider, messageId) => receipts.applyEarly(key, provider, messageId),
    onUnstored: () => worker.wake(),
    onError,
    onUndeliverable: needs.onUndeliverable,
    onAccepted: (request, { provider, channel, at }) =>
      learning.recordSent(request, { provider, channel, country: request.country }, at),
  })
  const worker = createDeliveryWorker({
    attempts,
    ownsAllLeases: node.isSole,
    onError,
    pollMs,
    timers: world.timers,
  })
  const outcomes = createOutcomeReports({
    store,
    clock,
    keys,
    delivery,
    after: world.timers.after,
    pollMs,
    takesReports: () => service.listProviders().some(({ name }) => delivery.takesReports(name)),
    applyCharge: (key, provider, charged) => receipts.applyCharge(key, provider, charged),
    onError: (error) => report('error', 'outcomes could not be reported', { error }),
    onLost: (facts) => report('info', 'outcome not reported', facts),
  })
  const receipts = createDeliveryReceipts({
    store,
    clock,
    newId,
    keys,
    delivery,
    guard: needs.guard,
    onReopened: worker.wake,
    applyToRelayed: createRelayReceipts({ store, newId }),
  })

  const receiveCallback: ReceiveCallback = async ({ provider, token, search, ...call }) => {
    if (!isCallbackToken(keys, provider, token)) return { kind: 'unknown' }
    const url = `${publicUrl()}${callbackPath(keys, provider)}${search}`
    const result = await service.readCallback(provider, { ...call, url })
    if (!result) return { kind: 'unknown' }
    if (result.kind === 'receipts') {
      await receipts.receive(provider, result.receipts)
      return { kind: 'received' }
    }
    if (result.kind !== 'challenge') report('warn', `callback ${result.kind}`, { provider })
    return result
  }

  async function configure(settings: DeliverySettings): Promise<void> {
    await useCostCurrency({ store, clock }, settings.currency)
    await service.configure(settings)
  }

  /** Resumes the circuits that were open when this node ended. Otherwise an outage would seem to end with each restart. */
  async function resumeCircuits(): Promise<void> {
    const names = service.listProviders().map(({ name }) => name)
    for (const circuit of await store.read.providerCircuits.list()) {
      const { name, failure } = circuit
      if (circuit.node !== node.name) continue
      if (failure === 'throttled' || !names.includes(name))
        await store.write((tx) => tx.providerCircuits.remove(circuit))
      else {
        service.resumeCircuit(name, failure)
        failed.add(name)
      }
    }
  }

  return {
    delivery,
    attempts,
    applyEarlyToRelayed: receipts.applyEarlyToRelayed,
    async expireEarlyReceipts({ batchSize, yieldToRequests }: PurgeThrottle): Promise<void> {
      while (await receipts.expireEarly(earlyReceiptLifetimeMs, batchSize))
        if (!(await yieldToRequests())) return
    },
    receiveCallback,
    sendDue: worker.sendDue,
    reportDue: outcomes.reportDue,

    learning,

    /** Counts the outcome of a request, and has it reported to its provider, if that takes reports. */
    onEnded(request: OtpRequest): void {
      learning.recordEnd(request)
      const { id, provider } = request
      if (provider !== null && delivery.takesReports(provider)) outcomes.reportSoon(id)
    },
    listProviders: service.listProviders,
    findCountryRoute: service.findCountryRoute,
    currency: service.currency,
    listCircuits: service.listCircuits,
    listRefusals: service.listRefusals,

    /** Opens the providers and starts sending pending messages. */
    async start(settings: DeliverySettings): Promise<void> {
      await learning.start()
      await configure(settings)
      await resumeCircuits()
      // No other process has a message under way, so that a receipt without a message waits for none.
      if (node.isSole) while (await receipts.expireEarly(0, expiredBatch));
      await worker.start()
      sharing.start()
      outcomes.start()
    },

    /** Replaces providers and routes with validated settings; deliveries in progress finish with the old ones. */
    reload: configure,

    /**
     * Stops the worker and closes the providers.
     *
     * @param withinMs time for deliveries in progress; those that a provider may have received are recorded as uncertain
     */
    async stop(withinMs: number): Promise<void> {
      sharing.stop()
      await Promise.all([worker.stop(), outcomes.stop(), service.close(withinMs)])
      await circuitWrites
      sharing.wake()
      await sharing.running()
    },
  }
}

/** How soon counts of verified codes are stored, and how often nodes exchange them. */
const sharingMs = 3_000

/** Early receipts that one transaction deletes at the start. */
const expiredBatch = 100

/** The server itself, in the audit trail of the installation. */
const operator = { developerId: null, actorId: null, origin: serverOrigin }

/** A loopback public URL is reachable only by local gateways; a wildcard address by none. */
function canReach(publicUrl: string, isLocal: boolean): boolean {
  const { hostname } = new URL(publicUrl)
  if (hostname === '0.0.0.0' || hostname === '[::]') return false
  return isLocal || !isLoopback(hostname)
}
