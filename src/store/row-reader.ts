import type { NewAdmission } from '../domain/model/rate-limit.ts'
import type { RowReader } from '../domain/store/operation.ts'
import type { Stores } from '../domain/store/store.ts'
import { andThen, type Awaitable } from '../domain/model/awaitable.ts'

/** Reads rows as the database has them, for the calls of one transaction. */
export type StoredRows = {
  rows: RowReader
  /** Reads what calls will need, before they are decided. */
  readAhead?(read: (rows: RowReader) => Awaitable<unknown>): Promise<void>
  /**
   * Keeps an admission for later calls of the transaction. Without it, admissions are written at once, and so are known
   * to them.
   */
  noteAdmission?(admission: NewAdmission): void
  /** Ends the calls of a transaction. */
  end(isCommitted: boolean): void
}

type Legacy = { hasBudgets: boolean; hasPseudonymSlots: boolean }

/** Creates the reader that reads one row at a time. */
export function createRowReader(tx: Omit<Stores, 'changes'>): StoredRows {
  /** Whether 0.1.0 left something. Read once, because nothing adds to it while calls are served. */
  let legacy: Legacy | undefined

  const getLegacy = (): Awaitable<Legacy> => legacy ?? readLegacy()

  async function readLegacy(): Promise<Legacy> {
    return (legacy = {
      hasBudgets: !(await tx.checkBudgets.isEmpty()),
      hasPseudonymSlots: await tx.phones.hasPseudonymSlots(),
    })
  }

  const rows: RowReader = {
    now: (clock) => clock.now(),
    credentialState: ({ id, credentialsVersion, epoch }) =>
      tx.applications.lockAndCheckCredentials(id, credentialsVersion, epoch),
    caller: (application) => application,
    listRules: ({ developerId }) => tx.listRules.current(developerId),
    idempotencyRecord: (scope) => tx.idempotency.find(scope),
    request: (id) => tx.otpRequests.lock(id),
    messages: (requestId) => tx.otpDeliveries.list(requestId),
    phone: (hash, ifMissing) => tx.phones.load(hash, ifMissing),
    guard: tx.guard,
    rateLimits: tx.rateLimits,
    subscribers: (appId) => tx.webhookEndpoints.subscribers(appId),
    subscribersOfDeveloper: (developerId) => tx.webhookEndpoints.subscribersOfDeveloper(developerId),
    hasPhone: (hash) => andThen(tx.phones.find(hash), (record) => record !== undefined),
    hasPseudonymSlots: () => andThen(getLegacy(), ({ hasPseudonymSlots }) => hasPseudonymSlots),
    hasCheckBudgets: (toPhoneHashes) =>
      andThen(getLegacy(), ({ hasBudgets }) => hasBudgets && tx.checkBudgets.exists(toPhoneHashes())),
    findVirtualPhoneOwner: async (phone) => (await tx.developers.findByVirtualPhone(phone))?.id,
  }
  return {
    rows,
    end(isCommitted) {
      // It may have been read from rows that are rolled back.
      if (!isCommitted) legacy = undefined
    },
  }
}
