import { dayMs, hourMs, minuteMs } from '../../../src/shared/durations.ts'
import type { CostlyNumberType } from '../../../src/domain/model/number-type.ts'
import { seededRandom } from '../../helpers/seeded-random.ts'
import { byHour, createPeople, type HonestCount } from './honest.ts'
import {
  coldCountry,
  makeCountries,
  newCountry,
  randomPhone,
  rentAddresses,
  type Country,
  type Target,
} from './population.ts'
import { openSimulation, type Simulation } from './simulation.ts'

/** A message of an attacker: how many there were, and how many left. */
export type PumpCount = { sent: number; left: number; leftAfterHundred: number }

export type Figures = {
  pumped: PumpCount | undefined
  honest: HonestCount
  /** Country that was attacked. */
  target: Country | undefined
  /** From the start of the attack to the alert for its country. */
  alertMs: number | undefined
}

type Pump = {
  perMinute: number
  days?: number
  /** Whether the developer verified codes in the attacked country before. */
  inConverting?: boolean
  /** Share of the codes that the attacker enters. */
  verifies?: number
  /** Applications of the developer that the attacker uses in turn; 1 by default. */
  applications?: number
  /** Number of addresses; 0 if the backend tells none. */
  addresses: number
  /** The n-th number. */
  phone?: (
    country: Country,
    n: number,
    random: () => number,
  ) => Pick<Target, 'phone' | 'country' | 'costlyType'>
}

export type Trace = {
  name: string
  tellsClientIp: boolean
  /** Goals; undefined where the trace has none. */
  goal: {
    left?: number
    afterHundred?: number
    refused?: number
    refusedElsewhere?: number
    alertMinutes?: number
  }
  pump?: Pump
  honest?: 'launch' | 'campus'
}

const few = 0.001
const stopped = { afterHundred: 0.01, refusedElsewhere: few }

const consecutive: Pump['phone'] = ({ callingCode, code }, n) => ({
  phone: `+${callingCode}7${String(10_009_900 + n).padStart(8, '0')}`,
  country: code,
  costlyType: null,
})
const prefixes: Pump['phone'] = ({ callingCode, code }, n) => ({
  phone: `+${callingCode}7${String((1_000 + n) % 10_000).padStart(4, '0')}${String(Math.floor(n / 10_000) * 7 + 1234).padStart(4, '0')}`,
  country: code,
  costlyType: null,
})
const costly: Array<[string, string | null, CostlyNumberType]> = [
  ['+1900', 'US', 'premium'],
  ['+979', null, 'premium'],
  ['+881', null, 'satellite'],
  ['+882', null, 'international'],
  ['+4470', 'GB', 'personal'],
  ['+49180', 'DE', 'sharedCost'],
]
const costlyPhones: Pump['phone'] = (_, n) => {
  const [prefix, country, costlyType] = costly[n % costly.length] ?? ['+979', null, 'premium']
  return { phone: `${prefix}${String(1_000_000 + n * 7)}`, country, costlyType }
}

/** The traces, each in addition to honest traffic of 30 countries with 14 days of history. */
export const traces: Trace[] = [
  { name: 'steady traffic of 30 countries', tellsClientIp: true, goal: { refused: few } },
  { name: 'the same, clientIp not told', tellsClientIp: false, goal: { refused: few } },
  { name: 'launch day: 20 to 200 an hour in a new country', tellsClientIp: true, honest: 'launch', goal: { refused: few } },
  { name: 'the same, clientIp not told', tellsClientIp: false, honest: 'launch', goal: { refused: few } },
  { name: 'campus: 3,000 people behind one address', tellsClientIp: true, honest: 'campus', goal: { refused: few } },
  { name: 'consecutive numbers, 60/min, new country', tellsClientIp: false, goal: stopped, pump: { perMinute: 60, addresses: 0, phone: consecutive } },
  { name: 'consecutive numbers, 60/min, converting country', tellsClientIp: false, goal: stopped, pump: { perMinute: 60, addresses: 0, inConverting: true, phone: consecutive } },
  { name: 'one number of each prefix, 60/min, new country', tellsClientIp: false, goal: stopped, pump: { perMinute: 60, addresses: 0, phone: prefixes } },
  { name: 'random numbers, 30/min, new country', tellsClientIp: false, goal: stopped, pump: { perMinute: 30, addresses: 0 } },
  { name: 'random numbers, 30/min, 10,000 addresses, new country', tellsClientIp: true, goal: stopped, pump: { perMinute: 30, addresses: 10_000 } },
  { name: 'the same, 5 % of the codes entered', tellsClientIp: true, goal: stopped, pump: { perMinute: 30, addresses: 10_000, verifies: 0.05 } },
  { name: 'random numbers, 30/min, through five applications, new country', tellsClientIp: false, goal: stopped, pump: { perMinute: 30, addresses: 0, applications: 5 } },
  { name: 'slow: 1/min for 3 days, 10,000 addresses, new country', tellsClientIp: true, goal: stopped, pump: { perMinute: 1, days: 3, addresses: 10_000 } },
  { name: 'one network, 60/min, converting country', tellsClientIp: true, goal: stopped, pump: { perMinute: 60, addresses: 1, inConverting: true } },
  { name: 'premium, satellite, personal, shared-cost numbers', tellsClientIp: true, goal: stopped, pump: { perMinute: 60, addresses: 10_000, phone: costlyPhones } },
  { name: 'random numbers, 30/min, 10,000 addresses, converting country', tellsClientIp: true, goal: { left: 0.25, refused: few }, pump: { perMinute: 30, addresses: 10_000, inConverting: true } },
  { name: 'the same, clientIp not told', tellsClientIp: false, goal: { refused: few, alertMinutes: 10 }, pump: { perMinute: 30, addresses: 0, inConverting: true } },
] // prettier-ignore

