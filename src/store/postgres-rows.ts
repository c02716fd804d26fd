import type { Clock } from '../domain/model/clock.ts'
import type { ListRule } from '../domain/model/list-rule.ts'
import type { IdempotencyScope } from '../domain/model/idempotency.ts'
import type { RateLimit, StoredPolicy, Usage } from '../domain/model/rate-limit.ts'
import { unused, withAdmission } from '../domain/model/rate-limit.ts'
import type { IdempotencyRecord } from '../domain/store/idempotency.ts'
import { missingPhone, type CheckBudget } from '../domain/model/phone-record.ts'
import type { OldBudgets } from '../domain/store/check-budgets.ts'
import type { NamedRows, Operation, Rows } from '../domain/store/operation.ts'
import type { Stores } from '../domain/store/store.ts'
import { toCredentialState } from './applications.ts'
import { RowNotNamedError } from './engine/errors.ts'
import { compareKeys } from './engine/key-order.ts'
import { idempotencyRow } from './idempotency.ts'
import { limiterKey, limitKey, type LoadQueries } from './postgres-queries.ts'
import type { StoredRows } from './stored-rows.ts'

/**
 * Creates the rows of PostgreSQL. Those that the calls of a group need are locked and read together, table by table in the
 * lock order and in the order of keys, so that groups do not wait for each other in a ring.
 *
 * @param clock follows the time of the database; in tests it is the time
 */
