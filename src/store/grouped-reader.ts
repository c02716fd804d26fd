import type { GuardRow } from '../domain/model/guard.ts'
import type { IdempotencyScope } from '../domain/model/idempotency.ts'
import type { Admission, StoredPolicy } from '../domain/model/rate-limit.ts'
import type { OtpRequest } from '../domain/model/request.ts'
import { admissionLifetimeMs } from '../domain/model/rate-limit.ts'
import type { ListRuleStore } from '../domain/store/list-rules.ts'
import type { RowReader } from '../domain/store/operation.ts'
import { toCredentialState } from './applications.ts'
import { compareKeys } from './engine/key-order.ts'
import { limiterKey, type GroupedQueries } from './grouped-queries.ts'
import { idempotencyRow } from './idempotency.ts'
import type { StoredRows } from './row-reader.ts'
import { andThen, type Awaitable } from '../domain/model/awaitable.ts'

/**
 * Creates the reader of PostgreSQL, which reads the rows of many calls in one or two round trips.
 *
 * Before a group of calls is decided, each call's `read` runs once with a reader that only takes down which rows it asks
 * for, and answers as if there were none. Only requests are read then, because their rows say what else is needed. After
 * that all the rows are locked and read, table by table in the lock order and in the order of keys, so that groups do not
 * wait for each other in a ring. Then `read` runs for each call again, on these rows. What was not foreseen is read alone.
 */