const historyDays = 14
const startAt = Date.parse('2027-03-01T00:00:00Z')

/** Runs a trace. The same seed gives the same figures. */
export async function runTrace(trace: Trace, seed: number): Promise<Figures> {
  const random = seededRandom(seed)
  const countries = makeCountries(random)
  const simulation = await openSimulation(startAt, trace.tellsClientIp)
  try {
    const people = createPeople(simulation, random)
    const attackAt = startAt + historyDays * dayMs + Math.floor(random() * dayMs)
    const end = attackAt + (trace.pump?.days ?? 1) * dayMs
    for (const country of countries) people.arrive(country, startAt, end, byHour(country.messagesPerDay))
    await simulation.runUntil(attackAt)
    people.restart()
    if (trace.honest === 'launch')
      people.arrive(newCountry, attackAt, end, (at) => 20 + (180 * (at - attackAt)) / dayMs)
    if (trace.honest === 'campus') arriveOnCampus(people, countries[0] ?? newCountry, attackAt, random)
    // The attacker does not choose a country with hardly any messages.
    const target = trace.pump?.inConverting ? countries[Math.floor(random() * 15)] : coldCountry
    const pumped =
      trace.pump && target ? startPump(simulation, trace.pump, target, { attackAt, end, random }) : undefined
    await simulation.runUntil(end)
    const alert = simulation.alerts.find(({ country, at }) => at >= attackAt && country === target?.code)
    return {
      pumped,
      honest: people.restart(),
      target: trace.pump && target,
      alertMs: alert && alert.at - attackAt,
    }
  } finally {
    await simulation.dispose()
  }
}

/** 3,000 people of one university in eight hours; of them 300 in one lecture hall sign up within two minutes. */
function arriveOnCampus(
  people: ReturnType<typeof createPeople>,
  country: Country,
  from: number,
  random: () => number,
) {
  for (let person = 0; person < 3_000; person++) {
    const at = person < 300 ? from + hourMs + random() * 2 * minuteMs : from + random() * 8 * hourMs
    people.arriveFrom(country, '198.51.100.7', 0.85, at)
  }
}

function startPump(
  simulation: Simulation,
  pump: Pump,
  target: Country,
  { attackAt, end, random }: { attackAt: number; end: number; random: () => number },
): PumpCount {
  const {
    perMinute,
    verifies = 0,
    phone = (country) => ({ phone: randomPhone(country, random), country: country.code, costlyType: null }),
  } = pump
  const count: PumpCount = { sent: 0, left: 0, leftAfterHundred: 0 }
  const addresses = rentAddresses(pump.addresses, random)
  let leftOnDay = 0
  const sendOne = async (now: number) => {
    const n = count.sent++
    if (n % (perMinute * 1440) === 0) leftOnDay = 0
    const clientIp = addresses[Math.floor(random() * addresses.length)] ?? null
    const appId = `app_${n % (pump.applications ?? 1)}`
    const request = await simulation.send({ ...phone(target, n, random), appId, clientIp })
    const next = attackAt + ((n + 1) * minuteMs) / perMinute
    if (next < end) simulation.schedule(next, sendOne)
    if (!request) return
    count.left++
    if (++leftOnDay > 100) count.leftAfterHundred++
    if (random() < verifies) simulation.schedule(now + 15_000, () => simulation.verify(request))
  }
  simulation.schedule(attackAt, sendOne)
  return count
}
