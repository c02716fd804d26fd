import type { BreakdownChanges, BreakdownKey, CountChanges } from '../domain/store/analytics.ts'
import type { IdempotencyScope } from '../domain/model/idempotency.ts'
import type { Message } from '../domain/model/message.ts'
import type { RelayedMessage } from '../domain/model/relayed-message.ts'
import type { PhoneRecord } from '../domain/model/phone-record.ts'
import type { LoadedPhone, PhoneHandle } from '../domain/store/phones.ts'
import type { GuardFault } from '../domain/model/guard.ts'
import type { NewAdmission } from '../domain/model/rate-limit.ts'
import type { OtpRequest } from '../domain/model/request.ts'
import type { OtpSession } from '../domain/model/session.ts'
import { formatTry } from '../domain/model/try-lines.ts'
import { formatEntry } from '../domain/model/request-history.ts'
import type { Change, NewEvent, Rows } from '../domain/store/operation.ts'
import type { GuardChanges } from '../domain/store/guard.ts'
import type { Stores } from '../domain/store/store.ts'
import type { StoredRows } from './stored-rows.ts'
import { compareKeys, valuesInKeyOrder } from './engine/key-order.ts'
import { idempotencyRow } from './idempotency.ts'
import { mergeGuardChanges } from './guard.ts'

/** Stores that operations read and write. */
export type UnitStores = Omit<Stores, 'changes'>

export type UnitOfWork = ReturnType<typeof createUnitOfWork>

/**
 * Creates the unit of work of a transaction: the changes that its calls decided on, by the keys of their rows. Calls read
 * through it, so that each sees the changes of those before, and `write` brings it to the database, table by table, each
 * row once and in the order of keys, so that few pages are written.
 *
 * @param stored reads rows as they were before these changes
 * @param tx writes within the transaction
 */