export function createPostgresRows(
  queries: LoadQueries,
  tx: Pick<Stores, 'checkBudgets' | 'guard' | 'phones'>,
  clock: Clock,
): StoredRows {
  const credentials = createTable(queries.credentials)
  const sessions = createTable(queries.sessions)
  const requests = createTable(queries.requests)
  /** Rows that look-ups have read without a lock. */
  const seenRequests = createTable(async (ids) => {
    const found = await queries.requestsWithoutLock(ids, requestsPerPhone)
    requestsPerPhone *= 10
    return found
  })
  const seenPhones = createTable(queries.phonesWithoutLock)
  const messages = createTable(queries.messages)
  const relayed = createTable(queries.relayed)
  const phones = createTable(queries.phones)
  const guardRows = createTable(tx.guard.rows)
  const answers = createTable<IdempotencyRecord, IdempotencyScope>((_, scopes) => queries.answers(scopes))
  const usages = createTable<Usage, RateLimit<StoredPolicy>>((_, limits) =>
    queries.usages(limits, clock.follow ? undefined : clock.now()),
  )
  const subscribers = createTable(queries.subscribers)
  const subscribersOfDevelopers = createTable(queries.subscribersOfDevelopers)
  const rules = new Map<string, readonly ListRule[]>()
  /** Developers whose rules are to be loaded, by their applications. */
  const developerIds = new Map<string, string>()
  const owners = createTable(queries.virtualPhoneOwners)
  const oldBudgets = createTable<CheckBudget[], OldBudgets>(async (_, wanted) => {
    const found = new Map<string, CheckBudget[]>()
    for (const one of wanted) found.set(budgetsKey(one), await tx.checkBudgets.list(one))
    return found
  })
  const unlocked = [answers, usages, subscribers, subscribersOfDevelopers]
  const rare = [owners, oldBudgets]
  // In the lock order.
  const all = [credentials, sessions, requests, messages, relayed, phones, guardRows, ...unlocked, ...rare]
  /** Whether 0.1.0 left something. Read once a connection, because nothing adds to it while calls are served. */
  let legacy: { hasBudgets: boolean; hasPseudonymRecords: boolean } | undefined
  /** Time of the database when the rows were read, by the clock. */
  let groupTime: number | undefined
  /** Requests of a phone that a look-up reads at once: almost always the newest is the one, and a long list needs few reads. */
  let requestsPerPhone = 1
  /** Whether calls decide, and so read only what was named. */
  let isDeciding = false

  /** Returns a row that was loaded. @throws RowNotNamedError while calls decide */
  function get<V>(table: Loaded<V>, key: string): V | undefined {
    if (isDeciding && !table.has(key)) throw new RowNotNamedError()
    return table.get(key)
  }

  const rows: Rows = {
    now: () => groupTime ?? clock.now(),
    credentialState: ({ id, credentialsVersion }) =>
      toCredentialState(get(credentials, id), credentialsVersion),
    caller(application) {
      return { ...application, ...get(credentials, application.id) }
    },
    listRules: ({ developerId }) => rules.get(developerId) ?? [],
    idempotencyRecord: (scope) => get(answers, idempotencyRow(scope)),
    session: (id) => get(sessions, id),
    request: (id) => (requests.has(id) || !seenRequests.has(id) ? get(requests, id) : seenRequests.get(id)),
    messages: (id) => get(messages, id) ?? [],
    relayed: (id) => get(relayed, id),
    phone: (hash, owned) =>
      get(phones, hash) ?? (isDeciding ? undefined : seenPhones.get(hash)) ?? missingPhone(hash, owned),
    guard: { row: (key) => get(guardRows, key) },
    usage: (limit) => get(usages, limitKey(limit)) ?? unused,
    subscribers: (appId) => get(subscribers, appId) ?? [],
    subscribersOfDeveloper: (developerId) => get(subscribersOfDevelopers, developerId) ?? [],
    virtualPhoneOwner: (phone) => get(owners, phone),
    hasPseudonymRecords: () => legacy?.hasPseudonymRecords ?? false,
    oldBudgets: (find) => (legacy?.hasBudgets ? (get(oldBudgets, budgetsKey(find())) ?? []) : []),
  }

  function name(named: NamedRows, isGuardRead: boolean): void {
    if (named.application && credentials.want(named.application.id))
      developerIds.set(named.application.id, named.application.developerId)
    for (const scope of named.answers ?? []) answers.want(idempotencyRow(scope), scope)
    if (named.session !== undefined) sessions.want(named.session)
    if (named.request !== undefined) requests.want(named.request)
    for (const id of named.messages ?? []) messages.want(id)
    if (named.phone !== undefined) phones.want(named.phone)
    if (isGuardRead) for (const key of named.guard ?? []) guardRows.want(key)
    if (named.limit) usages.want(limitKey(named.limit), named.limit)
    if (named.subscribers !== undefined) subscribers.want(named.subscribers)
    if (named.subscribersOfDeveloper !== undefined) subscribersOfDevelopers.want(named.subscribersOfDeveloper)
    if (named.virtualPhone !== undefined) owners.want(named.virtualPhone)
    const old = legacy?.hasBudgets ? named.oldBudgets?.() : undefined
    if (old) oldBudgets.want(budgetsKey(old), old)
    if (named.relayed !== undefined) relayed.want(named.relayed)
    for (const hash of named.otherPhones ?? []) phones.want(hash)
  }

  /**
   * Reads what is wanted, in one round trip but for what is rare: in the lock order, then the time, which a lock that is
   * waited for makes later, and last what depends on it.
   *
   * @param isFollowed whether all calls name more rows afterwards; then applications and requests need no time
   */
  async function loadWanted(isFollowed: boolean): Promise<void> {
    // Requests lead to phones, which must be locked together, and in one order.
    const locked =
      requests.isWanted() || relayed.isWanted() ? [messages, relayed] : [messages, phones, guardRows]
    const isTimed = !isFollowed || [...locked, ...unlocked].some((table) => table.isWanted())
    const rowsToLock = [credentials, sessions, requests, ...locked].map((table) => table.load())
    const time = isTimed ? queries.time() : Promise.resolve(undefined)
    const others = unlocked.map((table) => table.load())
    await allOf([...rowsToLock, time, ...others])
    if (isTimed) {
      const databaseTime = await time
      if (databaseTime !== undefined) groupTime = clock.follow?.(databaseTime)
    }
    await loadRules()
    for (const table of rare) await table.load()
  }

  /** Reads what leads to the rows that calls name, until nothing more does. */
  async function lookUp(calls: ReadonlyArray<Operation<unknown>>): Promise<void> {
    const seen = [seenPhones, seenRequests]
    requestsPerPhone = 1
    do {
      for (const table of seen) await table.load()
      for (const call of calls) {
        const found = call.preload.lookUp?.(rows)
        for (const hash of found?.phones ?? []) seenPhones.want(hash)
        for (const id of found?.requests ?? []) seenRequests.want(id)
      }
    } while (seen.some((table) => table.isWanted()))
  }

  /** Reads the rules of developers whose version is not in memory. */
  async function loadRules(): Promise<void> {
    for (const [id, developerId] of developerIds) {
      const version = credentials.get(id)?.rulesVersion ?? 0
      rules.set(developerId, await queries.rules(developerId, version))
    }
    developerIds.clear()
  }

  return {
    rows,

    async load(calls, isGuardRead) {
      isDeciding = false
      legacy ??= {
        hasBudgets: await queries.hasOldBudgets(),
        hasPseudonymRecords: await tx.phones.hasPseudonymRecords(),
      }
      await lookUp(calls)
      for (const call of calls) name(call.preload.first(rows), isGuardRead)
      const isFollowed = calls.every(({ preload }) => preload.next !== undefined)
      const remaining = new Set(calls)
      for (let round = 0; all.some((table) => table.isWanted()) || round === 0; round++) {
        await loadWanted(isFollowed)
        for (const call of remaining) {
          const named = call.preload.next?.(rows)
          if (named) name(named, isGuardRead)
          if (!requests.isWanted()) continue
          // The request that a look-up found has changed before it was locked. Another one may not be locked after the phone.
          requests.forgetWanted()
          remaining.delete(call)
        }
      }
      isDeciding = true
      return remaining
    },

    // The look-up of another call may have read it without a lock.
    requireLocked(requestId) {
      if (!requests.has(requestId)) throw new RowNotNamedError()
    },

    keepAdmission(admission) {
      for (const [key, usage] of usages.entries())
        if (usage && key.startsWith(`${limiterKey(admission)} `))
          usages.set(key, withAdmission(usage, admission))
    },

    end(isCommitted) {
      for (const table of [seenPhones, seenRequests, ...all]) table.clear()
      rules.clear()
      developerIds.clear()
      groupTime = undefined
      isDeciding = false
      // It may have been read from rows that are rolled back.
      if (!isCommitted) legacy = undefined
    },
  }
}

