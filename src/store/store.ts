import type { Clock } from '../domain/model/clock.ts'
import type { Keys } from '../domain/model/keys.ts'
import { createSealing, type UnreadableValue } from './engine/sealing.ts'
import type { Change, Operation } from '../domain/store/operation.ts'
import type { Store, Stores } from '../domain/store/store.ts'
import type { DeliveryQueue, LeasedDelivery } from '../domain/store/webhook-outbox.ts'
import { createAccountStore } from './accounts.ts'
import { createAlertStore } from './alerts.ts'
import { createAnalyticsStore } from './analytics.ts'
import { createApiTokenStore } from './api-tokens.ts'
import { createApplicationStore } from './applications.ts'
import { createAuditChains, type AuditChains } from './audit-chains.ts'
import { createAuditStore } from './audit.ts'
import type { CallGroup, QueryExecutor, Database } from './engine/database.ts'
import { createDeadlineStore } from './clock-rollback.ts'
import { createDeveloperStore } from './developers.ts'
import { createEarlyReceiptStore } from './early-receipts.ts'
import { createEventStore } from './events.ts'
import { createGuardStore } from './guard.ts'
import { createIdempotencyStore } from './idempotency.ts'
import { createOldIdentityStore } from './identities.ts'
import { createInboxStore } from './inbox.ts'
import { createBackfillStore } from './backfills.ts'
import { createLeaseStore } from './leases.ts'
import { createListRuleStore, type RuleCache } from './list-rules.ts'
import { createLoginAttemptStore } from './login-attempts.ts'
import { createOtpDeliveryStore } from './otp-deliveries.ts'
import { createOtpRequestStore } from './otp-requests.ts'
import { createOtpSessionStore } from './otp-sessions.ts'
import { createPageStore } from './pages.ts'
import { createCheckBudgetStore } from './check-budgets.ts'
import { createPhoneStore } from './phones.ts'
import { createCalls } from './operation-calls.ts'
import { createUnitOfWork, type UnitStores } from './unit-of-work.ts'
import { createProjectStore } from './projects.ts'
import { createRateLimitStore } from './rate-limits.ts'
import { createLoadQueries } from './postgres-queries.ts'
import { createPostgresRows } from './postgres-rows.ts'
import { createSqliteRows } from './sqlite-rows.ts'
import { createRefreshTokenStore } from './refresh-tokens.ts'
import { createProviderCircuitStore } from './provider-circuits.ts'
import { createRelayedMessageStore } from './relayed-messages.ts'
import { createRetentionStore } from './retention.ts'
import { createRouteStatisticsStore } from './route-statistics.ts'
import { createSetupTokenStore } from './setup-tokens.ts'
import { createSigningKeyStore } from './signing-keys.ts'
import { createTemplateStore } from './templates.ts'
import { createTotpSecretStore } from './totp-secrets.ts'
import { createWebhookDeliveryStore } from './webhook-deliveries.ts'
import { createWebhookEndpointStore } from './webhook-endpoints.ts'
import type { OutboxNeeds } from './webhook-insertion.ts'
import { createWebhookOutboxStore } from './webhook-outbox.ts'
import { createSealingStore } from './sealing.ts'

/**
 * Creates the domain's store on SQLite or PostgreSQL.
 *
 * @param needs.keys authenticate the heads of the audit chains, and encrypt the sealed columns
 * @param needs.clock time of operations and leases; that of the machine by default. A clock that has `follow` is set by the
 *   database's
 * @param needs.onUnreadable called for each value read that cannot be decrypted
 * @param needs.onDelivery called once a transaction that left webhook deliveries to send is on disk
 * @param needs.deliveryQueue takes the webhook deliveries that it leased, once they are on disk
 * @param needs.onEvent called once a transaction that wrote log entries or ended sessions or API tokens is on disk, once
 *   per developer
 */
