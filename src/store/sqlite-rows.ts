import type { Awaitable } from '../domain/model/awaitable.ts'
import type { Clock } from '../domain/model/clock.ts'
import { GuardFault } from '../domain/model/guard.ts'
import type { Rows } from '../domain/store/operation.ts'
import type { Stores } from '../domain/store/store.ts'
import type { StoredRows } from './stored-rows.ts'

type Legacy = { hasBudgets: boolean; hasPseudonymRecords: boolean }

/** Creates the rows of SQLite, which are read when they are asked for. */
export function createSqliteRows(tx: Omit<Stores, 'changes'>, clock: Clock): StoredRows {
  /** Whether 0.1.0 left something. Read once, because nothing adds to it while calls are served. */
  let legacy: Legacy | undefined

  const readLegacy = (): Legacy =>
    (legacy ??= {
      hasBudgets: !atOnce(tx.checkBudgets.isEmpty()),
      hasPseudonymRecords: atOnce(tx.phones.hasPseudonymRecords()),
    })

  function readGuard(key: string) {
    try {
      return atOnce(tx.guard.row(key))
    } catch (error) {
      throw new GuardFault(error)
    }
  }

  const rows: Rows = {
    now: () => clock.now(),
    credentialState: ({ id, credentialsVersion, configurationVersion }) =>
      atOnce(tx.applications.lockAndCheckCredentials(id, credentialsVersion, configurationVersion)),
    caller: (application) => application,
    listRules: ({ developerId }) => atOnce(tx.listRules.current(developerId)),
    idempotencyRecord: (scope) => atOnce(tx.idempotency.find(scope)),
    session: (id) => atOnce(tx.otpSessions.find(id)),
    request: (id) => atOnce(tx.otpRequests.find(id)),
    relayed: (id) => atOnce(tx.relayedMessages.find(id)),
    messages: (requestId) => atOnce(tx.otpDeliveries.list(requestId)),
    phone: (hash, owned) => atOnce(tx.phones.load(hash, owned)),
    guard: { row: readGuard },
    usage: (limit) => atOnce(tx.rateLimits.usage(limit, clock.now())),
    subscribers: (appId) => atOnce(tx.webhookEndpoints.subscribers(appId)),
    subscribersOfDeveloper: (developerId) => atOnce(tx.webhookEndpoints.subscribersOfDeveloper(developerId)),
    virtualPhoneOwner: (phone) => atOnce(tx.developers.findVirtualPhoneOwner(phone)),
    hasPseudonymRecords: () => readLegacy().hasPseudonymRecords,
    oldBudgets: (find) => (readLegacy().hasBudgets ? atOnce(tx.checkBudgets.list(find())) : []),
  }
  return {
    rows,
    end(isCommitted) {
      // It may have been read from rows that are rolled back.
      if (!isCommitted) legacy = undefined
    },
  }
}

/** Takes a value that SQLite has at once. */
function atOnce<T>(value: Awaitable<T>): T {
  if (value instanceof Promise) throw new Error('a row of a decision is read later than at once')
  return value
}
