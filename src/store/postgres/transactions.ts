import type { CallGroup, QueryExecutor } from '../engine/database.ts'
import { driverCode, RaceLostError } from '../engine/errors.ts'
import type { PostgresSession } from './session.ts'

/** A transaction that has begun, on a connection of its own. */
export type OpenTransaction = {
  session: PostgresSession
  /**
   * Sends the gathered writes and commits, without waiting in between.
   *
   * @throws what failed; then nothing is written, unless the connection ended before the answer came
   */
  commit(): Promise<void>
  /** Never rejects. */
  rollback(): Promise<void>
  /** Gives the connection back. */
  release(): void
}

/** Runs a body in a transaction. */
export type RunTransaction = <T>(
  body: (tx: QueryExecutor) => Promise<T>,
  /** Returns the calls of the connection. */
  bind?: (tx: QueryExecutor) => {
    /**
     * Asked after the body. Without changes the transaction is rolled back, and with it the rows that were inserted for their
     * locks.
     */
    hasChanges(): boolean
    /** Called when it has ended, before its connection begins another one. What it returns is called too: a commit is on disk. */
    end: CallGroup['end']
  },
) => Promise<T>

const retriesMax = 3
/** Each lost race is a change that another transaction has committed. */
const lostRacesMax = 100
const retryDelayMaxMs = 200

/** Serialization failure, deadlock: the transaction was rolled back, and may succeed when it runs again. */
const isRetryable = (error: unknown) => ['40001', '40P01'].includes(driverCode(error) ?? '')

/** Creates the function that runs a body in a transaction. It throws the driver's errors. */
export function createTransactions(begin: () => Promise<OpenTransaction>): RunTransaction {
  /** Runs a body in a transaction, once. */
  const runOnce: RunTransaction = async (body, bind) => {
    const { session, commit, rollback, release } = await begin()
    const calls = bind?.(session.executor)
    let isCommitted = false
    const undo = () => {
      session.discard()
      return rollback()
    }
    try {
      const result = await body(session.executor)
      if (calls && !calls.hasChanges()) await undo()
      else {
        await commit()
        isCommitted = true
      }
      return result
    } catch (thrown) {
      const error = await session.findCause(thrown)
      await undo()
      throw error
    } finally {
      calls?.end(isCommitted)?.()
      release()
    }
  }

  // Again if it lost to another transaction.
  return async (body, bind) => {
    for (let retries = 0, lostRaces = 0; ;) {
      try {
        return await runOnce(body, bind)
      } catch (error) {
        if (error instanceof RaceLostError) {
          if (lostRaces++ === lostRacesMax) throw error
        } else {
          if (!isRetryable(error) || retries++ === retriesMax) throw error
          // Transactions that wait for each other must not meet again.
          await Bun.sleep(Math.random() * retryDelayMaxMs)
        }
      }
    }
  }
}
