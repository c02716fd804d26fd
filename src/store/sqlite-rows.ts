import { asc, eq, sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Clock } from '../domain/model/clock.ts'
import { GuardFault } from '../domain/model/guard.ts'
import { missingPhone } from '../domain/model/phone-record.ts'
import type { Rows } from '../domain/store/operation.ts'
import { developerColumns, toCredentialState } from './applications.ts'
import { selectAnyBudget, selectOldBudgets, toBudgetValues } from './check-budgets.ts'
import type { Connection } from './engine/connection.ts'
import type { SqliteParts } from './engine/database.ts'
import { prepareFindSync } from './engine/on-table.ts'
import type { Sealing } from './engine/sealing.ts'
import { openAnswer } from './idempotency.ts'
import { openRules } from './list-rules.ts'
import { toMessage } from './messages.ts'
import { toOtpRequest } from './otp-request-rows.ts'
import { toSession } from './otp-sessions.ts'
import { createPhoneLookup, toLoadedPhone } from './phone-rows.ts'
import { pseudonymRecords } from './phones.ts'
import { toRelayedMessage } from './relayed-messages.ts'
import { prepareRemembered } from './remember.ts'
import type { StoredRows } from './stored-rows.ts'
import { parseSubscriber, selectSubscribers } from './webhook-endpoints.ts'

/** Creates the rows of SQLite, which are read, without promises, when they are asked for. */
export function createSqliteRows(connection: Connection, sqlite: SqliteParts, clock: Clock): StoredRows {
  const { database, executor, sealing } = connection
  const { tables } = database
  const { applications, guardRules, messages, webhookEndpoints: endpoints } = tables
  const p = sql.placeholder

  const { id, status, credentialsVersion } = applications
  const { developerStatus } = developerColumns(tables)
  const findCredentials = sqlite.prepare(() =>
    executor
      .select({ status, credentialsVersion, developerStatus })
      .from(applications)
      .where(eq(id, p('id'))),
  )
  const findAnswer = prepareFindSync(connection, sqlite, tables.idempotencyKeys, 'caller', 'route', 'key')
  const findSession = prepareFindSync(connection, sqlite, tables.otpSessions, 'id')
  const findRequest = prepareFindSync(connection, sqlite, tables.otpRequests, 'id')
  const findRelayed = prepareFindSync(connection, sqlite, tables.relayedMessages, 'id')
  const findOwner = prepareFindSync(connection, sqlite, tables.developers, 'virtualPhone')
  const findMeta = prepareFindSync(connection, sqlite, tables.meta, 'name')
  const listMessages = sqlite.prepare(() =>
    executor
      .select()
      .from(messages)
      .where(eq(messages.requestId, p('requestId')))
      .orderBy(asc(messages.messageNumber)),
  )
  const listOldBudgets = sqlite.prepare(() => selectOldBudgets(connection))
  const findAnyBudget = sqlite.prepare(() => selectAnyBudget(connection))
  const phones = createPhoneLookup(connection, sqlite)

  const selectRules = () =>
    executor
      .select()
      .from(guardRules)
      .where(eq(guardRules.developerId, p('id')))
  const rules = prepareRemembered(connection, sqlite, selectRules, ([row], id) => openRules(sealing, id, row))
  const subscribersOf = (owner: SQLiteColumn) => {
    const select = () => selectSubscribers(connection, owner)
    return prepareRemembered(connection, sqlite, select, (rows) => rows.map(parseSubscriber))
  }

  // Whether 0.1.0 left something. Read once, because nothing adds to it while calls are served.
  let hasOldBudgets: boolean | undefined
  let hasPseudonymRecords: boolean | undefined

  const open = <Row, T>(toValue: (sealing: Sealing, row: Row) => T, row: Row | undefined) =>
    row === undefined ? undefined : toValue(sealing, row)

  const rows: Rows = {
    now: () => clock.now(),
    credentialState({ id, credentialsVersion, configurationVersion }) {
      // Nothing that authentication reads has changed since.
      if (configurationVersion !== undefined && configurationVersion === sqlite.configuration.current())
        return 'ok'
      return toCredentialState(findCredentials({ id })[0], credentialsVersion)
    },
    caller: (application) => application,
    listRules: ({ developerId }) => rules(developerId),
    idempotencyRecord(scope) {
      const row = findAnswer(scope)
      return row && openAnswer(sealing, scope, row)
    },
    session: (id) => open(toSession, findSession({ id })),
    request: (id) => open(toOtpRequest, findRequest({ id })),
    relayed: (id) => open(toRelayedMessage, findRelayed({ id })),
    messages: (requestId) => listMessages({ requestId }).map(toMessage),
    phone: (hash, owned) => open(toLoadedPhone, phones.find(hash)) ?? missingPhone(hash, owned),
    guard: {
      row(key) {
        try {
          return sqlite.guardRows?.get(key)
        } catch (error) {
          throw new GuardFault(error)
        }
      },
    },
    usage: (limit) => sqlite.admissions.usage(limit, clock.now()),
    subscribers: subscribersOf(endpoints.appId),
    subscribersOfDeveloper: subscribersOf(endpoints.developerId),
    virtualPhoneOwner: (virtualPhone) => findOwner({ virtualPhone })?.id,
    hasPseudonymRecords: () => (hasPseudonymRecords ??= findMeta({ name: pseudonymRecords }) !== undefined),
    oldBudgets(find) {
      hasOldBudgets ??= findAnyBudget().length > 0
      return hasOldBudgets ? listOldBudgets(toBudgetValues(find())) : []
    },
  }
  return {
    rows,
    end(isCommitted) {
      // They may have been read from rows that are rolled back.
      if (!isCommitted) hasOldBudgets = hasPseudonymRecords = undefined
    },
  }
}
