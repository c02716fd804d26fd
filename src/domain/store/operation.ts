import type { CallingApplication } from '../model/application.ts'
import type { Clock } from '../model/clock.ts'
import type { IdempotencyScope } from '../model/idempotency.ts'
import type { ListRule } from '../model/list-rule.ts'
import type { NewLogEntry } from '../model/log-entry.ts'
import type { DeliveryTry } from '../model/delivery.ts'
import type { Message } from '../model/message.ts'
import type { PhoneRecord } from '../model/phone-record.ts'
import type { NewAdmission } from '../model/rate-limit.ts'
import type { OtpRequest } from '../model/request.ts'
import type { BreakdownChanges, BreakdownKey, CountChanges } from './analytics.ts'
import type { CredentialState } from './applications.ts'
import type { GuardChanges, GuardRows } from './guard.ts'
import type { IdempotencyRecord } from './idempotency.ts'
import type { LoadedPhone, PhoneSlot } from './phones.ts'
import type { RateLimitStore } from './rate-limits.ts'
import type { Awaitable } from '../model/awaitable.ts'

/**
 * A change of an OTP request, in two halves. `read` loads the facts, and on PostgreSQL locks their rows; it decides
 * nothing. `decide` is synchronous and pure but for new ids: it turns the facts into a result and changes by
 * the rules. Calls that run at the same time share one transaction, and each sees the changes of those before
 * it. Either half may run again before the commit.
 */
export type Operation<Facts, Result> = {
  read(rows: RowReader): Awaitable<Facts>
  decide(facts: Facts): Decision<Result>
}

/** Result of a call, and the changes that it makes. A refusal is a result (`Rejected`), with or without changes. */
export type Decision<Result> = { result: Result; changes: readonly Change[] }

/**
 * Reads the rows that operations decide on, as the calls before in the same transaction leave them. On PostgreSQL a row
 * is locked until the transaction ends. Lock order: the order of these methods.
 */
export type RowReader = {
  /** Tells the time of the call. On PostgreSQL it is the database's, read when the rows were locked. */
  now(clock: Clock): number
  /** Checks the credentials of a caller again, which may have been replaced since it was authenticated. */
  credentialState(application: CallingApplication): Awaitable<CredentialState>
  /** Returns the caller with its plan and settings as they are now, if they can have changed unnoticed. */
  caller(application: CallingApplication): Awaitable<CallingApplication>
  /** Returns the rules of the developer of an application, as they are now. Not locked. */
  listRules(application: Pick<CallingApplication, 'id' | 'developerId'>): Awaitable<readonly ListRule[]>
  idempotencyRecord(scope: IdempotencyScope): Awaitable<IdempotencyRecord | undefined>
  request(id: string): Awaitable<OtpRequest | undefined>
  /** Messages of one request, oldest first. */
  messages(requestId: string): Awaitable<readonly Message[]>
  /** @param ifMissing returned if there is no record */
  phone(hash: string, ifMissing: PhoneRecord): Awaitable<LoadedPhone>
  readonly guard: GuardRows

  // Read without a lock.
  readonly rateLimits: Pick<RateLimitStore, 'newest' | 'oldestAfter'>
  /** The endpoints of an application, or of all applications of a developer, in the order of their ids. */
  subscribers(appId: string): Awaitable<readonly Subscriber[]>
  subscribersOfDeveloper(developerId: string): Awaitable<readonly Subscriber[]>
  hasPhone(hash: string): Awaitable<boolean>
  /** See `PhoneStore` and `CheckBudgetStore`. */
  hasPseudonymSlots(): Awaitable<boolean>
  hasCheckBudgets(toPhoneHashes: () => readonly string[]): Awaitable<boolean>
  findVirtualPhoneOwner(phone: string): Awaitable<string | undefined>
}

/** A webhook endpoint, enabled or disabled. */
export type Subscriber = { id: string; events: readonly string[] }

/** A log entry to append, with what refers to its number. */
export type NewEvent = {
  entry: NewLogEntry
  /** Webhook deliveries, and the body that they send. */
  deliveries: ReadonlyArray<{ id: string; endpointId: string }>
  toPayload(id: string): string
  /** The message in a developer's inbox. `requestVisible`: see `InboxMessage`. */
  inbox?: { developerId: string; requestVisible: number } | undefined
}

/** One change of a decision: the whole new state of a row, a row to add, or an amount to add to a counter. */
export type Change =
  | { kind: 'request'; request: OtpRequest; isNew: boolean }
  | { kind: 'message'; message: Message; isNew: boolean }
  | { kind: 'phone'; slot: PhoneSlot; record: PhoneRecord }
  | { kind: 'guard'; changes: GuardChanges }
  | { kind: 'idempotency'; scope: IdempotencyScope; answer: string; at: number }
  | { kind: 'admission'; admission: NewAdmission }
  | { kind: 'counts'; developerId: string; day: number; counts: CountChanges }
  | { kind: 'breakdown'; key: BreakdownKey; counts: BreakdownChanges }
  | { kind: 'event'; event: NewEvent }
  /** Goes into the history of a request that the operation has read. */
  | { kind: 'try'; requestId: string; attempt: DeliveryTry }

/** Writes the changes of a decision inside an ordinary transaction. */
export type ChangeStore = { apply(changes: readonly Change[]): Promise<void> }
