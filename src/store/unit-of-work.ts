import type { Message } from '../domain/model/message.ts'
import type { RelayedMessage } from '../domain/model/relayed-message.ts'
import type { LoadedPhone, PhoneHandle } from '../domain/store/phones.ts'
import { GuardFault } from '../domain/model/guard.ts'
import type { NewAdmission } from '../domain/model/rate-limit.ts'
import type { OtpRequest } from '../domain/model/request.ts'
import type { OtpSession } from '../domain/model/session.ts'
import { attemptsMax } from '../domain/model/code.ts'
import { formatTry } from '../domain/model/try-lines.ts'
import { formatEntry } from '../domain/model/request-history.ts'
import type { Change, ChangeStore, NewEvent, Operation, Rows } from '../domain/store/operation.ts'
import type { GuardChanges } from '../domain/store/guard.ts'
import type { Stores } from '../domain/store/store.ts'
import type { World } from '../world/world.ts'
import { addCounts, breakdownRow } from './breakdown.ts'
import type { StoredRows } from './stored-rows.ts'
import type { CallGroup } from './engine/database.ts'
import { type ChangedRows, compareKeys, createChangedRows, valuesInKeyOrder } from './engine/key-order.ts'
import { idempotencyRow } from './idempotency.ts'
import { mergeGuardChanges } from './guard.ts'

type ChangeOf<Kind extends Change['kind']> = Extract<Change, { kind: Kind }>

/** Stores that operations read and write. */
export type UnitStores = Omit<Stores, 'changes'>

export type UnitOfWork = CallGroup<Operation<unknown>> & ChangeStore

/**
 * Creates the unit of work of a connection: the changes that the calls of a transaction decided on, by the keys of their
 * rows. Calls read through it, so that each sees the changes of those before, and `write` brings it to the database, table
 * by table, each row once and in the order of keys, so that few pages are written.
 *
 * @param stored reads rows as they were before these changes
 * @param tx writes within the transaction
 * @param takeNotices see `CallGroup.end`
 */
