import type { CallGroup, QueryExecutor } from '../engine/database.ts'
import { RowNotNamedError, unavailable } from '../engine/errors.ts'
import { canRunAgain, takeTogether } from '../engine/repeated-calls.ts'
import { ServiceError } from '../../domain/model/errors.ts'
import { systemWorld } from '../../world/system.ts'
import type { RunTransaction } from './transactions.ts'

const groupMax = 256
const waitingMax = 10_000
/** Each displacement is a change that another call has made meanwhile. */
const displacementsMax = 100

type Job<C> = {
  call: C
  /** By `performance.now`. */
  queuedAt: number
  /** Set for a call that runs in a transaction of its own: the error of the one that it was in. */
  failure: unknown
  /** How often its rows were others when it was to decide. */
  displacements: number
  resolve(value: unknown): void
  reject(error: unknown): void
}

/**
 * Creates the group commit of PostgreSQL: calls that wait share one transaction, which reads for all of them at once, lets
 * each decide, and writes for all of them at once. So a call holds its locks for a round trip and a commit, and rows that
 * every call needs, such as a counter, are written once a group.
 *
 * @param groupsMax how many run at the same time; more calls wait, and share the next group
 * @param waitMaxMs after which a call that waits is refused
 */
export function createGroups(
  run: RunTransaction,
  groupsMax: number,
  convertError: (error: unknown) => unknown,
  waitMaxMs: number,
) {
  return <C>(bind: (tx: QueryExecutor) => CallGroup<C>) => {
    let waiting: Array<Job<C>> = []
    let running = 0
    let isExpiryScheduled = false

    /** Refuses the calls that wait too long: the network swallows packets, or the database is too slow. */
    function scheduleExpiry(): void {
      const [oldest] = waiting
      if (isExpiryScheduled || !oldest) return
      isExpiryScheduled = true
      setTimeout(
        () => {
          isExpiryScheduled = false
          const until = performance.now() - waitMaxMs
          const expired = waiting.filter(({ queuedAt }) => queuedAt <= until)
          waiting = waiting.filter(({ queuedAt }) => queuedAt > until)
          for (const { reject } of expired) reject(unavailable('WRITE_QUEUE_SLOW'))
          scheduleExpiry()
        },
        Math.max(1, Math.ceil(oldest.queuedAt + waitMaxMs - performance.now())),
      ).unref()
    }

    function schedule(): void {
      if (waiting.length === 0) return
      if (running >= groupsMax) {
        scheduleExpiry()
        return
      }
      running++
      // The next turn of the event loop, so that calls that arrive together share a group.
      setImmediate(() => {
        const group = takeTogether(waiting, groupMax)
        void (group.length === 0 ? Promise.resolve() : runGroup(group)).finally(() => {
          running--
          schedule()
        })
      })
    }

    async function runGroup(group: Array<Job<C>>): Promise<void> {
      const begunAt = performance.now()
      try {
        const outcomes = await run((tx) => runCalls(bind(tx), group), bind)
        const displaced: Array<Job<C>> = []
        for (const [index, job] of group.entries()) {
          const outcome = outcomes[index]
          if (!outcome && job.displacements++ < displacementsMax) displaced.push(job)
          else if (!outcome) job.reject(unavailable('ROW_ADDED'))
          else if ('value' in outcome) job.resolve(outcome.value)
          else job.reject(convertError(outcome.error))
        }
        waiting.unshift(...displaced)
      } catch (error) {
        const callerError = convertError(error)
        const isOutage = callerError instanceof ServiceError && callerError.code === 'UNAVAILABLE'
        if (isOutage || !canRunAgain(group, callerError)) {
          // Longer than a call may wait for its turn, as behind a network that swallows packets: those that wait would wait
          // as long again.
          const isSlow = performance.now() - begunAt > waitMaxMs * 0.9
          const others = isOutage && isSlow ? waiting.splice(0) : []
          for (const { reject } of [...group, ...others]) reject(callerError)
          return
        }
        // One of them is at fault. The others must not suffer from it.
        waiting.unshift(...group.map((job) => ({ ...job, failure: callerError })))
      }
    }

    type Outcome = { value: unknown } | { error: unknown }

    /**
     * @returns the outcome of each call; undefined for one whose rows are others since it named them, by a call before it or
     *   by another transaction: it runs again
     */
    async function runCalls(calls: CallGroup<C>, group: Array<Job<C>>): Promise<Array<Outcome | undefined>> {
      const [first] = group
      if (first?.failure !== undefined) calls.prepareAlone(first.failure)
      const loaded = await calls.load(group.map(({ call }) => call))
      const outcomes: Array<Outcome | undefined> = []
      for (const { call } of group) {
        if (!loaded.has(call)) {
          outcomes.push(undefined)
          continue
        }
        try {
          outcomes.push({ value: calls.decide(call) })
        } catch (error) {
          const isUnnamed = error instanceof RowNotNamedError
          outcomes.push(isUnnamed && calls.hasChanges() ? undefined : { error })
          if (isUnnamed && !calls.hasChanges())
            systemWorld.onBroken('rows_named_before_decision', error.message)
        }
      }
      if (calls.hasChanges()) await calls.write()
      return outcomes
    }

    return <R>(call: C): Promise<R> => {
      if (waiting.length >= waitingMax) return Promise.reject(unavailable('WRITE_QUEUE_FULL'))
      // Calls of all types are run by the same code; a call's R resolves its own promise only.
      const { promise, resolve, reject } = Promise.withResolvers<R>()
      waiting.push({
        call,
        queuedAt: performance.now(),
        failure: undefined,
        displacements: 0,
        resolve: resolve as (value: unknown) => void,
        reject,
      })
      schedule()
      return promise
    }
  }
}
