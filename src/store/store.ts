import type { Keys } from '../domain/model/keys.ts'
import { createSealing, type Sealing, type UnreadableValue } from './engine/sealing.ts'
import type { Store, Stores } from '../domain/store/store.ts'
import { createAccountStore } from './accounts.ts'
import { createAnalyticsStore } from './analytics.ts'
import { createApiTokenStore } from './api-tokens.ts'
import { createApplicationStore } from './applications.ts'
import { createAuditChains, type AuditChains } from './audit-chains.ts'
import { createAuditStore } from './audit.ts'
import type { QueryExecutor, Database } from './engine/database.ts'
import { createDeadlineStore } from './clock-rollback.ts'
import { createDeveloperStore } from './developers.ts'
import { createEventStore } from './events.ts'
import { createGuardStore } from './guard.ts'
import { createIdempotencyStore } from './idempotency.ts'
import { createOldIdentityStore } from './identities.ts'
import { createInboxStore } from './inbox.ts'
import { createKeyWalkStore } from './key-walks.ts'
import { createLoginAttemptStore } from './login-attempts.ts'
import { createOtpDeliveryStore } from './otp-deliveries.ts'
import { createOtpRequestStore } from './otp-requests.ts'
import { createCheckBudgetStore } from './check-budgets.ts'
import { createPhoneStore } from './phones.ts'
import { createProjectStore } from './projects.ts'
import { createRateLimitStore } from './rate-limits.ts'
import { createReadinessStore } from './readiness.ts'
import { createRefreshTokenStore } from './refresh-tokens.ts'
import { createProviderCircuitStore } from './provider-circuits.ts'
import { createRetentionStore } from './retention.ts'
import { createSetupTokenStore } from './setup-tokens.ts'
import { createSigningKeyStore } from './signing-keys.ts'
import { createTotpSecretStore } from './totp-secrets.ts'
import { createWebhookDeliveryStore } from './webhook-deliveries.ts'
import { createWebhookEndpointStore } from './webhook-endpoints.ts'
import { createWebhookOutboxStore } from './webhook-outbox.ts'
import { createSealingStore } from './sealing.ts'
import { createScanLimitStore } from './scan-limit.ts'

/**
 * Creates the domain's store on SQLite or PostgreSQL.
 *
 * @param needs.keys authenticate the heads of the audit chains, and encrypt the sealed columns
 * @param needs.onUnreadable called for each value read that cannot be decrypted
 * @param needs.onDelivery called after the commit of a transaction that left webhook deliveries to send
 * @param needs.onEvent called after the commit of a transaction that wrote log entries or ended sessions or API
 *   tokens, once per developer
 */
export function createStore(database: Database, needs: StoreNeeds): Store {
  const { keys, onDelivery = () => {}, onEvent = () => {}, onUnreadable } = needs
  const sealing = createSealing(keys, (bytes) => crypto.getRandomValues(bytes), onUnreadable)
  // SQLite has one writing connection, so its stores and their prepared statements are created once; PostgreSQL uses a
  // connection per transaction.
  const storesByExecutor = new WeakMap<QueryExecutor, Stores>()
  const chainsByExecutor = new WeakMap<QueryExecutor, AuditChains>()
  const executorsWithDeliveries = new WeakSet<QueryExecutor>()
  const developersByExecutor = new WeakMap<QueryExecutor, Set<string>>()
  const chainsFor = (executor: QueryExecutor): AuditChains => {
    let chains = chainsByExecutor.get(executor)
    if (!chains) chainsByExecutor.set(executor, (chains = createAuditChains(database, executor, keys)))
    return chains
  }
  const storesFor = (executor: QueryExecutor): Stores => {
    let stores = storesByExecutor.get(executor)
    if (stores) return stores
    const noteEvent = (developerId: string) => {
      const developers = developersByExecutor.get(executor)
      if (developers) developers.add(developerId)
      else developersByExecutor.set(executor, new Set([developerId]))
    }
    const noteDelivery = () => void executorsWithDeliveries.add(executor)
    const chains = chainsFor(executor)
    stores = bindStores(database, executor, { chains, keys, sealing, noteDelivery, noteEvent })
    storesByExecutor.set(executor, stores)
    return stores
  }
  return {
    read: storesFor(database.read),
    async write(body) {
      let committedExecutor: QueryExecutor | undefined
      const result = await database.write(async (tx) => {
        committedExecutor = tx
        const chains = chainsFor(tx)
        // On SQLite a body that threw has left its entries.
        chains.discard()
        const value = await body(storesFor(tx))
        await chains.flush()
        return value
      })
      // On SQLite the writes of a batch share one commit; the first to resume notifies for all of them.
      if (!committedExecutor) return result
      if (executorsWithDeliveries.delete(committedExecutor)) onDelivery()
      const developers = developersByExecutor.get(committedExecutor)
      developersByExecutor.delete(committedExecutor)
      for (const id of developers ?? []) onEvent(id)
      return result
    },
  }
}

export type StoreNeeds = {
  keys: Pick<Keys, 'audit' | 'seals' | 'webhookHeader'>
  onDelivery?(): void
  onEvent?(developerId: string): void
  onUnreadable?(value: UnreadableValue): void
}

function bindStores(
  database: Database,
  executor: QueryExecutor,
  {
    chains,
    keys,
    sealing,
    noteDelivery,
    noteEvent,
  }: {
    chains: AuditChains
    keys: StoreNeeds['keys']
    sealing: Sealing
    noteDelivery(): void
    noteEvent(developerId: string): void
  },
): Stores {
  return {
    accounts: createAccountStore(database, executor),
    analytics: createAnalyticsStore(database, executor),
    apiTokens: createApiTokenStore(database, executor, noteEvent),
    applications: createApplicationStore(database, executor, sealing),
    audit: createAuditStore(database, executor, chains),
    checkBudgets: createCheckBudgetStore(database, executor),
    deadlines: createDeadlineStore(database, executor, sealing),
    developers: createDeveloperStore(database, executor),
    events: createEventStore(database, executor, sealing, noteEvent),
    guard: createGuardStore(database, executor),
    idempotency: createIdempotencyStore(database, executor, sealing),
    inbox: createInboxStore(database, executor, sealing),
    keyWalks: createKeyWalkStore(database, executor),
    loginAttempts: createLoginAttemptStore(database, executor),
    oldIdentities: createOldIdentityStore(database, executor),
    otpDeliveries: createOtpDeliveryStore(database, executor, sealing),
    otpRequests: createOtpRequestStore(database, executor, sealing),
    phones: createPhoneStore(database, executor, sealing),
    projects: createProjectStore(database, executor),
    rateLimits: createRateLimitStore(database, executor),
    readiness: createReadinessStore(database, executor),
    refreshTokens: createRefreshTokenStore(database, executor, noteEvent),
    providerCircuits: createProviderCircuitStore(database, executor),
    retention: createRetentionStore(database, executor, sealing),
    sealing: createSealingStore(database, executor, sealing, keys),
    setupTokens: createSetupTokenStore(database, executor),
    signingKeys: createSigningKeyStore(database, executor),
    totpSecrets: createTotpSecretStore(database, executor),
    webhookDeliveries: createWebhookDeliveryStore(database, executor, sealing, noteDelivery),
    webhookEndpoints: createWebhookEndpointStore(database, executor, sealing, noteDelivery),
    webhookOutbox: createWebhookOutboxStore(database, executor, sealing, noteDelivery),
    scanLimits: createScanLimitStore(database, executor),
  }
}
