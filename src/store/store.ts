import type { Clock } from '../domain/model/clock.ts'
import type { Keys } from '../domain/model/keys.ts'
import { createSealing, type Sealing, type UnreadableValue } from './engine/sealing.ts'
import type { Change, Operation } from '../domain/store/operation.ts'
import type { Store, Stores } from '../domain/store/store.ts'
import type { DeliveryQueue, LeasedDelivery } from '../domain/store/webhook-outbox.ts'
import { createAccountStore } from './accounts.ts'
import { createAnalyticsStore } from './analytics.ts'
import { createApiTokenStore } from './api-tokens.ts'
import { createApplicationStore } from './applications.ts'
import { createAuditChains, type AuditChains } from './audit-chains.ts'
import { createAuditStore } from './audit.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { createDeadlineStore } from './clock-rollback.ts'
import { createDeveloperStore } from './developers.ts'
import { createEarlyReceiptStore } from './early-receipts.ts'
import { createEventStore } from './events.ts'
import { createGuardStore } from './guard.ts'
import { createIdempotencyStore } from './idempotency.ts'
import { createOldIdentityStore } from './identities.ts'
import { createInboxStore } from './inbox.ts'
import { createKeyWalkStore } from './key-walks.ts'
import { createLeaseStore } from './leases.ts'
import { createLoginAttemptStore } from './login-attempts.ts'
import { createOtpDeliveryStore } from './otp-deliveries.ts'
import { createOtpRequestStore } from './otp-requests.ts'
import { createCheckBudgetStore } from './check-budgets.ts'
import { createPhoneStore } from './phones.ts'
import { createOverlay, type OverlaidStores, type Overlay } from './overlay.ts'
import { createProjectStore } from './projects.ts'
import { createRateLimitStore } from './rate-limits.ts'
import { createRefreshTokenStore } from './refresh-tokens.ts'
import { createProviderCircuitStore } from './provider-circuits.ts'
import { createRetentionStore } from './retention.ts'
import { createSetupTokenStore } from './setup-tokens.ts'
import { createSigningKeyStore } from './signing-keys.ts'
import { createTotpSecretStore } from './totp-secrets.ts'
import { createWebhookDeliveryStore } from './webhook-deliveries.ts'
import { createWebhookEndpointStore } from './webhook-endpoints.ts'
import { createWebhookOutboxStore, type OutboxNeeds } from './webhook-outbox.ts'
import { createSealingStore } from './sealing.ts'

/**
 * Creates the domain's store on SQLite or PostgreSQL.
 *
 * @param needs.keys authenticate the heads of the audit chains, and encrypt the sealed columns
 * @param needs.clock time of transactions on SQLite, and in tests; PostgreSQL has its own
 * @param needs.onUnreadable called for each value read that cannot be decrypted
 * @param needs.onDelivery called after the commit of a transaction that left webhook deliveries to send
 * @param needs.deliveryQueue takes the webhook deliveries that it leased, after their commit
 * @param needs.onEvent called after the commit of a transaction that wrote log entries or ended sessions or API
 *   tokens, once per developer
 */
export function createStore(database: Database, needs: StoreNeeds): Store {
  const { keys, clock, deliveryQueue, onDelivery = () => {}, onEvent = () => {}, onUnreadable } = needs
  const sealing = createSealing(keys, (bytes) => crypto.getRandomValues(bytes), onUnreadable)
  // SQLite has one writing connection, so its stores and their prepared statements are created once; PostgreSQL uses a
  // connection per transaction.
  const bound = new WeakMap<QueryExecutor, Bound>()
  const boundTo = (executor: QueryExecutor): Bound => {
    let own = bound.get(executor)
    if (!own) bound.set(executor, (own = bind(executor)))
    return own
  }

  function bind(executor: QueryExecutor): Bound {
    const pending: Pending = { hasDelivery: false, developers: new Set(), leased: [], leasedByCalls: [] }
    const noteEvent = (developerId: string) => void pending.developers.add(developerId)
    const noteDelivery = () => void (pending.hasDelivery = true)
    const outbox: OutboxNeeds = {
      offerLease: (now) => deliveryQueue?.offerLease(now),
      onDelivery: noteDelivery,
      onLeased: (delivery) => void pending.leased.push(delivery),
    }
    const chains = createAuditChains(database, executor, keys)
    const tables = bindStores(database, executor, {
      chains,
      clock,
      keys,
      sealing,
      noteDelivery,
      noteEvent,
      outbox,
    })
    const overlay = createOverlay(tables)
    const changes = {
      async apply(list: readonly Change[]) {
        try {
          await overlay.add(list)
          await overlay.write()
        } finally {
          // On SQLite the next transaction uses the same overlay, also if this one fails.
          overlay.clear(false)
        }
      },
    }
    return { stores: { ...tables, changes }, overlay, chains, pending }
  }

  /** Notifies about what a transaction wrote. On SQLite the first write of a batch to resume does so for all of them. */
  function notify({ pending }: Bound) {
    const { hasDelivery, leasedByCalls } = pending
    // All but the first of a batch: clearing an empty set would take 5 % of a call.
    if (!hasDelivery && leasedByCalls.length === 0 && pending.developers.size === 0) return
    const developers = [...pending.developers]
    pending.hasDelivery = false
    pending.developers.clear()
    pending.leasedByCalls = []
    if (leasedByCalls.length > 0) deliveryQueue?.push(leasedByCalls)
    if (hasDelivery) onDelivery()
    for (const id of developers) onEvent(id)
  }

  type Call = { operation: Operation<unknown, unknown>; tx?: QueryExecutor }
  const decideInGroup = database.group<Call>({
    async decide(tx, call) {
      call.tx = tx
      const { rows, add } = boundTo(tx).overlay
      const facts = await call.operation.read(rows)
      const { result, changes } = call.operation.decide(facts)
      await add(changes)
      return result
    },
    hasChanges: (tx) => boundTo(tx).overlay.hasChanges(),
    async write(tx) {
      const { overlay, pending } = boundTo(tx)
      pending.leased = []
      await overlay.write()
      pending.leasedByCalls = pending.leased
    },
    end(tx, isCommitted) {
      const { overlay, pending } = boundTo(tx)
      overlay.clear(isCommitted)
      if (!isCommitted) pending.leasedByCalls = []
    },
  })

  return {
    read: boundTo(database.read).stores,

    async write(body) {
      let tx: QueryExecutor | undefined
      let leased: LeasedDelivery[] = []
      const result = await database.write(async (executor) => {
        tx = executor
        const { stores, chains, pending } = boundTo(executor)
        // On SQLite a body that threw has left its entries.
        chains.discard()
        pending.leased = []
        const value = await body(stores)
        await chains.flush()
        leased = pending.leased
        return value
      })
      if (leased.length > 0) deliveryQueue?.push(leased)
      if (tx) notify(boundTo(tx))
      return result
    },

    async decide<F, R>(operation: Operation<F, R>) {
      // Operations of all types are run by the same code; F and R are those of this one.
      const call: Call = { operation: operation as Operation<unknown, unknown> }
      const result = await decideInGroup<R>(call)
      if (call.tx) notify(boundTo(call.tx))
      return result
    },
  }
}

