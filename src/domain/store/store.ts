import type { AccountStore } from '../accounts/accounts.ts'
import type { AnalyticsStore } from '../log/analytics.ts'
import type { AuditStore } from '../accounts/audit.ts'
import type { ApplicationStore } from '../apps/applications.ts'
import type { DeadlineStore } from '../upkeep/clock-rollback.ts'
import type { DeveloperStore } from '../accounts/developers.ts'
import type { EventStore } from '../log/events.ts'
import type { GuardStore } from '../guard/counts.ts'
import type { IdempotencyStore } from '../limits/idempotency.ts'
import type { IdentityStore } from '../otp/identities.ts'
import type { InboxStore } from '../otp/inbox.ts'
import type { LoginAttemptStore } from '../accounts/login-attempts.ts'
import type { OtpDeliveryStore } from '../model/message.ts'
import type { OtpRequestStore } from '../model/request.ts'
import type { CheckBudgetStore } from '../limits/phone-budgets.ts'
import type { ProjectStore } from '../apps/projects.ts'
import type { RateLimitStore } from '../limits/rate-limit.ts'
import type { RefreshTokenStore } from '../accounts/refresh-tokens.ts'
import type { ProviderCircuitStore } from '../otp/provider-circuits.ts'
import type { RetentionStore } from '../upkeep/retention-store.ts'
import type { SetupTokenStore } from '../accounts/setup-tokens.ts'
import type { SigningKeyStore } from '../accounts/signing-keys.ts'
import type { WebhookDeliveryStore } from '../webhooks/delivery.ts'
import type { WebhookEndpointStore } from '../webhooks/endpoints.ts'
import type { WebhookOutboxStore } from '../webhooks/outbox.ts'
import type { ScanLimitStore } from '../model/scan-limit.ts'

/** One store per noun. Reads work anywhere; writes only inside `Store.write`. */
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
  providerCircuits: ProviderCircuitStore
  retention: RetentionStore
  setupTokens: SetupTokenStore
  signingKeys: SigningKeyStore
  webhookDeliveries: WebhookDeliveryStore
  webhookEndpoints: WebhookEndpointStore
  webhookOutbox: WebhookOutboxStore
  scanLimits: ScanLimitStore
}

/** The port to the database. */
export type Store = {
  /** Reads committed data. */
  readonly read: Stores

  /**
   * Runs `body` in one transaction and resolves once it is durable. A throw rolls it back; a returned refusal is a
   * `Rejected` and commits.
   *
   * `body` must await only `tx`, and must be idempotent in memory: it may be retried before it commits.
   *
   * @throws UNAVAILABLE the database cannot be written right now
   */
  write<T>(body: (tx: Stores) => Promise<T>): Promise<T>
}