const budgetsKey = ({ developerId, phoneHashes }: OldBudgets) => `${developerId} ${phoneHashes.join(' ')}`

type Loaded<V> = { has(key: string): boolean; get(key: string): V | undefined }

/**
 * Creates the rows of one kind: those that are wanted, and those that were loaded.
 *
 * @param read gets the keys in their order, and what each was wanted with; may return more rows
 */
function createTable<V, W = undefined>(
  read: (keys: readonly string[], details: readonly W[]) => Promise<ReadonlyMap<string, V>>,
) {
  const wanted = new Map<string, W>()
  /** A key without a row has an entry too. */
  const loaded = new Map<string, V | undefined>()
  return {
    /** @returns whether the row is not loaded yet */
    want(key: string, ...[detail]: W extends undefined ? [] : [W]): boolean {
      if (loaded.has(key)) return false
      wanted.set(key, detail as W)
      return true
    },
    isWanted: () => wanted.size > 0,
    forgetWanted: () => wanted.clear(),
    async load(): Promise<void> {
      if (wanted.size === 0) return
      const entries = [...wanted].toSorted(([a], [b]) => compareKeys(a, b))
      wanted.clear()
      const keys = entries.map(([key]) => key)
      const found = await read(
        keys,
        entries.map(([, detail]) => detail),
      )
      for (const key of keys) loaded.set(key, undefined)
      for (const [key, value] of found) loaded.set(key, value)
    },
    has: (key: string) => loaded.has(key),
    get: (key: string) => loaded.get(key),
    set: (key: string, value: V) => void loaded.set(key, value),
    entries: () => loaded.entries(),
    clear(): void {
      wanted.clear()
      loaded.clear()
    },
  }
}

/** Waits for statements that were sent together. @throws the error of the first that failed */
async function allOf(statements: ReadonlyArray<Promise<unknown>>): Promise<void> {
  const results = await Promise.allSettled(statements)
  for (const result of results) if (result.status === 'rejected') throw result.reason
}