export function createGroupedReader(
  queries: GroupedQueries,
  single: StoredRows,
  listRules: Pick<ListRuleStore, 'current'>,
): StoredRows {
  /** Rows of the open transaction; a key without a row has an entry too. */
  const loaded = {
    credentials: createKind(queries.credentials),
    requests: createKind(queries.requests),
    messages: createKind(queries.messages),
    phones: createKind(queries.phones),
    guardRows: createKind(queries.guardRows),
    subscribers: createKind(queries.subscribers),
    subscribersOfDevelopers: createKind(queries.subscribersOfDevelopers),
  }
  const { credentials, requests, messages, phones, guardRows, subscribers, subscribersOfDevelopers } = loaded
  const answers = createKind((keys: readonly string[]) =>
    queries.answers(keys.map((key) => required(wanted.scopes.get(key)))),
  )
  const heads = createKind((keys: readonly string[]) =>
    queries.heads(keys.map((key) => required(wanted.limiters.get(key)))),
  )
  const kinds = [...Object.values(loaded), answers, heads]
  /** Arguments of queries, in addition to the key. */
  const wanted = {
    scopes: new Map<string, IdempotencyScope>(),
    limiters: new Map<string, { subject: string; policy: StoredPolicy }>(),
  }
  /** Admissions of earlier calls of the transaction, by limiter, oldest first. */
  const admitted = new Map<string, Admission[]>()
  /** Time of the database when the rows were read. */
  let databaseTime: number | undefined
  /** The same by the calls' clock. */
  let groupTime: number | undefined

  const wantScope = (scope: IdempotencyScope) => {
    const key = idempotencyRow(scope)
    wanted.scopes.set(key, scope)
    return key
  }
  const wantLimiter = (subject: string, policy: StoredPolicy) => {
    const key = limiterKey(subject, policy)
    wanted.limiters.set(key, { subject, policy })
    return key
  }

  async function readGuardRows(keys: readonly string[]): Promise<ReadonlyMap<string, GuardRow>> {
    for (const key of keys) guardRows.want(key)
    // Those that were not foreseen, together.
    if (guardRows.isWanted()) await guardRows.load()
    const found = new Map<string, GuardRow>()
    for (const key of keys) {
      const row = await guardRows.get(key)
      if (row) found.set(key, row)
    }
    return found
  }

  const rows: RowReader = {
    ...single.rows,
    now(clock) {
      if (databaseTime === undefined) return clock.now()
      return (groupTime ??= clock.follow?.(databaseTime) ?? clock.now())
    },
    credentialState: ({ id, credentialsVersion }) =>
      andThen(credentials.get(id), (row) => toCredentialState(row, credentialsVersion)),
    caller: (application) =>
      andThen(credentials.get(application.id), (row) =>
        row
          ? { ...application, plan: row.plan, otpTtlSeconds: row.otpTtlSeconds, countries: row.countries }
          : application,
      ),
    listRules: ({ id, developerId }) =>
      andThen(credentials.get(id), (row) => listRules.current(developerId, row?.rulesVersion ?? 0)),
    idempotencyRecord: (scope) => answers.get(wantScope(scope)),
    request: (id) => requests.get(id),
    messages: (id) => andThen(messages.get(id), (list = []) => list),
    phone: (hash, ifMissing) =>
      andThen(phones.get(hash), (slot) => slot ?? { hash, row: undefined, record: ifMissing, isNew: true }),
    guard: { rows: readGuardRows, furtherRows: readGuardRows },
    rateLimits: {
      async newest(subject, policy, until) {
        const key = wantLimiter(subject, policy)
        const newest = admitted.get(key)?.findLast(({ at }) => at <= until)
        if (newest) return newest
        const stored = await heads.get(key)
        if (!stored || stored.newest.at <= until) return stored?.newest
        return single.rows.rateLimits.newest(subject, policy, until)
      },
      async oldestAfter(subject, policy, after, skip) {
        const key = wantLimiter(subject, policy)
        const stored = await heads.get(key)
        const own = admitted.get(key)?.filter(({ at }) => at > after) ?? []
        // Nothing is older in the window that was read, and so neither in one that begins later.
        const isReadWindow =
          databaseTime !== undefined &&
          after >= databaseTime - admissionLifetimeMs &&
          (stored?.oldest === undefined || stored.oldest.at > after)
        const oldest = isReadWindow
          ? stored?.oldest
          : await single.rows.rateLimits.oldestAfter(subject, policy, after, 0)
        if (!oldest || !stored) return own[skip]
        const storedCount = stored.newest.seq - oldest.seq + 1
        if (skip >= storedCount) return own[skip - storedCount]
        return skip === 0 ? oldest : single.rows.rateLimits.oldestAfter(subject, policy, after, skip)
      },
    },
    subscribers: (appId) => andThen(subscribers.get(appId), (list = []) => list),
    subscribersOfDeveloper: (developerId) =>
      andThen(subscribersOfDevelopers.get(developerId), (list = []) => list),
  }

  /** Takes down what is asked for. */
  const planner: RowReader = {
    ...rows,
    now: (clock) => clock.now(),
    credentialState({ id }) {
      credentials.want(id)
      return 'ok'
    },
    caller: (application) => application,
    listRules({ id }) {
      credentials.want(id)
      return []
    },
    idempotencyRecord(scope) {
      answers.want(wantScope(scope))
      return undefined
    },
    async request(id): Promise<OtpRequest | undefined> {
      requests.want(id)
      await requestsRead?.promise
      return requests.get(id)
    },
    messages(id) {
      messages.want(id)
      return []
    },
    phone(hash, ifMissing) {
      phones.want(hash)
      return { hash, row: undefined, record: ifMissing, isNew: false }
    },
    guard: {
      rows(keys) {
        for (const key of keys) guardRows.want(key)
        return new Map()
      },
      furtherRows: () => new Map(),
    },
    rateLimits: {
      newest(subject, policy) {
        heads.want(wantLimiter(subject, policy))
        return undefined
      },
      oldestAfter: () => undefined,
    },
    subscribers(appId) {
      subscribers.want(appId)
      return []
    },
    subscribersOfDeveloper(developerId) {
      subscribersOfDevelopers.want(developerId)
      return []
    },
    hasPhone: () => false,
    hasPseudonymSlots: () => false,
    hasCheckBudgets: () => false,
    findVirtualPhoneOwner: () => undefined,
  }
  /** Settled once the requests that the planner was asked for are read. */
  let requestsRead: PromiseWithResolvers<void> | undefined

  return {
    rows,

    async readAhead(read) {
      requestsRead = Promise.withResolvers()
      const planned = read(planner)
      // Every `read` has come to its end, or waits for a request.
      await nextTurn()
      if (requests.isWanted()) await allOf([credentials.load(), requests.load()])
      requestsRead.resolve()
      await planned
      // Sent at once, in the lock order. The time after the locks, and what depends on it last.
      const locked = [credentials, messages, phones, guardRows].map((kind) => kind.load())
      const time = queries.time()
      const others = [answers, heads, subscribers, subscribersOfDevelopers].map((kind) => kind.load())
      await allOf([...locked, time, ...others])
      databaseTime = await time
    },

    noteAdmission({ subject, policy, at, seq }) {
      const key = limiterKey(subject, policy)
      const list = admitted.get(key)
      if (list) list.push({ at, seq })
      else admitted.set(key, [{ at, seq }])
    },

    end(isCommitted) {
      for (const kind of kinds) kind.clear()
      for (const map of Object.values(wanted)) map.clear()
      admitted.clear()
      databaseTime = undefined
      groupTime = undefined
      single.end(isCommitted)
    },
  }
}

/** Creates a kind of rows: those that are wanted, and those that were read. */
function createKind<V>(read: (keys: readonly string[]) => Promise<ReadonlyMap<string, V>>) {
  const wanted = new Set<string>()
  const known = new Map<string, V | undefined>()

  async function load(): Promise<void> {
    const keys = [...wanted].toSorted(compareKeys)
    wanted.clear()
    if (keys.length === 0) return
    const found = await read(keys)
    for (const key of keys) known.set(key, found.get(key))
  }

  return {
    want(key: string): void {
      if (!known.has(key)) wanted.add(key)
    },
    isWanted: () => wanted.size > 0,
    load,
    get(key: string): Awaitable<V | undefined> {
      if (known.has(key)) return known.get(key)
      wanted.add(key)
      return load().then(() => known.get(key))
    },
    clear(): void {
      wanted.clear()
      known.clear()
    },
  }
}

/** Asserts what the queries guarantee. */
function required<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('a row that was inserted is missing')
  return value
}

/** Waits for statements that were sent together. @throws the error of the first that failed */
async function allOf(statements: ReadonlyArray<Promise<unknown>>): Promise<void> {
  const results = await Promise.allSettled(statements)
  for (const result of results) if (result.status === 'rejected') throw result.reason
}

const nextTurn = () => new Promise<void>((resolve) => void setImmediate(resolve))