/** Everything that is created once per connection or transaction. */
type Bound = {
  stores: Stores
  overlay: Overlay
  chains: AuditChains
  /** Notifications to send after the commit. */
  pending: Pending
}

type Pending = {
  hasDelivery: boolean
  developers: Set<string>
  /** Deliveries leased by the body or the calls that run now; those of a body that is rolled back are dropped. */
  leased: LeasedDelivery[]
  /** Deliveries leased by the calls of the transaction that commits. */
  leasedByCalls: LeasedDelivery[]
}

export type StoreNeeds = {
  keys: Pick<Keys, 'audit' | 'seals' | 'webhookHeader'>
  clock?: Clock
  deliveryQueue?: DeliveryQueue
  onDelivery?(): void
  onEvent?(developerId: string): void
  onUnreadable?(value: UnreadableValue): void
}

function bindStores(
  database: Database,
  executor: QueryExecutor,
  {
    chains,
    clock,
    keys,
    sealing,
    noteDelivery,
    noteEvent,
    outbox,
  }: {
    chains: AuditChains
    clock: Clock | undefined
    keys: StoreNeeds['keys']
    sealing: Sealing
    noteDelivery(): void
    noteEvent(developerId: string): void
    outbox: OutboxNeeds
  },
): OverlaidStores {
  return {
    accounts: createAccountStore(database, executor),
    analytics: createAnalyticsStore(database, executor),
    apiTokens: createApiTokenStore(database, executor, noteEvent),
    applications: createApplicationStore(database, executor, sealing),
    audit: createAuditStore(database, executor, chains),
    checkBudgets: createCheckBudgetStore(database, executor),
    deadlines: createDeadlineStore(database, executor, sealing),
    developers: createDeveloperStore(database, executor),
    earlyReceipts: createEarlyReceiptStore(database, executor),
    events: createEventStore(database, executor, sealing, noteEvent),
    guard: createGuardStore(database, executor),
    idempotency: createIdempotencyStore(database, executor, sealing),
    inbox: createInboxStore(database, executor, sealing),
    keyWalks: createKeyWalkStore(database, executor),
    leases: createLeaseStore(database, executor, clock),
    loginAttempts: createLoginAttemptStore(database, executor),
    oldIdentities: createOldIdentityStore(database, executor),
    otpDeliveries: createOtpDeliveryStore(database, executor, sealing),
    otpRequests: createOtpRequestStore(database, executor, sealing),
    phones: createPhoneStore(database, executor, sealing),
    projects: createProjectStore(database, executor),
    rateLimits: createRateLimitStore(database, executor),
    refreshTokens: createRefreshTokenStore(database, executor, noteEvent),
    providerCircuits: createProviderCircuitStore(database, executor),
    retention: createRetentionStore(database, executor, sealing),
    sealing: createSealingStore(database, executor, sealing, keys),
    setupTokens: createSetupTokenStore(database, executor),
    signingKeys: createSigningKeyStore(database, executor),
    totpSecrets: createTotpSecretStore(database, executor),
    webhookDeliveries: createWebhookDeliveryStore(database, executor, sealing, noteDelivery),
    webhookEndpoints: createWebhookEndpointStore(database, executor, sealing, noteDelivery),
    webhookOutbox: createWebhookOutboxStore(database, executor, sealing, outbox),
  }
}
