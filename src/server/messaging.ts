import { randomUUID } from 'node:crypto'
import type { Report } from '../delivery/dispatcher.ts'
import type { ProviderKind } from '../delivery/kit/provider-kinds.ts'
import { createRouter } from '../delivery/router.ts'
import { createDeliveryWorker } from '../delivery/worker.ts'
import { callbackPath, isCallbackToken } from '../domain/otp/callback-tokens.ts'
import { createDeliveryAttempts } from '../domain/otp/delivery-attempts.ts'
import { createDeliveryReceipts, createEarlyReceipts } from '../domain/otp/delivery-receipts.ts'
import type { DeliverySettings } from '../domain/model/delivery.ts'
import type { NewId } from '../domain/model/ids.ts'
import type { Keys } from '../domain/model/keys.ts'
import type { MessageTemplates } from '../domain/model/message-settings.ts'
import type { OtpRequest } from '../domain/model/request.ts'
import type { Clock } from '../domain/model/clock.ts'
import type { Store } from '../domain/store/store.ts'
import type { ReceiveCallback } from '../http/routes/callbacks.ts'

export type MessagingNeeds = {
  store: Store
  clock: Clock
  /** What providers' clocks show; the same clock if left out. */
  wall?: Clock | undefined
  newId: NewId
  keys: Keys
  version: string
  templates: MessageTemplates
  /** Where clients reach this server. */
  publicUrl: () => string
  /** Told of a request that failed because no message of it can arrive. Never rejects. */
  onUndeliverable(request: OtpRequest): Promise<void>
  report?: Report | undefined
  onDispatched?: ((provider: string, outcome: string, tookMs: number) => void) | undefined
  /** In place of every kind that there is. */
  kinds?: readonly ProviderKind[] | undefined
  /** Certificates to trust instead of the system's, in PEM. */
  ca?: string | undefined
  /** How long an attempt may take in all. */
  attemptMs?: number | undefined
  /** How often to look for messages that have become due. */
  pollMs?: number | undefined
}

export type Messaging = ReturnType<typeof createMessaging>

/** All that carries messages to phones and hears of them: providers, routes, attempts, receipts, the worker. */
export function createMessaging(needs: MessagingNeeds) {
  const { store, clock, newId, keys, version, templates, publicUrl, report = () => {}, kinds, ca } = needs
  const { attemptMs, pollMs } = needs
  const earlyReceipts = createEarlyReceipts(clock)
  const onError = (error: unknown) => report('error', 'a message could not be handled', { error })

  const router = createRouter({
    clock,
    wall: needs.wall,
    version,
    templates,
    report,
    onDispatched: needs.onDispatched,
    attemptMs,
    ...(kinds && { kinds }),
    ...(ca !== undefined && { ca }),
    callbackUrl: ({ name, isLocal }) =>
      canReach(publicUrl(), isLocal) ? `${publicUrl()}${callbackPath(keys, name)}` : null,
    onReceipt: (name, receipt) => void receipts.receive(name, [receipt]).catch(onError),
    onCircuitChange: (name, openState) => {
      const circuit = openState && {
        name,
        failure: openState.failure.class,
        openUntil: openState.openUntilMs,
      }
      store
        .write((tx) => (circuit ? tx.providerCircuits.put(circuit) : tx.providerCircuits.remove(name)))
        .catch(onError)
    },
  })
  const { delivery } = router
  const attempts = createDeliveryAttempts({
    store,
    clock,
    newId,
    keys,
    delivery,
    owner: randomUUID(),
    earlyReceipts,
    onError,
    onUndeliverable: needs.onUndeliverable,
  })
  const worker = createDeliveryWorker({ attempts, ownsAllLeases: true, onError, pollMs })
  const receipts = createDeliveryReceipts({
    store,
    clock,
    newId,
    delivery,
    earlyReceipts,
    onReopened: worker.wake,
  })

  const receiveCallback: ReceiveCallback = async ({ provider, token, search, ...call }) => {
    if (!isCallbackToken(keys, provider, token)) return { kind: 'unknown' }
    const url = `${publicUrl()}${callbackPath(keys, provider)}${search}`
    const result = await router.readCallback(provider, { ...call, url })
    if (!result) return { kind: 'unknown' }
    if (result.kind === 'receipts') {
      await receipts.receive(provider, result.receipts)
      return { kind: 'received' }
    }
    if (result.kind !== 'challenge') report('warn', `callback ${result.kind}`, { provider })
    return result
  }

  return {
    delivery,
    attempts,
    receiveCallback,
    sendDue: worker.sendDue,

    /** Opens the providers and sends what waits. */
    async start(settings: DeliverySettings): Promise<void> {
      await store.write((tx) => tx.providerCircuits.clear())
      await router.configure(settings)
      await worker.start()
    },

    /** Takes new settings, which have been checked. */
    reload: router.configure,

    /** @param withinMs for what is under way; what may have been handed over by then is noted as such */
    async stop(withinMs: number): Promise<void> {
      await Promise.all([worker.stop(), router.close(withinMs)])
    },
  }
}

/** Addresses of this machine are of use to gateways on this machine alone, and "every address" to nobody. */
function canReach(publicUrl: string, isLocal: boolean): boolean {
  const { hostname } = new URL(publicUrl)
  if (hostname === '0.0.0.0' || hostname === '[::]') return false
  return isLocal || !/^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(hostname)
}
