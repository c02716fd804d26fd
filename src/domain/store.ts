import type { AccountStore } from './accounts.ts'
import type { AnalyticsStore } from './analytics.ts'
import type { AuditStore } from './audit.ts'
import type { ApplicationStore } from './applications.ts'
import type { DeadlineStore } from './deadlines.ts'
import type { DeveloperStore } from './developers.ts'
import type { EventStore } from './events.ts'
import type { GuardStore } from './guard-counts.ts'
import type { IdempotencyStore } from './idempotency.ts'
import type { IdentityStore } from './identities.ts'
import type { InboxStore } from './inbox.ts'
import type { LoginAttemptStore } from './login-attempts.ts'
import type { OtpDeliveryStore } from './otp-deliveries.ts'
import type { OtpRequestStore } from './otp-requests.ts'
import type { CheckBudgetStore } from './phone-budgets.ts'
import type { ProjectStore } from './projects.ts'
import type { RateLimitStore } from './rate-limit.ts'
import type { RefreshTokenStore } from './refresh-tokens.ts'
import type { RestingProviderStore } from './resting-providers.ts'
import type { RetentionStore } from './retention-store.ts'
import type { SetupTokenStore } from './setup-tokens.ts'
import type { SigningKeyStore } from './signing-keys.ts'
import type { WebhookDeliveryStore } from './webhook-deliveries.ts'
import type { WebhookEndpointStore } from './webhook-endpoints.ts'
import type { WebhookQueueStore } from './webhook-queue.ts'
import type { WindowStore } from './windows.ts'

/** One store a noun. The finders work anywhere; what writes works only inside `Store.write`. */
export type Stores = {
  accounts: AccountStore
  analytics: AnalyticsStore
  applications: ApplicationStore
  audit: AuditStore
  checkBudgets: CheckBudgetStore
  deadlines: DeadlineStore
  developers: DeveloperStore
  events: EventStore
  guard: GuardStore
  idempotency: IdempotencyStore
  identities: IdentityStore
  inbox: InboxStore
  loginAttempts: LoginAttemptStore
  otpDeliveries: OtpDeliveryStore
  otpRequests: OtpRequestStore
  projects: ProjectStore
  rateLimits: RateLimitStore
  refreshTokens: RefreshTokenStore
  restingProviders: RestingProviderStore
  retention: RetentionStore
  setupTokens: SetupTokenStore
  signingKeys: SigningKeyStore
  webhookDeliveries: WebhookDeliveryStore
  webhookEndpoints: WebhookEndpointStore
  webhookQueue: WebhookQueueStore
  windows: WindowStore
}

/** Everything that otpd remembers. */
export type Store = {
  /** Reads what is committed. */
  readonly read: Stores

  /**
   * Runs `body` in one transaction and resolves once it is durable. A throw undoes all of it.
   *
   * The body awaits nothing but the stores that it is given, and may be run more than once until it is.
   *
   * @throws UNAVAILABLE the database cannot be written to right now
   */
  write<T>(body: (tx: Stores) => Promise<T>): Promise<T>
}
