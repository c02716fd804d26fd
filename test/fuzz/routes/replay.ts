import { createCircuitBreaker } from '../../../src/delivery/circuit-breaker.ts'
import { accepted } from '../../../src/delivery/kit/provider.ts'
import type { Failure } from '../../../src/domain/model/delivery.ts'
import type { LearningStrategy, RouteCell } from '../../../src/domain/model/route-choice.ts'
import { chooseProviders } from '../../../src/domain/routing/choice.ts'
import { attributeOutcome, type AcceptedMessage } from '../../../src/domain/routing/learning.ts'
import { createRouteStatistics } from '../../../src/domain/routing/statistics.ts'
import { dayMs, hourMs, minuteMs, secondMs } from '../../../src/shared/durations.ts'
import { seededRandom } from '../../helpers/seeded-random.ts'
import { carriers, createCarrierWorld, type Death, type SimulatedCountry } from './carriers.ts'
import {
  byTruth,
  expectOrders,
  expectRequest,
  fixedOrders,
  messagesMax,
  resendShare,
  type Expected,
} from './expected.ts'
import { createSenders, type Poisoning, type Sender } from './senders.ts'

const ttlMs = 5 * minuteMs
/** The beginning of the simulated time, so that times are as large as real ones. */
const startAt = Date.UTC(2026, 0, 1)

export type Totals = { cost: number; verified: number }

/** Extent of a replay. Figures are of the days after the warm-up. */
export type ReplayForm = {
  sends: number
  days: number
  warmUpDays: number
  /** Attack on a country. All figures are of its customers then. */
  attack?: Poisoning
}

export type ReplayFigures = {
  sends: number
  strategy: Totals
  oracle: Totals
  /** The fixed order with the least cost per verified code, and the one with the most verified codes. */
  cheapestOrder: Totals
  bestOrder: Totals
  /** Codes of the hours after a carrier died in a country that it served, and those lost to it. */
  deaths: { count: number; codes: number; lost: number }
  explored: number
  /** Codes of the attack. */
  attacked: number
}

type Request = {
  country: SimulatedCountry
  sentAt: number
  /** Whether the person enters a code that arrives. */
  isDiligent: boolean
  /** Undefined for a customer. */
  attack: Poisoning | undefined
  sender: Sender
  resends: number
  accepted: Array<AcceptedMessage<RouteCell>>
  undelivered: string[]
  isOpen: boolean
  lossOf: DeathWatch | undefined
}

type DeathWatch = Death & { codes: number; lost: number; until: number }

/**
 * Replays sends through simulated carriers: the product's own choice and statistics on one side, the true state on the other.
 */
