import { loadGuardFacts } from '../../../src/domain/guard/facts.ts'
import { createGuard } from '../../../src/domain/guard/guard.ts'
import type { GuardedMessage } from '../../../src/domain/guard/row-keys.ts'
import { hashContexts } from '../../../src/domain/model/context.ts'
import type { GuardAlert } from '../../../src/domain/model/guard.ts'
import { deriveKeys, masterKeyBytes } from '../../../src/domain/model/keys.ts'
import { createStore } from '../../../src/store/store.ts'
import { minuteMs } from '../../../src/shared/durations.ts'
import { openTestSqlite } from '../../helpers/databases.ts'
import { testKeys } from '../../helpers/keys.ts'
import type { Target } from './population.ts'

export type Simulation = Awaited<ReturnType<typeof openSimulation>>

type Task = { at: number; order: number; run(now: number): Promise<void> }

/** A request as the simulation keeps it until its code is verified. */
export type SimulatedRequest = GuardedMessage & Target & { isKnownPhone: boolean }

const developerId = 'dev_1'
/** Tasks per transaction: as the server's group commit does, and much faster than one each. */
const batchSize = 200

/**
 * Runs the guard of one developer on a real database, with a clock that jumps from one task to the next.
 *
 * @param tellsClientIp whether the developer's backend passes the addresses of its users
 */
export async function openSimulation(startAt: number, tellsClientIp: boolean) {
  const opened = await openTestSqlite()
  const store = createStore(opened.database, { keys: testKeys })
  const keys = deriveKeys(new Uint8Array(masterKeyBytes).fill(7))
  const guard = createGuard({
    settings: {
      mode: 'enforce',
      countries: [],
      deniedCountries: [],
      allowedNumberTypes: [],
      trusted: { prefixes: [], addresses: [] },
      totalPerDay: 0,
    },
    keys,
    onFault(error) {
      throw error
    },
  })
  const knownPhones = new Set<string>()
  const alerts: Array<GuardAlert & { at: number }> = []
  const tasks = createTaskQueue()
  let now = startAt
  let tx: Parameters<Parameters<typeof store.write>[0]>[0] | undefined
  const transaction = () => {
    if (!tx) throw new Error('there is no transaction')
    return tx
  }
  const senderOf = ({ clientIp, isKnownPhone }: Pick<SimulatedRequest, 'clientIp' | 'isKnownPhone'>) => ({
    verifiedAt: 0,
    verifiedFrom: [],
    isKnownPhone,
    contexts: hashContexts(keys, developerId, { clientIp, deviceId: null }),
  })

  return {
    now: () => now,
    alerts,
    knownPhones,
    schedule: tasks.add,

    /** Sends a message, or sends a request's code once more. @returns the request; undefined if it was blocked */
    async send(target: Target, earlier?: SimulatedRequest): Promise<SimulatedRequest | undefined> {
      const request = earlier
        ? { ...earlier, resends: earlier.resends + 1 }
        : {
            ...target,
            clientIp: tellsClientIp ? target.clientIp : null,
            developerId,
            environment: 'live' as const,
            provider: null,
            createdAt: now,
            resends: 0,
            isKnownPhone: knownPhones.has(target.phone),
          }
      const { guard: rows } = transaction()
      const sender = senderOf(request)
      const facts = await loadGuardFacts(rows, guard.keysToJudge(request, sender, now))
      const { verdict, changes } = guard.judge(facts, request, sender)
      await rows.apply(changes)
      if (verdict.alert) alerts.push({ ...verdict.alert, at: now })
      return verdict.blocked ? undefined : request
    },

    async verify(request: SimulatedRequest): Promise<void> {
      const { guard: rows } = transaction()
      const facts = await loadGuardFacts(rows, guard.keysToConvert(request, senderOf(request), now))
      await rows.apply(guard.convert(facts, request, senderOf(request), now))
      knownPhones.add(request.phone)
    },

    /** Runs the tasks up to a time, and purges as the server does. */
    async runUntil(end: number): Promise<void> {
      let purgedAt = now
      while (tasks.nextAt() < end) {
        await store.write(async (writer) => {
          tx = writer
          for (let count = 0; count < batchSize && tasks.nextAt() < end; count++) {
            const task = tasks.take()
            now = task.at
            await task.run(now)
          }
          tx = undefined
        })
        if (now - purgedAt < 360 * minuteMs) continue
        purgedAt = now
        while (await store.write((writer) => writer.guard.deleteOldest(now, 2_000)));
      }
      now = end
    },

    dispose: opened.dispose,
  }
}

/** A binary heap: the next task is the earliest, and the one added first among equals. */
function createTaskQueue() {
  const heap: Task[] = []
  let added = 0
  const isBefore = (a: Task, b: Task) => a.at < b.at || (a.at === b.at && a.order < b.order)
  const at = (index: number): Task => {
    const task = heap[index]
    if (!task) throw new Error('there is no task')
    return task
  }
  const swap = (a: number, b: number) => ([heap[a], heap[b]] = [at(b), at(a)])
  return {
    nextAt: () => heap[0]?.at ?? Infinity,
    add(time: number, run: Task['run']) {
      let index = heap.push({ at: Math.round(time), order: added++, run }) - 1
      for (let parent; index > 0 && isBefore(at(index), at((parent = (index - 1) >> 1))); index = parent)
        swap(index, parent)
    },
    take(): Task {
      const first = at(0)
      const last = heap.pop()
      if (heap.length === 0 || !last) return first
      heap[0] = last
      for (let index = 0; ;) {
        const children = [2 * index + 1, 2 * index + 2].filter((child) => child < heap.length)
        const least = children.reduce((best, child) => (isBefore(at(child), at(best)) ? child : best), index)
        if (least === index) return first
        swap(index, least)
        index = least
      }
    },
  }
}