export function createStore(database: Database, needs: StoreNeeds): Store {
  const {
    keys,
    clock = database.world,
    deliveryQueue,
    onDelivery = () => {},
    onEvent = () => {},
    onUnreadable,
  } = needs
  const sealing = createSealing(keys, database.world.random, onUnreadable)
  const ruleCache: RuleCache = new Map()
  // Stores and their prepared statements are created once per connection.
  const bound = new WeakMap<QueryExecutor, Bound>()
  const boundTo = (executor: QueryExecutor): Bound => {
    let own = bound.get(executor)
    if (!own) bound.set(executor, (own = bind(executor)))
    return own
  }

  function bind(executor: QueryExecutor): Bound {
    let notices = createNotices()
    const addDeveloper = (developerId: string) => void notices.developers.add(developerId)
    const markDelivery = () => void (notices.hasDelivery = true)
    const outbox: OutboxNeeds = {
      offerLease: (now, use) => deliveryQueue?.offerLease(now, use),
      onDelivery: markDelivery,
      onLeased: (delivery) => void notices.leased.push(delivery),
    }
    const chains = createAuditChains(database, executor, keys)
    const inbox = createInboxStore(database, executor, sealing)
    const webhookOutbox = createWebhookOutboxStore(database, executor, sealing, outbox)
    const appending = { inbox, webhookOutbox, onEvent: addDeveloper }
    const tables: UnitStores = {
      accounts: createAccountStore(database, executor),
      alerts: createAlertStore(database, executor),
      analytics: createAnalyticsStore(database, executor),
      apiTokens: createApiTokenStore(database, executor, addDeveloper),
      applications: createApplicationStore(database, executor, sealing),
      audit: createAuditStore(database, executor, chains),
      checkBudgets: createCheckBudgetStore(database, executor),
      deadlines: createDeadlineStore(database, executor, sealing),
      developers: createDeveloperStore(database, executor),
      earlyReceipts: createEarlyReceiptStore(database, executor),
      events: createEventStore(database, executor, sealing, appending),
      guard: createGuardStore(database, executor),
      idempotency: createIdempotencyStore(database, executor, sealing),
      inbox,
      backfills: createBackfillStore(database, executor),
      leases: createLeaseStore(database, executor, needs.clock),
      listRules: createListRuleStore(database, executor, sealing, ruleCache),
      loginAttempts: createLoginAttemptStore(database, executor),
      oldIdentities: createOldIdentityStore(database, executor),
      otpDeliveries: createOtpDeliveryStore(database, executor, sealing),
      otpRequests: createOtpRequestStore(database, executor, sealing),
      otpSessions: createOtpSessionStore(database, executor, sealing),
      pages: createPageStore(database, executor),
      phones: createPhoneStore(database, executor, sealing),
      projects: createProjectStore(database, executor),
      rateLimits: createRateLimitStore(database, executor),
      refreshTokens: createRefreshTokenStore(database, executor, addDeveloper),
      providerCircuits: createProviderCircuitStore(database, executor),
      relayedMessages: createRelayedMessageStore(database, executor, sealing),
      retention: createRetentionStore(database, executor, sealing),
      routeStatistics: createRouteStatisticsStore(database, executor),
      sealing: createSealingStore(database, executor, sealing, keys),
      setupTokens: createSetupTokenStore(database, executor),
      signingKeys: createSigningKeyStore(database, executor),
      templates: createTemplateStore(database, executor),
      totpSecrets: createTotpSecretStore(database, executor),
      webhookDeliveries: createWebhookDeliveryStore(database, executor, sealing, markDelivery),
      webhookEndpoints: createWebhookEndpointStore(database, executor, sealing, markDelivery),
      webhookOutbox,
    }
    const stored = database.postgres
      ? createPostgresRows(createLoadQueries(database, executor, sealing), tables, clock)
      : createSqliteRows(tables, clock)
    const unit = createUnitOfWork(stored, tables)
    const changes = {
      async apply(list: readonly Change[]) {
        try {
          unit.add(list)
          await unit.write()
        } finally {
          // On SQLite the next transaction uses the same unit, also if this one fails.
          unit.clear()
        }
      },
    }
    /** Takes the notices of a body, or of the calls of a transaction, to give them once it is on disk. */
    function takeNotices(): () => void {
      const taken = notices
      notices = createNotices()
      return () => notify(taken)
    }
    /** A body that threw has left them. */
    const forgetLeased = () => void (notices.leased = [])
    const calls = createCalls(database.world, unit, stored, { takeNotices, forgetLeased })
    return { stores: { ...tables, changes }, calls, chains, takeNotices, forgetLeased }
  }

  function notify({ hasDelivery, leased, developers }: Notices) {
    if (leased.length > 0) deliveryQueue?.push(leased)
    if (hasDelivery) onDelivery()
    for (const id of developers) onEvent(id)
  }

  const decideInGroup = database.group((tx) => boundTo(tx).calls)

  return {
    read: database.postgres
      ? convertingErrors(boundTo(database.read).stores, database.convertError)
      : boundTo(database.read).stores,

    async write(body) {
      let giveNotices: (() => void) | undefined
      const result = await database.write(async (executor) => {
        const { stores, chains, takeNotices, forgetLeased } = boundTo(executor)
        // A body that threw has left its entries.
        chains.discard()
        forgetLeased()
        const value = await body(stores)
        await chains.flush()
        giveNotices = takeNotices()
        return value
      })
      giveNotices?.()
      return result
    },

    whenDurable: () => database.whenDurable(),

    changes: database.changes,

    // Operations of all types are run by the same code; R is that of this one.
    decide: <R>(operation: Operation<R>) => decideInGroup<R>(operation),
  }
}

/** Wraps stores so that the errors of a server that is away reach callers as those of a transaction do. */
function convertingErrors(stores: Stores, convertError: (error: unknown) => unknown): Stores {
  type Method = (...args: unknown[]) => unknown
  const wrapMethod =
    (method: Method): Method =>
    (...args) => {
      const result = method(...args)
      return result instanceof Promise ? result.catch((error) => Promise.reject(convertError(error))) : result
    }
  /** A store may have stores in it. */
  const wrap = (members: object): object =>
    Object.fromEntries(
      Object.entries(members).map(([name, member]: [string, Method | object]) => [
        name,
        typeof member === 'function' ? wrapMethod(member as Method) : wrap(member),
      ]),
    )
  // Each method keeps its type.
  return wrap(stores) as Stores
}

/** Everything that is created once per connection or transaction. */
type Bound = {
  stores: Stores
  calls: CallGroup<Operation<unknown>>
  chains: AuditChains
  takeNotices(): () => void
  forgetLeased(): void
}

/** Notices to give once a transaction is on disk. */
type Notices = {
  hasDelivery: boolean
  developers: Set<string>
  /** Deliveries that were leased when they were inserted. */
  leased: LeasedDelivery[]
}

const createNotices = (): Notices => ({ hasDelivery: false, developers: new Set(), leased: [] })

export type StoreNeeds = {
  keys: Pick<Keys, 'audit' | 'seals' | 'webhookHeader'>
  clock?: Clock
  deliveryQueue?: DeliveryQueue
  onDelivery?(): void
  onEvent?(developerId: string): void
  onUnreadable?(value: UnreadableValue): void
}