export function createUnitOfWork(
  world: Pick<World, 'onBroken'>,
  stored: StoredRows,
  tx: UnitStores,
  takeNotices: () => () => void,
): UnitOfWork {
  const containers: Array<{ clear(): void }> = []
  /** Has `clear` empty a container. */
  function cleared<C extends { clear(): void }>(container: C): C {
    containers.push(container)
    return container
  }
  const requests = cleared(createChangedRows<OtpRequest>())
  /** Requests that were read, as they are stored. */
  const readRequests = cleared(new Map<string, OtpRequest>())
  const messages = cleared(new Map<string, ChangedRows<Message>>())
  const phones = cleared(new Map<string, ChangeOf<'phone'>>())
  /** Records that were read, and that have a row. */
  const readPhones = cleared(new Map<string, LoadedPhone>())
  const answers = cleared(new Map<string, ChangeOf<'idempotency'>>())
  const counts = cleared(new Map<string, ChangeOf<'counts'>>())
  const breakdown = cleared(new Map<string, ChangeOf<'breakdown'>>())
  const guard: GuardChanges = { rows: cleared(new Map()), decisions: cleared(new Map()) }
  const relayed = cleared(createChangedRows<RelayedMessage>())
  const sessions = cleared(createChangedRows<OtpSession>())
  let events: NewEvent[] = []
  let tries: Array<ChangeOf<'try'>> = []
  /** On PostgreSQL. */
  let admissions: NewAdmission[] = []
  /** Set while a call runs again because the rows of the guard could not be read or written. */
  let guardFault: GuardFault | undefined
  /** Asked on PostgreSQL, where a transaction without changes is not committed. */
  let hasChanges = false
  const rows: Rows = {
    ...stored.rows,

    idempotencyRecord(scope) {
      const own = answers.get(idempotencyRow(scope))
      if (own) return { bodyHash: own.scope.bodyHash, answer: own.answer, createdAt: own.at }
      return stored.rows.idempotencyRecord(scope)
    },

    request(id) {
      const own = requests.get(id)
      if (own) return own
      const request = readRequests.get(id) ?? stored.rows.request(id)
      if (request) readRequests.set(id, request)
      return request
    },

    messages(requestId) {
      const own = messages.get(requestId)
      const others = requests.isNew(requestId) ? [] : stored.rows.messages(requestId)
      if (!own) return others
      const unchanged = others.filter(({ messageNumber }) => !own.get(messageNumber))
      const { added, updated } = own.lists()
      return [...unchanged, ...added, ...updated].toSorted((a, b) => a.messageNumber - b.messageNumber)
    },

    session: (id) => sessions.get(id) ?? stored.rows.session(id),

    relayed: (id) => relayed.get(id) ?? stored.rows.relayed(id),

    phone(hash, owned) {
      const own = phones.get(hash)
      if (own) return { ...own.handle, record: own.record, isNew: false }
      const phone = readPhones.get(hash) ?? stored.rows.phone(hash, owned)
      if (!phone.isNew) readPhones.set(hash, phone)
      return phone
    },

    guard: {
      row: (key) => guard.rows.get(key) ?? stored.rows.guard.row(key),
      get fault() {
        return guardFault
      },
    },
  }

  /** Adds the changes of a decision. @throws RowNotNamedError on PostgreSQL; then none is added */
  function add(changes: readonly Change[]): void {
    if (stored.requireLocked)
      for (const id of changes.map(writtenRequest))
        if (id !== null && readRequests.has(id) && !requests.get(id)) stored.requireLocked(id)
    if (changes.length > 0) hasChanges = true
    // Before all others, because on SQLite these can fail: a call that fails must leave nothing.
    for (const change of changes) if (change.kind === 'admission') addAdmission(change.admission)
    for (const change of changes) if (change.kind !== 'admission') addOther(change)
  }

  function addAdmission(admission: NewAdmission): void {
    if (!stored.keepAdmission) return tx.rateLimits.insert([admission])
    stored.keepAdmission(admission)
    admissions.push(admission)
  }

  function addOther(change: Exclude<Change, ChangeOf<'admission'>>): unknown {
    switch (change.kind) {
      case 'request':
        if (change.request.attempts > attemptsMax) world.onBroken('attempts_within_limit', change.request.id)
        return requests.set(change.request.id, withoutTrace(change.request), change.isNew)
      case 'message':
        return addMessage(change.message, change.isNew)
      case 'session':
        return sessions.set(change.session.id, change.session, change.isNew)
      case 'relayed':
        return relayed.set(change.message.id, change.message, change.isNew)
      case 'phone':
        return phones.set(change.handle.hash, change)
      case 'guard':
        return mergeGuardChanges(guard, change.changes)
      case 'idempotency':
        return answers.set(idempotencyRow(change.scope), change)
      case 'counts':
        return addCounts(counts, `${change.day} ${change.developerId}`, change)
      case 'breakdown':
        return addCounts(breakdown, breakdownRow(change.key), change)
      case 'event':
        return events.push(change.event)
      case 'try':
        return tries.push(change)
    }
  }

  function addMessage(message: Message, isNew: boolean) {
    const own = messages.get(message.requestId) ?? createChangedRows<Message>()
    messages.set(message.requestId, own)
    own.set(message.messageNumber, message, isNew)
  }

  /**
   * Writes what was added since the last `clear`. On PostgreSQL the rows that calls decided on are locked already; then
   * endpoints, counts and the counter of log entries, which all calls need, are locked as late as possible.
   */
  async function write(): Promise<void> {
    if (admissions.length > 0) tx.rateLimits.insert(admissions)
    if (sessions.size() > 0) await saveEach(sessions, tx.otpSessions)
    const firstSeq = events.length > 0 ? tx.events.reserve(events.length) : undefined
    appendToHistories(firstSeq)
    const { added, updated } = requests.lists()
    tx.otpRequests.insert(added)
    tx.otpRequests.update(
      updated.map((request) => ({ request, statusBefore: readRequests.get(request.id)?.status })),
    )
    if (messages.size > 0) {
      const changed = valuesInKeyOrder(messages).map((own) => own.lists())
      tx.messages.insert(changed.flatMap((own) => own.added))
      tx.messages.update(changed.flatMap((own) => own.updated))
    }
    if (relayed.size() > 0) await saveEach(relayed, tx.relayedMessages)
    if (phones.size > 0) await savePhones()
    await tx.guard.apply(guard)
    if (answers.size > 0) tx.idempotency.save(valuesInKeyOrder(answers))
    if (events.length > 0) tx.events.lockEndpoints(events)
    tx.analytics.add(valuesInKeyOrder(counts))
    tx.analytics.addBreakdown(valuesInKeyOrder(breakdown))
    if (events.length > 0) await tx.events.append(events, firstSeq)
  }

  /** Saves the records of phones, and deletes what they have taken over. */
  async function savePhones(): Promise<void> {
    const changed = [...phones.values()].toSorted(byPhoneKey)
    for (const { handle } of changed) {
      if (handle.takes?.handle) await tx.phones.delete(handle.takes.handle)
      if (handle.takes?.budgets) await tx.checkBudgets.delete(handle.takes.budgets)
    }
    tx.phones.saveAll(changed)
  }

  /**
   * Appends the tries and log entries to the histories of their requests. A request that did not change
   * otherwise is written for it.
   *
   * @param firstSeq number of the first entry, if it is known
   */
  function appendToHistories(firstSeq: number | undefined): void {
    for (const { requestId, tried } of tries)
      appendToHistory(requestId, (request) => formatTry(request, tried))
    for (const [index, { entry }] of events.entries()) {
      const seq = firstSeq === undefined ? undefined : firstSeq + index
      // A history has refused sends in one line, which `withRefusals` writes.
      if (entry.requestId !== null && entry.type !== 'otp.refused')
        appendToHistory(entry.requestId, (request) => formatEntry(request, entry, seq))
    }
  }

  function appendToHistory(id: string, format: (request: OtpRequest) => string): void {
    const request = requests.get(id) ?? readRequests.get(id)
    // A relayed message keeps none.
    if (request) requests.set(id, { ...request, history: request.history + format(request) })
  }

  /** Forgets the changes: the transaction has ended. */
  function clear() {
    hasChanges = false
    guardFault = undefined
    for (const container of containers) container.clear()
    events = []
    tries = []
    admissions = []
  }

  return {
    prepareAlone(failure) {
      if (failure instanceof GuardFault) guardFault = failure
    },
    load: async (operations) =>
      (await stored.load?.(operations, guardFault === undefined)) ?? new Set(operations),
    decide(operation) {
      const { result, changes } = operation.decide(rows)
      add(changes)
      return result
    },
    hasChanges: () => hasChanges,
    async write() {
      // Discards those that a body has left which threw.
      takeNotices()
      await write()
    },
    end(isCommitted) {
      clear()
      stored.end(isCommitted)
      const give = takeNotices()
      return isCommitted ? give : undefined
    },
    async apply(changes) {
      try {
        add(changes)
        await write()
      } finally {
        // On SQLite the next transaction uses the same unit, also if this one fails.
        clear()
      }
    },
  }
}

/** Writes changed rows of a table, one by one. */
async function saveEach<T>(
  rows: ChangedRows<T>,
  table: { insert(row: T): Promise<void>; update(row: T): Promise<void> },
): Promise<void> {
  const { added, updated } = rows.lists()
  for (const row of added) await table.insert(row)
  for (const row of updated) await table.update(row)
}

/** Tells which request a change writes: its row has its history, too. */
function writtenRequest(change: Change): string | null {
  if (change.kind === 'request') return change.request.id
  if (change.kind === 'event') return change.event.entry.requestId
  return change.kind === 'try' ? change.requestId : null
}

/** The trace is of the call that changed the request, not of those after it. */
const withoutTrace = (request: OtpRequest): OtpRequest =>
  request.traceparent === undefined ? request : { ...request, traceparent: undefined }

/** New records last, which get the next keys. By their hashes: two transactions that insert the same wait for each other. */
const byPhoneKey = (a: { handle: PhoneHandle }, b: { handle: PhoneHandle }) =>
  compareKeys(a.handle.row?.key ?? Infinity, b.handle.row?.key ?? Infinity) ||
  compareKeys(a.handle.hash, b.handle.hash)
