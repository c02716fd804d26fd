import type { AccountStore } from './accounts.ts'
import type { AlertStore } from './alerts.ts'
import type { AnalyticsStore } from './analytics.ts'
import type { ApiTokenStore } from './api-tokens.ts'
import type { AuditStore } from './audit.ts'
import type { ApplicationStore } from './applications.ts'
import type { DeadlineStore } from './clock-rollback.ts'
import type { DeveloperStore } from './developers.ts'
import type { EarlyReceiptStore } from './early-receipts.ts'
import type { EventStore } from './events.ts'
import type { GuardStore } from './guard.ts'
import type { IdempotencyStore } from './idempotency.ts'
import type { OldIdentityStore } from './identities.ts'
import type { InboxStore } from './inbox.ts'
import type { BackfillStore } from './backfills.ts'
import type { ListRuleStore } from './list-rules.ts'
import type { LeaseStore } from './leases.ts'
import type { LoginAttemptStore } from './login-attempts.ts'
import type { MessageStore } from './messages.ts'
import type { ChangeStore, Operation } from './operation.ts'
import type { OtpSessionStore } from './otp-sessions.ts'
import type { OtpRequestStore } from './otp-requests.ts'
import type { CheckBudgetStore } from './check-budgets.ts'
import type { PageStore } from './pages.ts'
import type { PhoneStore } from './phones.ts'
import type { ProjectStore } from './projects.ts'
import type { RateLimitStore } from './rate-limits.ts'
import type { RefreshTokenStore } from './refresh-tokens.ts'
import type { ProviderCircuitStore } from './provider-circuits.ts'
import type { RelayedMessageStore } from './relayed-messages.ts'
import type { RetentionStore } from './retention.ts'
import type { RouteStatisticsStore } from './route-statistics.ts'
import type { SealingStore } from './sealing.ts'
import type { SetupTokenStore } from './setup-tokens.ts'
import type { SigningKeyStore } from './signing-keys.ts'
import type { TemplateStore } from './templates.ts'
import type { TotpSecretStore } from './totp-secrets.ts'
import type { WebhookDeliveryStore } from './webhook-deliveries.ts'
import type { WebhookEndpointStore } from './webhook-endpoints.ts'
import type { WebhookOutboxStore } from './webhook-outbox.ts'
import type { RowChanges } from '../model/due-worker.ts'
import type { WriteOptions } from '../model/write-options.ts'

/**
 * One store per noun, each in a file of its own with its queries and with the records that only storage and one
 * capability know. Reads work anywhere; writes only inside `Store.write`.
 */
export type Stores = {
  accounts: AccountStore
  alerts: AlertStore
  analytics: AnalyticsStore
  apiTokens: ApiTokenStore
  applications: ApplicationStore
  audit: AuditStore
  changes: ChangeStore
  checkBudgets: CheckBudgetStore
  deadlines: DeadlineStore
  developers: DeveloperStore
  earlyReceipts: EarlyReceiptStore
  events: EventStore
  guard: GuardStore
  idempotency: IdempotencyStore
  inbox: InboxStore
  backfills: BackfillStore
  leases: LeaseStore
  listRules: ListRuleStore
  loginAttempts: LoginAttemptStore
  oldIdentities: OldIdentityStore
  messages: MessageStore
  otpRequests: OtpRequestStore
  otpSessions: OtpSessionStore
  pages: PageStore
  phones: PhoneStore
  projects: ProjectStore
  rateLimits: RateLimitStore
  refreshTokens: RefreshTokenStore
  providerCircuits: ProviderCircuitStore
  relayedMessages: RelayedMessageStore
  retention: RetentionStore
  routeStatistics: RouteStatisticsStore
  sealing: SealingStore
  setupTokens: SetupTokenStore
  signingKeys: SigningKeyStore
  templates: TemplateStore
  totpSecrets: TotpSecretStore
  webhookDeliveries: WebhookDeliveryStore
  webhookEndpoints: WebhookEndpointStore
  webhookOutbox: WebhookOutboxStore
}

/**
 * The port to the database. `Names` are the stores that its user may touch, so that a signature such as
 * `Store<'audit' | 'projects'>` or `tx: Pick<Stores, 'events'>` says which tables a function works on.
 */
export type Store<Names extends keyof Stores = keyof Stores> = {
  /** Reads committed data. */
  readonly read: Pick<Stores, Names>

  /**
   * Resolves when all that `read` shows now is durable. Await it before what was read leaves the server for a reader that
   * keeps it, such as that of a stream.
   *
   * @throws the error of the disk
   */
  whenDurable(): Promise<void>

  /** Reports all commits that changed rows; undefined if other processes commit unnoticed (PostgreSQL). */
  readonly changes: RowChanges | undefined

  /**
   * Runs `body` in one transaction and resolves once it is durable. A throw rolls it back; a returned refusal is a
   * `Rejected` and commits.
   *
   * `body` must await only `tx`, and must be idempotent in memory: it may be retried before it commits.
   *
   * @throws UNAVAILABLE the database cannot be written right now
   */
  write<T>(body: (tx: Pick<Stores, Names>) => Promise<T>, options?: WriteOptions): Promise<T>

  /**
   * Runs an operation and resolves with its result once its changes are durable. Operations that run at the same time
   * share a transaction; each sees the changes of those before it.
   *
   * @throws UNAVAILABLE as `write`; what `decide` threw
   */
  decide<R>(operation: Operation<R>): Promise<R>
}
