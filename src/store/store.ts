import type { Clock } from '../domain/model/clock.ts'
import type { Keys } from '../domain/model/keys.ts'
import { createSealing, type UnreadableValue } from './engine/sealing.ts'
import type { Store, Stores } from '../domain/store/store.ts'
import type { DeliveryQueue, LeasedDelivery } from '../domain/store/webhook-outbox.ts'
import { createAccountStore } from './accounts.ts'
import { createAlertStore } from './alerts.ts'
import { createAnalyticsStore } from './analytics.ts'
import { createApiTokenStore } from './api-tokens.ts'
import { createApplicationStore } from './applications.ts'
import { createAuditChains, type AuditChains } from './audit-chains.ts'
import { createAuditStore } from './audit.ts'
import type { Connection } from './engine/connection.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
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
import { createMessageStore } from './messages.ts'
import { createOtpRequestStore } from './otp-requests.ts'
import { createOtpSessionStore } from './otp-sessions.ts'
import { createPageStore } from './pages.ts'
import { createCheckBudgetStore } from './check-budgets.ts'
import { createPhoneStore } from './phones.ts'
import { createUnitOfWork, type UnitOfWork, type UnitStores } from './unit-of-work.ts'
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
    const connection: Connection = { database, executor, sealing }
    let notices = createNotices()
    const addDeveloper = (developerId: string) => void notices.developers.add(developerId)
    const markDelivery = () => void (notices.hasDelivery = true)
    const outbox: OutboxNeeds = {
      offerLease: (now, use) => deliveryQueue?.offerLease(now, use),
      onDelivery: markDelivery,
      onLeased: (delivery) => void notices.leased.push(delivery),
    }
    const chains = createAuditChains(connection, keys)
    const inbox = createInboxStore(connection)
    const webhookOutbox = createWebhookOutboxStore(connection, outbox)
    const appending = { inbox, webhookOutbox, onEvent: addDeveloper }
    const tables: UnitStores = {
      accounts: createAccountStore(connection),
      alerts: createAlertStore(connection),
      analytics: createAnalyticsStore(connection),
      apiTokens: createApiTokenStore(connection, addDeveloper),
      applications: createApplicationStore(connection),
      audit: createAuditStore(connection, chains),
      checkBudgets: createCheckBudgetStore(connection),
      deadlines: createDeadlineStore(connection),
      developers: createDeveloperStore(connection),
      earlyReceipts: createEarlyReceiptStore(connection),
      events: createEventStore(connection, appending),
      guard: createGuardStore(connection),
      idempotency: createIdempotencyStore(connection),
      inbox,
      backfills: createBackfillStore(connection),
      leases: createLeaseStore(connection, needs.clock),
      listRules: createListRuleStore(connection),
      loginAttempts: createLoginAttemptStore(connection),
      oldIdentities: createOldIdentityStore(connection),
      messages: createMessageStore(connection),
      otpRequests: createOtpRequestStore(connection),
      otpSessions: createOtpSessionStore(connection),
      pages: createPageStore(connection),
      phones: createPhoneStore(connection),
      projects: createProjectStore(connection),
      rateLimits: createRateLimitStore(connection),
      refreshTokens: createRefreshTokenStore(connection, addDeveloper),
      providerCircuits: createProviderCircuitStore(connection),
      relayedMessages: createRelayedMessageStore(connection),
      retention: createRetentionStore(connection),
      routeStatistics: createRouteStatisticsStore(connection),
      sealing: createSealingStore(connection, keys),
      setupTokens: createSetupTokenStore(connection),
      signingKeys: createSigningKeyStore(connection),
      templates: createTemplateStore(connection),
      totpSecrets: createTotpSecretStore(connection),
      webhookDeliveries: createWebhookDeliveryStore(connection, markDelivery),
      webhookEndpoints: createWebhookEndpointStore(connection, markDelivery),
      webhookOutbox,
    }
    const stored = database.postgres
      ? createPostgresRows(createLoadQueries(connection, ruleCache), tables, clock)
      : createSqliteRows(connection, database.sqlite, clock)
    /** Takes the notices of a body, or of the calls of a transaction, to give them once it is on disk. */
    function takeNotices(): () => void {
      const taken = notices
      notices = createNotices()
      return () => notify(taken)
    }
    const calls = createUnitOfWork(database.world, stored, tables, takeNotices)
    return { stores: { ...tables, changes: calls }, calls, chains, takeNotices }
  }

  function notify({ hasDelivery, leased, developers }: Notices) {
    if (leased.length > 0) deliveryQueue?.push(leased)
    if (hasDelivery) onDelivery()
    for (const id of developers) onEvent(id)
  }

  return {
    read: database.postgres
      ? convertingErrors(boundTo(database.read).stores, database.convertError)
      : boundTo(database.read).stores,

    async write(body, options) {
      let giveNotices: (() => void) | undefined
      const result = await database.write(async (executor) => {
        const { stores, chains, takeNotices } = boundTo(executor)
        // A body that threw has left its entries and notices.
        chains.discard()
        takeNotices()
        const value = await body(stores)
        await chains.flush()
        giveNotices = takeNotices()
        return value
      }, options)
      giveNotices?.()
      return result
    },

    whenDurable: () => database.whenDurable(),

    changes: database.changes,

    decide: database.group((tx) => boundTo(tx).calls),
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
  calls: UnitOfWork
  chains: AuditChains
  takeNotices(): () => void
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