export function replay(
  strategy: LearningStrategy,
  seed: number,
  { sends, days, warmUpDays, attack }: ReplayForm,
): ReplayFigures {
  // Three sources, so that a seed is the same world with the same traffic for any strategy.
  const random = seededRandom(seed)
  const world = createCarrierWorld(seededRandom(seed + 1), startAt)
  const traffic = seededRandom(seed + 2)
  const senders = createSenders(seededRandom(seed + 3))
  const statistics = createRouteStatistics()
  const breakers = carriers.map(() => createCircuitBreaker())
  const tasks = createSchedule()
  const measured = { strategy: { cost: 0, verified: 0 }, oracle: { cost: 0, verified: 0 } }
  const orders = fixedOrders.map(() => ({ cost: 0, verified: 0 }))
  const measureFrom = startAt + warmUpDays * dayMs
  const watches: DeathWatch[] = []
  const finished: DeathWatch[] = []
  let explored = 0
  let attacked = 0
  let attackedAt = 0
  let counted = 0
  /** First messages of the last hours, by country and carrier: who serves a country. */
  const served = new Map<string, number>()

  const isMeasured = ({ sentAt, country, attack: own }: Request) =>
    sentAt >= measureFrom && !own && (!attack || country.code === attack.country)

  function dispatch(request: Request, now: number) {
    const { country } = request
    const choice = chooseProviders(
      {
        strategy,
        channel: 'sms',
        country: country.code,
        candidates: carriers.flatMap((provider, carrier) =>
          request.undelivered.includes(provider)
            ? []
            : {
                provider,
                price: Math.round(country.lanes[carrier]?.price ?? 0),
                isOpen: breakers[carrier]?.openState(now) !== undefined,
                wasTried: request.accepted.some(({ cell }) => cell.provider === provider),
              },
        ),
      },
      (cell) => statistics.estimate(cell, now),
      random,
    )
    if (choice.reason === 'explored' && isMeasured(request)) explored++
    for (const { provider } of choice.considered) {
      const carrier = carriers.findIndex((name) => name === provider)
      const breaker = breakers[carrier]
      if (!breaker || breaker.openState(now)) continue
      breaker.beginSend(now)
      const isRefused = world.isRefusing(carrier, now)
      breaker.recordOutcome(isRefused ? { kind: 'refused', failure: down } : accepted(null), now)
      if (!isRefused) return hand(request, carrier, provider, now)
    }
  }

  function hand(request: Request, carrier: number, provider: string, now: number) {
    const { country } = request
    const cell: RouteCell = { provider, channel: 'sms', country: country.code }
    if (isMeasured(request)) measured.strategy.cost += country.lanes[carrier]?.price ?? 0
    if (request.accepted.length === 0) {
      const key = `${country.code}/${carrier}`
      served.set(key, (served.get(key) ?? 0) + 1)
    }
    request.accepted.push({ cell, sentAt: now })
    statistics.recordSent(cell, now)
    if (request.lossOf?.carrier !== carrier) request.lossOf = watchFor(country, carrier, request)
    if (request.attack) {
      if (request.attack.resends && request.resends < messagesMax - 1)
        tasks.at(now + 31 * secondMs, (at) => resend(request, at))
      return
    }
    const delivery = world.deliveryAt(country, carrier, now)
    if (random() < delivery) {
      // Median 22 seconds: 4 of the network, 18 of the person.
      const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
      if (request.isDiligent)
        tasks.at(now + 4 * secondMs + 18 * secondMs * Math.exp(0.7 * normal), (at) => verify(request, at))
    } else if (random() < world.honesty(carrier, delivery)) {
      tasks.at(now + 8 * secondMs, (at) => {
        request.undelivered.push(provider)
        if (request.isOpen) dispatch(request, at)
      })
    } else if (request.resends < messagesMax - 1 && random() < resendShare) {
      tasks.at(now + 30 * secondMs - 15 * secondMs * Math.log(1 - random()), (at) => resend(request, at))
    }
  }

  function resend(request: Request, now: number) {
    if (!request.isOpen) return
    request.resends++
    const last = request.accepted.at(-1)
    if (last) statistics.recordResent(last.cell, last.sentAt)
    dispatch(request, now)
  }

  function watchFor(country: SimulatedCountry, carrier: number, { sentAt, lossOf }: Request) {
    const watch = watches.find(
      (one) => one.country === country && one.carrier === carrier && sentAt >= one.at && sentAt < one.until,
    )
    return watch ?? lossOf
  }

  function verify(request: Request, now: number) {
    if (!request.isOpen) return
    request.isOpen = false
    if (isMeasured(request)) measured.strategy.verified++
    learn(request, true, now)
  }

  function expire(request: Request, now: number) {
    if (!request.isOpen) return
    request.isOpen = false
    if (request.lossOf && request.isDiligent) request.lossOf.lost++
    learn(request, false, now)
  }

  function learn({ accepted: messages, sender }: Request, isVerified: boolean, now: number) {
    if (isVerified) senders.verify(sender)
    for (const { cell, ...outcome } of attributeOutcome(messages, isVerified))
      statistics.recordOutcome(cell, { ...outcome, isKnown: sender.isKnown }, now)
  }

  function start(request: Request, now: number) {
    dispatch(request, now)
    tasks.at(now + ttlMs, (at) => expire(request, at))
  }

  function poison(one: Poisoning, { country, accepted: [first] }: Request, now: number) {
    const best = carriers[byTruth(world, country, now)([], []) ?? -1]
    if (now < attackedAt + one.pauseMs || (one.isAdaptive && first?.cell.provider !== best)) return
    attackedAt = now
    for (let n = 0; n < one.perCode; n++) {
      const sender = senders.attacker(one, now)
      if (!sender) continue
      attacked++
      start({ ...newRequest(country, now), attack: one, sender }, now)
    }
  }

  const expectations = createExpectations(world, measured.oracle, orders)

  function beginMinute(now: number) {
    for (const death of world.advance(now)) {
      const servedBy = carriers.map((_, carrier) => served.get(`${death.country.code}/${carrier}`) ?? 0)
      const total = servedBy.reduce((sum, count) => sum + count, 0)
      const isServing = (servedBy[death.carrier] ?? 0) > total / 2
      if (now >= measureFrom && isServing) watches.push({ ...death, codes: 0, lost: 0, until: now + hourMs })
    }
    // As a node reads the rows of the others.
    statistics.recount(now)
    for (const [key, count] of served) served.set(key, count * 0.98)
    const ended = watches.findIndex(({ until }) => until + ttlMs < now)
    if (ended >= 0) finished.push(...watches.splice(ended, 1))
  }

  const endAt = startAt + days * dayMs
  const perMs = sends / (days * dayMs)
  let minute = startAt
  for (let now = startAt; now < endAt;) {
    for (; minute <= now; minute += minuteMs) {
      tasks.runUntil(minute)
      beginMinute(minute)
    }
    tasks.runUntil(now)
    const country = world.drawCountry(traffic)
    const request: Request = {
      ...newRequest(country, now),
      isDiligent: traffic() < country.diligence,
      sender: senders.customer(country.code, now),
    }
    for (const watch of watches)
      if (watch.country === country && now >= watch.at && now < watch.until) watch.codes++
    if (isMeasured(request)) {
      counted++
      expectations.count(country, now)
    }
    start(request, now)
    if (attack && country.code === attack.country && now >= measureFrom) poison(attack, request, now)
    // Busy days and quiet nights.
    const busy = 1 + 0.6 * Math.sin((2 * Math.PI * (now - startAt)) / dayMs)
    now += -Math.log(1 - traffic()) / (perMs * busy)
  }
  tasks.runUntil(endAt + ttlMs)
  expectations.finish()
  const watched = [...finished, ...watches]
  return {
    sends: counted,
    ...measured,
    cheapestOrder: orders.toSorted((a, b) => a.cost / a.verified - b.cost / b.verified)[0] ?? nothing,
    bestOrder: orders.toSorted((a, b) => b.verified - a.verified)[0] ?? nothing,
    deaths: {
      count: watched.length,
      codes: watched.reduce((sum, { codes }) => sum + codes, 0),
      lost: watched.reduce((sum, { lost }) => sum + lost, 0),
    },
    explored,
    attacked,
  }
}

