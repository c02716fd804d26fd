import { dayMs, hourMs, minuteMs } from '../../../src/shared/durations.ts'
import { personAddress, randomPhone, type Country } from './population.ts'
import type { SimulatedRequest, Simulation } from './simulation.ts'

/** Honest people of a period, and those who were refused a code. */
export type HonestCount = {
  users: number
  refused: number
  refusedKnown: number
  refusedByCountry: Map<string, number>
  usersByCountry: Map<string, number>
}

export const noHonest = (): HonestCount => ({
  users: 0,
  refused: 0,
  refusedKnown: 0,
  refusedByCountry: new Map(),
  usersByCountry: new Map(),
})

/** Share of the people who come back with a phone that they verified before. */
const returning = 0.25
const typingErrors = 0.03
/** Shares of the people without a code that ask for another message, and that try again later that day. */
const resendsOfLost = 0.3
const laterOfLost = 0.03

type Person = { phone: string; clientIp: string }

/**
 * Creates honest people as they are: some ask for the code again, some mistype their number and correct it, some give
 * up, some come back hours later.
 */
export function createPeople(simulation: Simulation, random: () => number) {
  const customers = new Map<string, Person[]>()
  let count = noHonest()

  /** Seconds until a code is entered: 20 in the middle, minutes for some. */
  const entryMs = () => 1000 * Math.min(280, 6 + 14 * Math.exp(normal(random) * 0.9))

  async function visit(
    country: Country,
    person: Person,
    conversion: number,
    at: number,
    isRetry = false,
  ): Promise<void> {
    const isKnown = simulation.isKnown(person.phone)
    const { code, isRelayed = false } = country
    const target = { ...person, appId: 'app_0', country: code, numberType: null, isRelayed }
    if (!isRetry) {
      count.users++
      count.usersByCountry.set(country.code, (count.usersByCountry.get(country.code) ?? 0) + 1)
    }
    let isRefused = false
    const refuse = (phone = person.phone) => {
      if (isRefused) return
      isRefused = true
      count.refused++
      if (isKnown && phone === person.phone) count.refusedKnown++
      count.refusedByCountry.set(country.code, (count.refusedByCountry.get(country.code) ?? 0) + 1)
    }
    if (!isRetry && random() < typingErrors) {
      // The last digits are wrong, or one in the middle.
      const place = person.phone.length - 1 - Math.floor(random() * 7)
      const wrong = (Number(person.phone[place]) + 1 + Math.floor(random() * 9)) % 10
      const phone = `${person.phone.slice(0, place)}${wrong}${person.phone.slice(place + 1)}`
      if (!(await simulation.send({ ...target, phone }, undefined, true))) return refuse(phone)
      return simulation.schedule(at + (20 + 60 * random()) * 1000, (now) =>
        visit(country, person, conversion, now, true),
      )
    }
    const request = await simulation.send(target, undefined, true)
    if (!request) return refuse()
    const succeeds = random() < (isKnown ? Math.max(success(conversion), 0.8) : success(conversion))
    if (succeeds) return enterLater(country, person, request, at)
    if (random() < resendsOfLost) resendLater(request, at, refuse)
    if (random() < laterOfLost)
      simulation.schedule(at + hourMs * (0.5 + 6 * random()), (now) =>
        visit(country, person, conversion, now, true),
      )
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

  function resendLater(request: SimulatedRequest, at: number, refuse: () => void) {
    simulation.schedule(at + 35_000 + random() * minuteMs, async (now) => {
      const resent = await simulation.send(request, request, true)
      if (!resent) return refuse()
      if (resent.resends < 3 && random() < resendsOfLost) resendLater(resent, now, refuse)
    })
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
          simulation.schedule(at, (now) => visit(country, newPerson(country), country.conversion, now))
      }
    },

    /** Lets one person from an address arrive. */
    arriveFrom(country: Country, clientIp: string, conversion: number, at: number): void {
      const person = { phone: randomPhone(country, random), clientIp }
      simulation.schedule(at, (now) => visit(country, person, conversion, now))
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
