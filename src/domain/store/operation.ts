import type { CallingApplication } from '../model/application.ts'
import type { IdempotencyScope } from '../model/idempotency.ts'
import type { ListRule } from '../model/list-rule.ts'
import type { NewLogEntry } from '../model/log-entry.ts'
import type { DeliveryTry } from '../model/delivery.ts'
import type { Message } from '../model/message.ts'
import type { RelayedMessage } from '../model/relayed-message.ts'
import type { OtpSession } from '../model/session.ts'
import type { CheckBudget, LocatedPhone, PhoneRecord } from '../model/phone-record.ts'
import type { NewAdmission, RateLimit, StoredPolicy, Usage } from '../model/rate-limit.ts'
import type { OtpRequest } from '../model/request.ts'
import type { BreakdownChanges, BreakdownKey, CountChanges } from './analytics.ts'
import type { CredentialState } from './applications.ts'
import type { GuardChanges, GuardRows } from './guard.ts'
import type { IdempotencyRecord } from './idempotency.ts'
import type { OldBudgets } from './check-budgets.ts'
import type { LoadedPhone, PhoneHandle } from './phones.ts'

/**
 * A call that reads rows, decides, and changes rows (a unit of work). Calls that run at the same time share one transaction,
 * and each sees the changes of those before it. All of it may run again before the commit.
 */
export type Operation<Result> = {
  /**
   * Decides by the rules. Synchronous, and pure but for new ids, challenges and reports of faults. What it throws fails this
   * call alone.
   */
  decide(rows: Rows): Decision<Result>
  preload: Preload
}

/**
 * Names the rows that a decision will read. PostgreSQL alone uses it: it reads and locks the rows of all calls of a
 * transaction together, before any of them decides. SQLite reads each row when the decision asks for it. A call that needs
 * other rows by then, because a call before it in the transaction changed some, runs again in the next transaction.
 */
export type Preload = {
  /** Names rows that lead to the others. They are read first, without a lock. Called until all that it names is read. */
  lookUp?: ((rows: Rows) => LookUp) | undefined
  /** Names the rows that follow from the call itself and from the look-up. */
  first(rows: Rows): NamedRows
  /** Names rows that follow from those. Called when all that is named so far is there, until it names no more. */
  next?: ((rows: Rows) => NamedRows | undefined) | undefined
}

/** Result of a call, and the changes that it makes. A refusal is a result (`Rejected`), with or without changes. */
export type Decision<Result> = { result: Result; changes: readonly Change[] }

/** Keys of rows, as data, for PostgreSQL. */
export type NamedRows = {
  application?: Pick<CallingApplication, 'id' | 'developerId'>
  answers?: readonly IdempotencyScope[]
  /** Id of a session of the ready page. */
  session?: string | undefined
  request?: string | undefined
  /** Ids of the requests that they belong to. */
  messages?: readonly string[]
  /** Hash of a phone. */
  phone?: string | undefined
  /** Keys of rows of the guard. */
  guard?: readonly string[] | undefined
  limit?: RateLimit<StoredPolicy>
  /** Id of an application. */
  subscribers?: string | undefined
  /** Id of a developer. */
  subscribersOfDeveloper?: string | undefined
  virtualPhone?: string | undefined
  /** Id of a message with the code of another system. */
  relayed?: string | undefined
  /** Other hashes under which the phone may have a record. */
  otherPhones?: readonly string[]
  /** Returns the budgets that 0.1.0 may have kept of the phone. Not called where none are left. */
  oldBudgets?: () => OldBudgets
}

/** Hashes of phones, and ids of requests, for PostgreSQL. */
export type LookUp = { phones: readonly string[]; requests: readonly string[] }

/**
 * The rows that operations decide on, as the calls before in the same transaction leave them. On PostgreSQL they are those
 * that were named; most of them are locked until the transaction ends, in the order of these methods, which
 * `postgres-rows.ts` and the writes of `unit-of-work.ts` follow.
 */
export type Rows = {
  /** Tells the time of the call. On PostgreSQL it is the database's, read when the rows were locked. */
  now(): number
  /** Checks the credentials of a caller again, which may have been replaced since it was authenticated. */
  credentialState(application: CallingApplication): CredentialState
  /** Returns the caller with its plan and settings as they are now, if they can have changed unnoticed. */
  caller(application: CallingApplication): CallingApplication
  /** Returns the rules of the developer of an application, as they are now. Not locked. */
  listRules(application: Pick<CallingApplication, 'id' | 'developerId'>): readonly ListRule[]
  session(id: string): OtpSession | undefined
  request(id: string): OtpRequest | undefined
  /** Messages of one request, oldest first. */
  messages(requestId: string): readonly Message[]
  relayed(id: string): RelayedMessage | undefined
  /** @param owned of the empty record that is returned if there is none */
  phone(hash: string, owned: LocatedPhone): LoadedPhone
  readonly guard: GuardRows

  // Read without a lock.
  /** Earlier calls with the same key hold the lock of the application until their answer is there. */
  idempotencyRecord(scope: IdempotencyScope): IdempotencyRecord | undefined
  usage(limit: RateLimit<StoredPolicy>): Usage
  /** The endpoints of an application, or of all applications of a developer, in the order of their ids. */
  subscribers(appId: string): readonly EventSubscriber[]
  subscribersOfDeveloper(developerId: string): readonly EventSubscriber[]
  virtualPhoneOwner(phone: string): string | undefined
  /** See `PhoneStore`. */
  hasPseudonymRecords(): boolean
  /** Returns the budgets that 0.1.0 kept of a phone. Almost always none are left, and the function is not called. */
  oldBudgets(find: () => OldBudgets): readonly CheckBudget[]
}

/** A webhook endpoint, and the types of events that it gets, or that are skipped while it is disabled. */
export type EventSubscriber = { id: string; events: readonly string[] }

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
  | { kind: 'session'; session: OtpSession; isNew: boolean }
  | { kind: 'request'; request: OtpRequest; isNew: boolean }
  | { kind: 'message'; message: Message; isNew: boolean }
  | { kind: 'relayed'; message: RelayedMessage; isNew: boolean }
  | { kind: 'phone'; handle: PhoneHandle; record: PhoneRecord }
  | { kind: 'guard'; changes: GuardChanges }
  | { kind: 'idempotency'; scope: IdempotencyScope; answer: string; at: number }
  | { kind: 'admission'; admission: NewAdmission }
  | { kind: 'counts'; developerId: string; day: number; counts: CountChanges }
  | { kind: 'breakdown'; key: BreakdownKey; counts: BreakdownChanges }
  | { kind: 'event'; event: NewEvent }
  /** Goes into the history of a request that the operation has read. */
  | { kind: 'try'; requestId: string; tried: DeliveryTry }

/** Writes the changes of a decision inside an ordinary transaction. */
export type ChangeStore = { apply(changes: readonly Change[]): Promise<void> }
