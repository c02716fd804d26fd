import type { Turn } from '../domain/accounts/password-hashing.ts'
import type { Clock } from '../domain/model/clock.ts'
import { ServiceError, tryAgainIn } from '../domain/model/errors.ts'
import { secondMs } from '../shared/durations.ts'

type HashQueueLimits = {
  runningMax: number
  /** Waiting tasks of all networks. */
  waitingMax: number
  /** Waiting tasks of one network. */
  waitingPerNetworkMax: number
  /** Tasks that a network may start at once; one more is allowed every second. */
  budget: number
}

/** A few hundred bytes each. */
const budgetsMax = 10_000

type Waiter = { start(): void; refuse(error: ServiceError): void }

/** Waiting tasks by network, at least one of each, in the order of turns: a network whose task starts goes to the end. */
type Lane = Map<string, Waiter[]>

/**
 * Creates a fair queue (round robin): each network gets the next slot in turn, however many of its tasks wait, and networks
 * that logged in before come first. A network whose task ends gives its slot to another one that waits, so a flood from one
 * network delays others by the task that runs, not by a turn more. A full queue admits a newcomer at the cost of the network
 * that has most tasks in it, so memory and CPU stay bounded. Per process.
 *
 * @returns a function that runs a task when it is its network's turn. It throws UNAVAILABLE when too many wait, and
 *   RATE_LIMITED (LOGIN_ATTEMPTS) when the network has used up its budget.
 */
export function createHashQueue(limits: HashQueueLimits, clock: Clock) {
  const { runningMax, waitingMax, waitingPerNetworkMax, budget } = limits
  let running = 0
  let waiting = 0
  const known: Lane = new Map()
  const strangers: Lane = new Map()
  /** Least recently used first. `spent` tasks at the time `at`. */
  const budgets = new Map<string, { spent: number; at: number }>()

  function spendBudget(network: string) {
    const now = clock.now()
    const last = budgets.get(network) ?? { spent: 0, at: now }
    const spent = Math.max(0, last.spent - (now - last.at) / secondMs)
    if (spent + 1 > budget) {
      const retryAfterSeconds = Math.ceil(spent + 1 - budget)
      const message = `Too many logins from this network. ${tryAgainIn(retryAfterSeconds)}`
      throw new ServiceError('RATE_LIMITED', message, { reason: 'LOGIN_ATTEMPTS', retryAfterSeconds })
    }
    budgets.delete(network)
    budgets.set(network, { spent: spent + 1, at: now })
    const [oldest] = budgets.keys()
    if (budgets.size > budgetsMax && oldest !== undefined) budgets.delete(oldest)
  }

  /** Removes a task of the stranger that has most of them, if it has more than `count`. */
  function displaceStranger(count: number): boolean {
    const [longest] = [...strangers].toSorted(([, one], [, other]) => other.length - one.length)
    if (!longest || longest[1].length <= count) return false
    const [network, waiters] = longest
    waiters.pop()?.refuse(tooManyWaiting())
    if (waiters.length === 0) strangers.delete(network)
    waiting -= 1
    return true
  }

  async function waitForTurn({ network, isKnown }: Turn) {
    const lane = isKnown ? known : strangers
    const own = lane.get(network) ?? []
    if (own.length >= waitingPerNetworkMax) throw tooManyWaiting()
    if (waiting >= waitingMax && !displaceStranger(isKnown ? 0 : own.length + 1)) throw tooManyWaiting()
    waiting += 1
    const turn = Promise.withResolvers<void>()
    own.push({ start: turn.resolve, refuse: turn.reject })
    lane.set(network, own)
    await turn.promise
  }

  /** Passes the slot of a network's finished task on, so `running` changes only if no task waits. */
  function startNext(finished: string) {
    const lane = known.size > 0 ? known : strangers
    const network = lane.keys().find((other) => other !== finished) ?? finished
    const waiters = lane.get(network) ?? []
    const waiter = waiters.shift()
    lane.delete(network)
    if (waiters.length > 0) lane.set(network, waiters)
    if (!waiter) {
      running -= 1
      return
    }
    waiting -= 1
    waiter.start()
  }

  return async <T>(turn: Turn, task: () => Promise<T>): Promise<T> => {
    spendBudget(turn.network)
    if (running < runningMax) running += 1
    else await waitForTurn(turn)
    try {
      return await task()
    } finally {
      startNext(turn.network)
    }
  }
}

const tooManyWaiting = () =>
  new ServiceError('UNAVAILABLE', 'Too many logins at once. Try again shortly.', { retryAfterSeconds: 2 })
