import { dayMs, hourMs, minuteMs } from '../../../src/shared/durations.ts'
import { personAddress, randomPhone, type Country } from './population.ts'
import type { SimulatedRequest, Simulation } from './simulation.ts'

/** People, those who were refused a code at least once, and those who gave up without one. */
export type UserCount = { users: number; refused: number; lost: number }

export const noUsers = (): UserCount => ({ users: 0, refused: 0, lost: 0 })

/** Honest people of a period. */
export type HonestCount = { byCountry: Map<string, UserCount>; refusedKnown: number }

export const noHonest = (): HonestCount => ({ byCountry: new Map(), refusedKnown: 0 })

/** Share of the people who come back with a phone that they verified before. */
const returning = 0.25
const typingErrors = 0.03
/** Shares of the people without a code that ask for another message, and that try again later that day. */
const resendsOfLost = 0.3
const laterOfLost = 0.03
/** How often a person who is refused tries again before giving up, and the share of those who come back on the next day. */
const triesAgain = 3
const backNextDay = 0.5

type Person = { phone: string; clientIp: string }

/** A person who wants a code. */
type Visit = { country: Country; person: Person; conversion: number; refusals: number; hasCode: boolean }

/**
 * Creates honest people as they are: some ask for the code again, some mistype their number and correct it, some give
 * up, some come back hours later. Those who are refused try again after a minute or two.
 */
export function createPeople(simulation: Simulation, random: () => number) {
  const customers = new Map<string, Person[]>()
  let count = noHonest()

  /** Seconds until a code is entered: 20 in the middle, minutes for some. */
  const entryMs = () => 1000 * Math.min(280, 6 + 14 * Math.exp(normal(random) * 0.9))

  function countUser(country: Country, kind: keyof UserCount) {
    const users = count.byCountry.get(country.code) ?? noUsers()
    users[kind]++
    count.byCountry.set(country.code, users)
  }

  /** Starts the visit of a new person. */
  function arrive(country: Country, person: Person, conversion: number, at: number) {
    countUser(country, 'users')
    return visit({ country, person, conversion, refusals: 0, hasCode: false }, at, random() < typingErrors)
  }

  /** Counts a refusal, and lets the person try again. */
  function refuse(visited: Visit, at: number, tryAgain: (now: number) => Promise<void>) {
    if (visited.refusals === 0) countUser(visited.country, 'refused')
    if (visited.refusals++ < triesAgain) {
      simulation.schedule(at + 30_000 + random() * 2 * minuteMs, tryAgain)
    } else if (!visited.hasCode) {
      const { country, person, conversion } = visited
      countUser(country, 'lost')
      if (random() < backNextDay)
        simulation.schedule(at + (20 + 8 * random()) * hourMs, (now) =>
          arrive(country, person, conversion, now),
        )
    }
  }

  async function visit(visited: Visit, at: number, isMistyped = false): Promise<void> {
    const { country, person, conversion } = visited
    const isKnown = simulation.isKnown(person.phone)
    const { code, isRelayed = false } = country
    const target = { ...person, appId: 'app_0', country: code, numberType: null, isRelayed }
    const again = (now: number) => visit(visited, now)
    if (isMistyped) {
      // The last digits are wrong, or one in the middle.
      const place = person.phone.length - 1 - Math.floor(random() * 7)
      const wrong = (Number(person.phone[place]) + 1 + Math.floor(random() * 9)) % 10
      const phone = `${person.phone.slice(0, place)}${wrong}${person.phone.slice(place + 1)}`
      if (!(await simulation.send({ ...target, phone }, undefined, true))) return refuse(visited, at, again)
      return simulation.schedule(at + (20 + 60 * random()) * 1000, again)
    }
    const request = await simulation.send(target, undefined, true)
    if (!request) {
      if (isKnown) count.refusedKnown++
      return refuse(visited, at, again)
    }
    visited.hasCode = true
    const succeeds = random() < (isKnown ? Math.max(success(conversion), 0.8) : success(conversion))
    if (succeeds) return enterLater(country, person, request, at)
    if (random() < resendsOfLost) resendLater(visited, request, at)
    if (random() < laterOfLost) simulation.schedule(at + hourMs * (0.5 + 6 * random()), again)
  }

  function enterLater(country: Country, person: Person, request: SimulatedRequest, at: number) {
    const enterAt = at + entryMs()
    let newest = request
    if (enterAt - at > 60_000 && random() < 0.5) {
      simulation.schedule(at + 45_000, async () => {
        newest = (await simulation.send(request, request, true)) ?? newest
      })
    }
    simulation.schedule(enterAt, async () => {
      if (!country.isRelayed) await simulation.verify(newest)
      const list = customers.get(country.code)
      if (list) list.push(person)
      else customers.set(country.code, [person])
    })
  }

  function resendLater(visited: Visit, request: SimulatedRequest, at: number) {
    const resend = async (now: number) => {
      const resent = await simulation.send(request, request, true)
      if (!resent) return refuse(visited, now, resend)
      if (resent.resends < 3 && random() < resendsOfLost) resendLater(visited, resent, now)
    }
    simulation.schedule(at + 35_000 + random() * minuteMs, resend)
  }

  function newPerson(country: Country): Person {
    const known = customers.get(country.code)
    const returned = known && random() < returning ? known[Math.floor(random() * known.length)] : undefined
    return returned ?? { phone: randomPhone(country, random), clientIp: personAddress(country, random) }
  }

  return {
    /** Starts a new count of people. @returns the count so far */
    restart(): HonestCount {
      const previous = count
      count = noHonest()
      return previous
    },

    /** Lets people of a country arrive at random times, `perHour` of them on average (a Poisson process). */
    arrive(country: Country, from: number, until: number, perHour: (at: number) => number): void {
      const peak = Math.max(perHour(from), perHour(until - 1), perHour((from + until) / 2))
      for (let at = from; ;) {
        at += (-Math.log(1 - random()) * hourMs) / peak
        if (at >= until) return
        if (random() * peak <= perHour(at))
          simulation.schedule(at, (now) => arrive(country, newPerson(country), country.conversion, now))
      }
    },

    /** Lets one person from an address arrive. */
    arriveFrom(country: Country, clientIp: string, conversion: number, at: number): void {
      const person = { phone: randomPhone(country, random), clientIp }
      simulation.schedule(at, (now) => arrive(country, person, conversion, now))
    },
  }
}

/** More people by day than by night: a fifth of the average at four in the morning, twice the average at four. */
export const byHour = (perDay: number) => (at: number) =>
  (perDay / 24) * (1 - 0.8 * Math.cos((2 * Math.PI * ((at % dayMs) - 4 * hourMs)) / dayMs))

/**
 * Share of the people who enter their code, for a share of messages: those who do not cause 1.46 messages each, and typing
 * errors 0.03.
 */
const success = (conversion: number) => (1.49 * conversion) / (1 + 0.46 * conversion)

function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
}