export function createUnitOfWork(stored: Omit<StoredRows, 'load' | 'end'>, tx: UnitStores) {
  const maps: Array<Map<string, unknown>> = []
  /** Creates a map that `clear` empties. */
  function createMap<V>(): Map<string, V> {
    const map = new Map<string, V>()
    maps.push(map)
    return map
  }
  const requests = createMap<Changed<OtpRequest>>()
  /** Requests that were read, as they are stored. */
  const readRequests = createMap<OtpRequest>()
  const messages = createMap<Map<number, Changed<Message>>>()
  const phones = createMap<{ handle: PhoneHandle; record: PhoneRecord }>()
  /** Records that were read, and that have a row. */
  const readPhones = createMap<LoadedPhone>()
  const answers = createMap<{ scope: IdempotencyScope; answer: string; at: number }>()
  const counts = createMap<{ developerId: string; day: number; counts: CountChanges }>()
  const breakdown = createMap<{ key: BreakdownKey; counts: BreakdownChanges }>()
  const guard: GuardChanges = { rows: createMap(), decisions: createMap() }
  /** Set while a call runs again because the rows of the guard could not be read or written. */
  let guardFault: GuardFault | undefined
  const relayed = createMap<Changed<RelayedMessage>>()
  const sessions = createMap<Changed<OtpSession>>()
  let events: NewEvent[] = []
  let tries: Array<Extract<Change, { kind: 'try' }>> = []
  /** On PostgreSQL. */
  let admissions: NewAdmission[] = []
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
      if (own) return own.value
      const request = readRequests.get(id) ?? stored.rows.request(id)
      if (request) readRequests.set(id, request)
      return request
    },

    messages(requestId) {
      const own = messages.get(requestId)
      const others = requests.get(requestId)?.isNew ? [] : stored.rows.messages(requestId)
      if (!own) return others
      const unchanged = others.filter(({ messageNumber }) => !own.has(messageNumber))
      return [...unchanged, ...[...own.values()].map(({ value }) => value)].toSorted(
        (a, b) => a.messageNumber - b.messageNumber,
      )
    },

    session: (id) => sessions.get(id)?.value ?? stored.rows.session(id),

    relayed: (id) => relayed.get(id)?.value ?? stored.rows.relayed(id),

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
        if (id !== null && readRequests.has(id) && !requests.has(id)) stored.requireLocked(id)
    if (changes.length > 0) hasChanges = true
    // Before all others, because on SQLite these can fail: a call that fails must leave nothing.
    for (const change of changes) {
      if (change.kind !== 'admission') continue
      if (stored.keepAdmission) {
        stored.keepAdmission(change.admission)
        admissions.push(change.admission)
      } else tx.rateLimits.insert([change.admission])
    }
    for (const change of changes) {
      switch (change.kind) {
        case 'request': {
          const { request } = change
          const isNew = change.isNew || requests.get(request.id)?.isNew === true
          // The trace is of this call, not of those after it.
          const value = request.traceparent === undefined ? request : { ...request, traceparent: undefined }
          requests.set(request.id, { value, isNew })
          break
        }
        case 'message':
          addMessage(change.message, change.isNew)
          break
        case 'session':
          sessions.set(change.session.id, { value: change.session, isNew: change.isNew })
          break
        case 'relayed':
          relayed.set(change.message.id, { value: change.message, isNew: change.isNew })
          break
        case 'phone':
          phones.set(change.handle.hash, change)
          break
        case 'guard':
          mergeGuardChanges(guard, change.changes)
          break
        case 'idempotency':
          answers.set(idempotencyRow(change.scope), change)
          break
        case 'counts':
          addCounts(change.developerId, change.day, change.counts)
          break
        case 'breakdown':
          addBreakdown(change.key, change.counts)
          break
        case 'event':
          events.push(change.event)
          break
        case 'try':
          tries.push(change)
      }
    }
  }

  function addMessage(message: Message, isNew: boolean) {
    const own = messages.get(message.requestId) ?? new Map<number, Changed<Message>>()
    messages.set(message.requestId, own)
    own.set(message.messageNumber, {
      value: message,
      isNew: isNew || own.get(message.messageNumber)?.isNew === true,
    })
  }

  function addCounts(developerId: string, day: number, changes: CountChanges) {
    const key = `${day} ${developerId}`
    counts.set(key, { developerId, day, counts: sum(counts.get(key)?.counts, changes) })
  }

  function addBreakdown(key: BreakdownKey, changes: BreakdownChanges) {
    const { day, developerId, appId, country, channel, provider } = key
    const text = `${day} ${developerId} ${appId} ${country} ${channel} ${provider}`
    breakdown.set(text, { key, counts: sum(breakdown.get(text)?.counts, changes) })
  }

  /**
   * Writes what was added since the last `clear`. On PostgreSQL the rows that calls decided on are locked already; then
   * endpoints, counts and the counter of log entries, which all calls need, are locked as late as possible.
   */
  async function write(): Promise<void> {
    tx.rateLimits.insert(admissions)
    await saveEach(sessions, tx.otpSessions)
    const firstSeq = events.length > 0 ? await tx.events.reserve(events.length) : undefined
    const changedRequests = valuesInKeyOrder(withHistories(firstSeq))
    tx.otpRequests.insert(changedRequests.flatMap(({ value, isNew }) => (isNew ? value : [])))
    tx.otpRequests.update(
      changedRequests.flatMap(({ value, isNew }) =>
        isNew ? [] : { request: value, statusBefore: readRequests.get(value.id)?.status },
      ),
    )
    const changedMessages = valuesInKeyOrder(messages).flatMap((own) => [...own.values()])
    tx.otpDeliveries.insert(changedMessages.flatMap(({ value, isNew }) => (isNew ? value : [])))
    tx.otpDeliveries.update(changedMessages.flatMap(({ value, isNew }) => (isNew ? [] : value)))
    await saveEach(relayed, tx.relayedMessages)
    await savePhones()
    await tx.guard.apply(guard)
    tx.idempotency.save(valuesInKeyOrder(answers))
    tx.events.lockEndpoints(events)
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
   * Appends the delivery attempts and log entries to the histories of their requests. A request that did not change
   * otherwise is written for it.
   *
   * @param firstSeq number of the first entry, if it is known
   */
  function withHistories(firstSeq: number | undefined): ReadonlyMap<string, Changed<OtpRequest>> {
    if (events.length === 0 && tries.length === 0) return requests
    const changed = new Map(requests)
    const append = (id: string, format: (request: OtpRequest) => string) => {
      const own = changed.get(id)
      const request = own?.value ?? readRequests.get(id)
      // A relayed message keeps none.
      if (!request) return
      const value = { ...request, history: request.history + format(request) }
      changed.set(id, { value, isNew: own?.isNew ?? false })
    }
    for (const { requestId, tried } of tries) append(requestId, (request) => formatTry(request, tried))
    for (const [index, { entry }] of events.entries()) {
      const seq = firstSeq === undefined ? undefined : firstSeq + index
      // A history has refused sends in one line, which `withRefusals` writes.
      if (entry.requestId !== null && entry.type !== 'otp.refused')
        append(entry.requestId, (request) => formatEntry(request, entry, seq))
    }
    return changed
  }

  /** Forgets the changes: the transaction has ended. */
  function clear() {
    hasChanges = false
    guardFault = undefined
    for (const map of maps) map.clear()
    events = []
    tries = []
    admissions = []
  }

  /** Leaves the guard out of this transaction, which repeats one that its rows have failed. */
  const leaveOutGuard = (fault: GuardFault) => void (guardFault = fault)

  return { rows, add, hasChanges: () => hasChanges, write, clear, leaveOutGuard }
}

/** Tells which request a change writes: its row has its history, too. */
function writtenRequest(change: Change): string | null {
  if (change.kind === 'request') return change.request.id
  if (change.kind === 'event') return change.event.entry.requestId
  return change.kind === 'try' ? change.requestId : null
}

/** A row as a transaction leaves it. */
type Changed<T> = { value: T; isNew: boolean }

/** Inserts or updates changed rows, in the order of their keys. */
async function saveEach<T>(
  changed: ReadonlyMap<string, Changed<T>>,
  store: { insert(value: T): Promise<void>; update(value: T): Promise<void> },
): Promise<void> {
  for (const { value, isNew } of valuesInKeyOrder(changed))
    await (isNew ? store.insert(value) : store.update(value))
}

/** Adds counts to those so far, which may have others. */
function sum<C extends Record<string, number | undefined>>(before: C | undefined, changes: C): C {
  if (!before) return changes
  const sums: Record<string, number | undefined> = { ...before }
  for (const name in changes) sums[name] = (sums[name] ?? 0) + (changes[name] ?? 0)
  return sums as C
}

/** New records last, which get the next keys. By their hashes: two transactions that insert the same wait for each other. */
const byPhoneKey = (a: { handle: PhoneHandle }, b: { handle: PhoneHandle }) =>
  compareKeys(a.handle.row?.key ?? Infinity, b.handle.row?.key ?? Infinity) ||
  compareKeys(a.handle.hash, b.handle.hash)
