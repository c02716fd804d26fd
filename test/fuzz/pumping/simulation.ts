import { noToken, type ChallengeAnswer } from '../../../src/domain/guard/challenge.ts'
import { createGuard } from '../../../src/domain/guard/guard.ts'
import type { GuardedMessage } from '../../../src/domain/guard/row-keys.ts'
import { hashContexts } from '../../../src/domain/model/context.ts'
import type { GuardAlert, Sender } from '../../../src/domain/model/guard.ts'
import { testKeys } from '../../helpers/keys.ts'
import { knownLifetimeMs } from '../../../src/domain/model/phone-record.ts'
import type { GuardChanges } from '../../../src/domain/store/guard.ts'
import { dayMs } from '../../../src/shared/durations.ts'
import { createGuardRows, guardOff, usageOf } from '../../helpers/guard.ts'
import type { Target } from './population.ts'

export type Simulation = ReturnType<typeof createSimulation>

type Task = { at: number; order: number; run(now: number): void | Promise<void> }

/** A request as the simulation keeps it until its code is verified. */
export type SimulatedRequest = GuardedMessage & Target & { sender: Sender }

const developerId = 'dev_1'
const unknown = { verifiedAt: 0, verifiedFrom: [] as Sender['verifiedFrom'] }

/**
 * Runs the guard of one developer on rows in memory, with a clock that jumps from one task to the next.
 *
 * @param tellsClientIp whether the developer's backend passes the addresses of its users
 * @param countries that `guard.countries` names
 * @param hasChallenge whether users are shown a challenge instead of a refusal
 */
export function createSimulation(
  startAt: number,
  {
    tellsClientIp,
    countries = [],
    hasChallenge = false,
  }: { tellsClientIp: boolean; countries?: readonly string[] | undefined; hasChallenge?: boolean },
) {
  const { rows, guard: stored } = createGuardRows()
  const keys = testKeys
  const guard = createGuard({
    settings: { ...guardOff, countries, challenge: hasChallenge ? { kind: 'altcha' } : null },
    keys,
    onFault(error) {
      throw error
    },
  })
  /** Verifications, as the records of phones keep them. */
  const phones = new Map<string, Pick<Sender, 'verifiedAt' | 'verifiedFrom'>>()
  const sentAt = new Map<string, number>()
  const alerts: Array<GuardAlert & { at: number }> = []
  const tasks = createTaskQueue()
  let now = startAt

  const apply = (changes: GuardChanges) => {
    for (const [key, row] of changes.rows) rows.set(key, row)
  }

  function senderOf({ phone, clientIp, deviceId = null }: Target): Sender {
    const record = phones.get(phone) ?? unknown
    return {
      ...record,
      sentAt: sentAt.get(phone) ?? 0,
      isKnownPhone: record.verifiedAt > now - knownLifetimeMs,
      contexts: hashContexts(keys, developerId, { clientIp, deviceId }),
    }
  }

  return {
    now: () => now,
    alerts,
    isKnown: (phone: string) => phones.has(phone),
    schedule: tasks.add,
    /** Distinct phones that count as verified in a country. */
    evidence: (country: string) => usageOf(rows.get(`${developerId} ${country}`), now).evidence,

    /**
     * Sends a message, or sends a request's code once more.
     *
     * @param isPerson whether the user passes a challenge
     * @returns the request; undefined if it was blocked
     */
    async send(
      target: Target,
      earlier?: SimulatedRequest,
      isPerson = false,
    ): Promise<SimulatedRequest | undefined> {
      const told = tellsClientIp ? target : { ...target, clientIp: null, deviceId: null }
      const request = earlier
        ? { ...earlier, resends: earlier.resends + 1 }
        : {
            ...told,
            developerId,
            environment: 'live' as const,
            provider: null,
            createdAt: now,
            resends: 0,
            sender: senderOf(told),
          }
      const sender = { ...request.sender, sentAt: sentAt.get(request.phone) ?? 0 }
      const judge = (challenge: ChallengeAnswer) => {
        const keysToJudge = guard.keysToJudge(request, sender, now)
        const { verdict, changes } = guard.judge(stored, keysToJudge, { ...request, challenge }, sender, now)
        apply(changes)
        return verdict
      }
      let verdict = judge(noToken)
      if (verdict.challenge === 'needed' && isPerson) verdict = judge({ outcome: 'passed', once: undefined })
      if (!verdict.blocked) sentAt.set(request.phone, now)
      if (verdict.alert) alerts.push({ ...verdict.alert, at: now })
      return verdict.blocked ? undefined : request
    },

    async verify(request: SimulatedRequest): Promise<void> {
      const { phone } = request
      const record = phones.get(phone) ?? unknown
      const sender = { ...request.sender, ...record }
      const converted = guard.keysToConvert(request, sender, now)
      apply(guard.convert(stored, converted, request, sender, now))
      const network = converted?.subjects?.network
      const from = [...sender.contexts, ...(network ? [network] : [])]
      const others = record.verifiedFrom.filter(({ hash }) => !from.includes(hash))
      phones.set(phone, {
        verifiedAt: now,
        verifiedFrom: [...from.map((hash) => ({ hash, verifiedAt: now })), ...others].slice(0, 8),
      })
    },

    /** Runs the tasks up to a time, and purges as the server does. */
    async runUntil(end: number): Promise<void> {
      let purgedAt = now
      while (tasks.nextAt() < end) {
        const task = tasks.take()
        now = task.at
        await task.run(now)
        if (now - purgedAt < dayMs) continue
        purgedAt = now
        for (const [key, { until }] of rows) if (until <= Math.floor(now / dayMs)) rows.delete(key)
      }
      now = end
    },
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
        let least = index
        for (const child of [2 * index + 1, 2 * index + 2])
          if (child < heap.length && isBefore(at(child), at(least))) least = child
        if (least === index) return first
        swap(index, least)
        index = least
      }
    },
  }
}
