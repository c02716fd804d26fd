import type { Store, Stores } from '../domain/store/store.ts'
import { createAccountStore } from './accounts.ts'
import { createAnalyticsStore } from './analytics.ts'
import { createApplicationStore } from './applications.ts'
import { createAuditStore } from './audit.ts'
import type { Builders, Database } from './engine/database.ts'
import { createDeadlineStore } from './clock-rollback.ts'
import { createDeveloperStore } from './developers.ts'
import { createEventStore } from './events.ts'
import { createGuardStore } from './guard.ts'
import { createIdempotencyStore } from './idempotency.ts'
import { createIdentityStore } from './identities.ts'
import { createInboxStore } from './inbox.ts'
import { createLoginAttemptStore } from './login-attempts.ts'
import { createOtpDeliveryStore } from './otp-deliveries.ts'
import { createOtpRequestStore } from './otp-requests.ts'
import { createCheckBudgetStore } from './phone-budgets.ts'
import { createProjectStore } from './projects.ts'
import { createRateLimitStore } from './rate-limits.ts'
import { createRefreshTokenStore } from './refresh-tokens.ts'
import { createRestingProviderStore } from './provider-circuits.ts'
import { createRetentionStore } from './retention.ts'
import { createSetupTokenStore } from './setup-tokens.ts'
import { createSigningKeyStore } from './signing-keys.ts'
import { createWebhookDeliveryStore } from './webhook-deliveries.ts'
import { createWebhookEndpointStore } from './webhook-endpoints.ts'
import { createWebhookQueueStore } from './webhook-queue.ts'
import { createWindowStore } from './scan-limit.ts'

/**
 * The domain's store on one of the two databases.
 *
 * @param on.onDelivery told once a transaction has ended that left webhook deliveries to be sent
 * @param on.onEvent told once a transaction has ended that wrote log entries of this developer
 */
export function createStore(database: Database, on: StoreListeners = {}): Store {
  const { onDelivery = () => {}, onEvent = () => {} } = on
  // SQLite has one writing connection, so that its stores and their prepared statements are made once; PostgreSQL
  // hands out a connection for each transaction.
  const bound = new WeakMap<Builders, Stores>()
  const withDeliveries = new WeakSet<Builders>()
  const withEvents = new WeakMap<Builders, Set<string>>()
  const storesOn = (on: Builders): Stores => {
    let stores = bound.get(on)
    if (stores) return stores
    const noteEvent = (developerId: string) => {
      const developers = withEvents.get(on)
      if (developers) developers.add(developerId)
      else withEvents.set(on, new Set([developerId]))
    }
    stores = bindStores(database, on, () => void withDeliveries.add(on), noteEvent)
    bound.set(on, stores)
    return stores
  }
  return {
    read: storesOn(database.read),
    async write(body) {
      let ended: Builders | undefined
      const result = await database.write((tx) => {
        ended = tx
        return body(storesOn(tx))
      })
      // The writes of a batch share one commit on SQLite: the first that hears of it tells for all.
      if (!ended) return result
      if (withDeliveries.delete(ended)) onDelivery()
      const developers = withEvents.get(ended)
      withEvents.delete(ended)
      for (const id of developers ?? []) onEvent(id)
      return result
    },
  }
}

export type StoreListeners = { onDelivery?(): void; onEvent?(developerId: string): void }

function bindStores(
  database: Database,
  on: Builders,
  onDelivery: () => void,
  onEvent: (developerId: string) => void,
): Stores {
  return {
    accounts: createAccountStore(database, on),
    analytics: createAnalyticsStore(database, on),
    applications: createApplicationStore(database, on),
    audit: createAuditStore(database, on),
    checkBudgets: createCheckBudgetStore(database, on),
    deadlines: createDeadlineStore(database, on),
    developers: createDeveloperStore(database, on),
    events: createEventStore(database, on, onEvent),
    guard: createGuardStore(database, on),
    idempotency: createIdempotencyStore(database, on),
    identities: createIdentityStore(database, on),
    inbox: createInboxStore(database, on),
    loginAttempts: createLoginAttemptStore(database, on),
    otpDeliveries: createOtpDeliveryStore(database, on),
    otpRequests: createOtpRequestStore(database, on),
    projects: createProjectStore(database, on),
    rateLimits: createRateLimitStore(database, on),
    refreshTokens: createRefreshTokenStore(database, on),
    restingProviders: createRestingProviderStore(database, on),
    retention: createRetentionStore(database, on),
    setupTokens: createSetupTokenStore(database, on),
    signingKeys: createSigningKeyStore(database, on),
    webhookDeliveries: createWebhookDeliveryStore(database, on, onDelivery),
    webhookEndpoints: createWebhookEndpointStore(database, on, onDelivery),
    webhookQueue: createWebhookQueueStore(database, on, onDelivery),
    windows: createWindowStore(database, on),
  }
}
