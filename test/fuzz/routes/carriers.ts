import { dayMs, hourMs, minuteMs } from '../../../src/shared/durations.ts'
import { pick } from '../../helpers/seeded-random.ts'

/** Carriers of the simulation. The last two lie: they report every message delivered. */
export const carriers = ['ayr', 'bel', 'cor', 'dun', 'eck', 'fal'] as const
const honestCarriers = 4

/** Countries, those with the most traffic first. */
const countryCodes = [
  'IN', 'US', 'BR', 'ID', 'DE', 'GB', 'FR', 'TR', 'MX', 'NG', 'ES', 'IT', 'PL', 'NL', 'PH',
  'VN', 'EG', 'ZA', 'CO', 'AR', 'KE', 'SE', 'CH', 'MA', 'PE', 'CL', 'GR', 'NO', 'GH', 'UY',
] // prettier-ignore

/** A carrier's true state in a country. */
export type Lane = {
  /** In millionths. */
  price: number
  /** Share of messages that arrive while nothing is broken. */
  delivery: number
  /** The carrier takes messages and delivers none, until then. */
  deadUntil: number
}

export type SimulatedCountry = {
  code: string
  /** Share of the traffic. */
  weight: number
  /** Share of people who enter a code that arrived. */
  diligence: number
  /** By carrier. */
  lanes: Lane[]
  /** Changes with the state of any lane. */
  version: number
}

export type Death = { carrier: number; country: SimulatedCountry; at: number }

export type CarrierWorld = ReturnType<typeof createCarrierWorld>

/** Simulates six carriers whose prices and delivery drift, jump, fail for an hour and die in a country. */
export function createCarrierWorld(random: () => number, startAt: number) {
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  const lognormal = (sigma: number) => Math.exp(sigma * normal())
  /** Most lanes deliver more than nine of ten messages, one in eight is poor. */
  const drawDelivery = () =>
    random() < 0.125 ? 0.55 + 0.25 * random() : Math.min(0.985, 0.97 - Math.abs(normal()) * 0.04)
  const totalWeight = countryCodes.reduce((sum, _, index) => sum + 1 / (index + 1), 0)
  const countries = countryCodes.map((code, index): SimulatedCountry => {
    const base = 30_000 * lognormal(0.7)
    return {
      code,
      weight: 1 / (index + 1) / totalWeight,
      diligence: 0.82 + 0.11 * random(),
      lanes: carriers.map(() => ({
        price: base * lognormal(0.45),
        delivery: drawDelivery(),
        deadUntil: 0,
      })),
      version: 0,
    }
  })
  /** Until then, a carrier refuses every message, or takes it and delivers none. */
  const outages = carriers.map(() => ({ until: 0, isSilent: false }))
  let nextStepAt = startAt
  const deaths: Death[] = []

  /** Changes the state once a minute: many small steps of a drift, a few events. */
  function step(now: number) {
    const perStep = minuteMs / dayMs
    for (const outage of outages) {
      if (outage.until > 0 && outage.until <= now) touchAll(() => (outage.until = 0))
      // An hour's outage about every five days.
      if (outage.until === 0 && random() < perStep / 5)
        touchAll(() => Object.assign(outage, { until: now + hourMs, isSilent: random() < 0.5 }))
    }
    for (const country of countries) {
      for (const [carrier, lane] of country.lanes.entries()) {
        if (lane.deadUntil > 0 && lane.deadUntil <= now) touch(country, () => (lane.deadUntil = 0))
        if (random() < perStep * 2) drift(country, lane)
        const event = random() / perStep
        if (event < 1 / 20) touch(country, () => (lane.price *= pick([0.6, 0.75, 1.3, 1.6], random)))
        else if (event < 1 / 20 + 1 / 15) touch(country, () => (lane.delivery = drawDelivery()))
        else if (event < 1 / 20 + 1 / 15 + 1 / 20 && lane.deadUntil === 0) {
          touch(country, () => (lane.deadUntil = now + (2 + 10 * random()) * hourMs))
          deaths.push({ carrier, country, at: now })
        }
      }
    }
  }

  function drift(country: SimulatedCountry, lane: Lane) {
    touch(country, () => {
      lane.price *= lognormal(0.02)
      lane.delivery = Math.min(0.985, Math.max(0.4, lane.delivery + 0.01 * normal()))
    })
  }

  function touch(country: SimulatedCountry, change: () => unknown) {
    change()
    country.version++
  }

  function touchAll(change: () => unknown) {
    change()
    for (const country of countries) country.version++
  }

  return {
    countries,

    /** Brings the state to a time. @returns the deaths that began */
    advance(now: number): Death[] {
      for (; nextStepAt <= now; nextStepAt += minuteMs) step(nextStepAt)
      return deaths.splice(0)
    },

    /** Draws the country of a send by its share of the traffic. @param random not that of the world, so that its state is the same for any traffic */
    drawCountry(random: () => number): SimulatedCountry {
      let left = random()
      for (const country of countries) {
        left -= country.weight
        if (left < 0) return country
      }
      return pick(countries, random)
    },

    isRefusing: (carrier: number, now: number) => {
      const outage = outages[carrier]
      return outage !== undefined && outage.until > now && !outage.isSilent
    },

    /** The share of messages that arrive at this moment. */
    deliveryAt(country: SimulatedCountry, carrier: number, now: number): number {
      const lane = country.lanes[carrier]
      const outage = outages[carrier]
      if (!lane || !outage || outage.until > now || lane.deadUntil > now) return 0
      return lane.delivery
    },

    /** Share of messages that did not arrive for which the carrier says so. One that delivers nothing says nothing. */
    honesty: (carrier: number, delivery: number) => (carrier < honestCarriers && delivery > 0 ? 0.5 : 0),
  }
}