const newRequest = (country: SimulatedCountry, now: number) => ({
  country,
  sentAt: now,
  isDiligent: false,
  attack: undefined,
  resends: 0,
  accepted: [],
  undelivered: [],
  isOpen: true,
  lossOf: undefined,
})

const nothing: Totals = { cost: 0, verified: 0 }
const down: Failure = { class: 'provider_down', permanent: false, at: 'account', providerCode: '503' }

/** Adds up what the oracle and each fixed order would have spent and had verified. */
function createExpectations(
  world: ReturnType<typeof createCarrierWorld>,
  oracle: Totals,
  orders: readonly Totals[],
) {
  /** Sends of each country since its state changed, with what to expect of one. */
  const open = new Map<SimulatedCountry, { version: number; sends: number; expected: Expected[] }>()
  const totals = [oracle, ...orders]

  function add({ sends, expected }: { sends: number; expected: Expected[] }) {
    for (const [index, { cost, verified }] of expected.entries()) {
      const total = totals[index]
      if (!total) continue
      total.cost += sends * cost
      total.verified += sends * verified
    }
  }

  return {
    count(country: SimulatedCountry, now: number): void {
      const current = open.get(country)
      if (current?.version === country.version) return void current.sends++
      if (current) add(current)
      const best = expectRequest(world, country, now, byTruth(world, country, now))
      const expected = [best, ...expectOrders(world, country, now)]
      open.set(country, { version: country.version, sends: 1, expected })
    },

    finish: () => open.forEach(add),
  }
}

/** Runs tasks in the order of their times, to the second. */
function createSchedule() {
  const bySecond = new Map<number, Array<(at: number) => void>>()
  let second = 0
  return {
    at(time: number, task: (at: number) => void): void {
      const key = Math.max(second, Math.ceil(time / secondMs))
      const tasks = bySecond.get(key)
      if (tasks) tasks.push(task)
      else bySecond.set(key, [task])
    },
    runUntil(now: number): void {
      const last = Math.floor(now / secondMs)
      if (second === 0) second = last
      for (; second <= last; second++) {
        const tasks = bySecond.get(second) ?? []
        for (let index = 0; index < tasks.length; index++) tasks[index]?.(second * secondMs)
        bySecond.delete(second)
      }
    },
  }
}
