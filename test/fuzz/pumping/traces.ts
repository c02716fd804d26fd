import { dayMs, hourMs, minuteMs } from '../../../src/shared/durations.ts'
import { seededRandom } from '../../helpers/seeded-random.ts'
import { allowances } from '../../../src/domain/guard/allowances.ts'
import { startAttack, type Attack } from './attacks.ts'
import { byHour, createPeople, noUsers, type UserCount } from './honest.ts'
import { coldCountries, countryCodes, makeCountries, newCountry, type Country } from './population.ts'
import { createSimulation } from './simulation.ts'

export type Trace = {
  name: string
  tellsClientIp: boolean
  /** Whether honest users pass a challenge where they would be refused; the attacker does not. */
  hasChallenge?: boolean
  /** Goals; undefined where the trace has none. */
  goal: {
    /** Most messages of any 24 hours, as a share of the allowance. */
    ofAllowance?: number
    /** Whether only the pool and the attacker's own phones may pay. */
    isCold?: boolean
    /** Honest users of the attacked country refused, of each day, and of each from the second on. */
    refused?: number
    refusedLater?: number
    alertMinutes?: number
  }
  attack?: Attack
  /** Attacks at the same time. */
  also?: readonly Attack[]
  /** `few`: the countries that are attacked have one to five verified phones. */
  honest?: 'launch' | 'campus' | 'newcomer' | 'relay' | 'few'
  /** Whether the attacked country is a small one, with an allowance of a few thousand messages. */
  isSmall?: boolean
  countries?: string[]
}

export type Figures = {
  /** Messages that left unverified, in the worst 24 hours, and the bound. */
  left: number
  bound: number
  sent: number
  /** Phones of the attacker that were verified. */
  ownPhones: number
  /** Honest users of the attacked country, by day, and of all days: those who were refused, and who never got a code. */
  days: UserCount[]
  ofTarget: UserCount
  ofOthers: UserCount
  refusedKnown: number
  /** Evidence of the attacked country at the end, as a share of that at the start. */
  evidence: number
  target: Country | undefined
  alertMs: number | undefined
}

const rare = 0.001
const cold = (attack: Attack, goal = {}) => ({ tellsClientIp: true, attack, goal: { isCold: true, ...goal } })
const converting = { to: 'converting' as const }

/** The traces, each in addition to honest traffic of 30 countries with 14 days of history. */
export const traces: Trace[] = [
  { name: 'steady traffic of 30 countries', tellsClientIp: true, goal: { refused: rare } },
  { name: 'the same, clientIp not told', tellsClientIp: false, goal: { refused: rare } },
  { name: 'launch day of a named country: 20 to 200 an hour', tellsClientIp: true, honest: 'launch', countries: [...countryCodes, newCountry.code], goal: { refused: rare } },
  { name: 'the same, not named', tellsClientIp: false, honest: 'launch', goal: { refused: rare } },
  { name: 'campus: 3,000 people behind one address', tellsClientIp: true, honest: 'campus', goal: { refused: rare } },
  { name: 'a newcomer in a first month', tellsClientIp: true, honest: 'newcomer', goal: { refused: rare } },
  { name: 'codes of other systems, 100 a day, twice as many each week', tellsClientIp: false, honest: 'relay', goal: { refused: rare } },
  { name: 'cold country, 30/min, 10,000 addresses', ...cold({ perMinute: 30, to: 1, networks: 10_000 }) },
  { name: '40 cold countries, one a minute each', ...cold({ perMinute: 40, to: 40, networks: 10_000 }) },
  { name: '200 cold countries', ...cold({ perMinute: 14, to: 200, networks: 500 }) },
  { name: 'bursts of 2,000 in a minute', ...cold({ perMinute: 2_000 / 1440, isBurst: true, to: 1, networks: 500 }) },
  { name: 'bursts into 30 cold countries', ...cold({ perMinute: 2, isBurst: true, to: 30, networks: 0 }) },
  { name: 'one owned number, network and device', ...cold({ perMinute: 5, to: 40, networks: 1, devices: 1, owned: 1 }) },
  { name: 'four owned numbers, five codes a day each', ...cold({ perMinute: 30, to: 1, networks: 500, owned: 4, codesOfOwned: 5 }) },
  { name: 'premium, satellite, personal, shared-cost numbers', ...cold({ perMinute: 5, to: 1, networks: 500, numbers: 'costly' }) },
  { name: 'codes of other systems, 30/min', ...cold({ perMinute: 30, to: 1, networks: 0, isRelayed: true }) },
  { name: 'codes of other systems, 0.6/min', ...cold({ perMinute: 0.6, to: 1, networks: 0, isRelayed: true }) },
  { name: 'codes of other systems to 200 countries, 60/min', ...cold({ perMinute: 60, to: 200, networks: 0, isRelayed: true }, { alertMinutes: 10 }) },
  { name: '30/min, 500 networks', tellsClientIp: true, attack: { perMinute: 30, ...converting, networks: 500 }, goal: { ofAllowance: 0.6, refused: 0.01 } },
  { name: '30/min, 10,000 addresses', tellsClientIp: true, attack: { perMinute: 30, ...converting, networks: 10_000 }, goal: { ofAllowance: 1, refused: 0.05 } },
  // More new networks than the allowance has messages: on the first day they look like customers.
  { name: '30/min, 10,000 addresses, small country', tellsClientIp: true, isSmall: true, attack: { perMinute: 30, ...converting, networks: 10_000 }, goal: { ofAllowance: 1, refusedLater: 0.05 } },
  { name: '30/min with resends, 500 networks', tellsClientIp: true, attack: { perMinute: 10, ...converting, networks: 500, resends: true }, goal: { ofAllowance: 1 } },
  ...[0.5, 1, 2, 5].flatMap((perMinute): Trace[] => [
    { name: `${perMinute}/min, 500 networks`, tellsClientIp: true, attack: { perMinute, ...converting, networks: 500 }, goal: { ofAllowance: 1, refused: rare, alertMinutes: perMinute < 1 ? 1440 : 1440 } },
    { name: `${perMinute}/min, clientIp not told`, tellsClientIp: false, attack: { perMinute, ...converting, networks: 0 }, goal: { ofAllowance: 1, refused: rare, alertMinutes: 1440 } },
  ]),
  { name: '30/min, clientIp not told', tellsClientIp: false, attack: { perMinute: 30, ...converting, networks: 0 }, goal: { ofAllowance: 1, alertMinutes: 10 } },
  { name: '30/min, clientIp not told, with a challenge', tellsClientIp: false, hasChallenge: true, attack: { perMinute: 30, ...converting, networks: 0 }, goal: { refused: 0.01, alertMinutes: 10 } },
  { name: 'prefix sweep, 7/min', tellsClientIp: true, attack: { perMinute: 7, ...converting, networks: 500, numbers: 'sweep' }, goal: { ofAllowance: 1, refused: 0.01 } },
  { name: 'consecutive numbers, 60/min', tellsClientIp: false, attack: { perMinute: 60, ...converting, networks: 0, numbers: 'consecutive' }, goal: { ofAllowance: 0.2 } },
  { name: '10/min with resends, 10,000 addresses', tellsClientIp: true, attack: { perMinute: 10, ...converting, networks: 10_000, resends: true }, goal: { ofAllowance: 1, refusedLater: 0.05 } },
  // Its messages look like those of customers, who share what their networks may have.
  { name: '30/min, from the mobile networks of customers', tellsClientIp: true, attack: { perMinute: 30, ...converting, networks: 'shared' }, goal: { ofAllowance: 1 } },
  { name: 'one network, 60/min', tellsClientIp: true, attack: { perMinute: 60, ...converting, networks: 1 }, goal: { ofAllowance: 0.2, refused: rare } },
  { name: 'codes of other systems to a country with evidence, 30/min', tellsClientIp: true, attack: { perMinute: 30, ...converting, networks: 0, isRelayed: true }, goal: { ofAllowance: 1, refused: 0.02 } },
  // 20 people a day. On the first one attackers are as unknown as they are.
  { name: '40 countries of a few phones, 10/min, 500 networks', tellsClientIp: true, honest: 'few', attack: { perMinute: 10, to: 40, networks: 500 }, goal: { ofAllowance: 1, refused: 0.3 } },
] // prettier-ignore

const historyDays = 14
const startAt = Date.parse('2027-03-01T00:00:00Z')

/** Runs a trace for days. The same seed gives the same figures. */
export async function runTrace(trace: Trace, seed: number, days: number): Promise<Figures> {
  const random = seededRandom(seed)
  const isNewcomer = trace.honest === 'newcomer'
  const few =
    trace.honest === 'few'
      ? coldCountries(40).map((country) => ({ ...country, conversion: 0.6, messagesPerDay: 0.5 }))
      : []
  const made = makeCountries(random)
  const countries = isNewcomer ? made.slice(0, 3) : [...made, ...few]
  const simulation = createSimulation(startAt, trace)
  const people = createPeople(simulation, random)
  const from = startAt + (isNewcomer ? 0 : historyDays * dayMs) + Math.floor(random() * dayMs)
  const end = from + days * dayMs
  // The attacker does not choose a country with hardly any messages.
  const target = trace.attack
    ? countries[Math.floor(random() * 8) + (trace.isSmall ? 8 : 0)]
    : trace.honest === 'launch' || trace.honest === 'relay'
      ? newCountry
      : undefined
  for (const country of countries)
    people.arrive(country, isNewcomer ? from : startAt, end, byHour(country.messagesPerDay))
  await simulation.runUntil(from)
  people.restart()
  const code = target?.code ?? ''
  const attacked = new Set(few.length > 0 ? few.map((country) => country.code) : [code])
  const evidenceNow = () => [...attacked].reduce((sum, country) => sum + simulation.evidence(country), 0)
  const evidenceBefore = evidenceNow()
  if (trace.honest === 'launch')
    people.arrive(newCountry, from, from + dayMs, (at) => 20 + (180 * (at - from)) / dayMs)
  if (trace.honest === 'relay')
    people.arrive(
      { ...newCountry, isRelayed: true },
      from,
      end,
      (at) => (100 / 24) * 2 ** ((at - from) / (7 * dayMs)),
    )
  if (trace.honest === 'campus') arriveOnCampus(people, countries[0] ?? newCountry, from, random)
  const attacks = trace.attack && target ? [trace.attack, ...(trace.also ?? [])] : []
  const pumped = attacks.map((attack) =>
    startAttack(simulation, attack, target ?? newCountry, { from, end, random }),
  )
  const figures = {
    days: [] as UserCount[],
    ofTarget: noUsers(),
    ofOthers: noUsers(),
    refusedKnown: 0,
  }
  let allowance = 0
  const readAllowance = () =>
    (allowance = Math.max(
      allowance,
      allowances.country.perPhone * evidenceNow() + (few.length > 0 ? 0 : allowances.pool.perCountry),
    ))
  readAllowance()
  for (let day = 1; day <= days; day++) {
    for (let hour = 1; hour <= 24; hour++) {
      await simulation.runUntil(from + (day - 1) * dayMs + hour * hourMs)
      readAllowance()
    }
    const honest = people.restart()
    const users = noUsers()
    for (const [country, count] of honest.byCountry)
      addUsers(attacked.has(country) ? users : figures.ofOthers, count)
    figures.days.push(users)
    addUsers(figures.ofTarget, users)
    figures.refusedKnown += honest.refusedKnown
  }
  const alert = simulation.alerts.find(({ at }) => at >= from)
  const ownPhones = pumped.reduce((sum, count) => sum + count.ownPhones, 0)
  return {
    ...figures,
    sent: pumped.reduce((sum, { sent }) => sum + sent, 0),
    left: greatestOfADay(pumped.flatMap(({ left }) => left)),
    ownPhones,
    bound: boundOf(attacks, allowance, ownPhones, few.length > 0),
    evidence: attacks.every(isCold) || evidenceBefore === 0 ? 1 : evidenceNow() / evidenceBefore,
    target,
    alertMs: alert && alert.at - from,
  }
}

function addUsers(sum: UserCount, { users, refused, lost }: UserCount) {
  sum.users += users
  sum.refused += refused
  sum.lost += lost
}

/** Share of people who were refused, or who never got a code. */
export const shareOf = (users: UserCount, kind: 'refused' | 'lost') =>
  users.users > 0 ? users[kind] / users.users : 0

/** Greatest share of a day. */
export const worstDay = (days: readonly UserCount[], kind: 'refused' | 'lost') =>
  Math.max(0, ...days.map((day) => shareOf(day, kind)))

const isCold = ({ to }: Attack) => to !== 'converting'

/** Most messages that attacks may get sent in 24 hours. @param allowance of the countries with evidence */
function boundOf(
  attacks: readonly Attack[],
  allowance: number,
  ownPhones: number,
  haveAllEvidence: boolean,
): number {
  const { pool, country, relay } = allowances
  const seen = attacks.filter(({ isRelayed }) => !isRelayed)
  const relayed = attacks.filter(({ isRelayed }) => isRelayed)
  return (
    (attacks.every(isCold) && !haveAllEvidence ? 0 : allowance) +
    (seen.some(isCold) ? pool.perDay + country.perPhone * ownPhones : 0) +
    relayed.reduce((sum, { to }) => sum + (to === 'converting' ? 1 : to), 0) * relay.base
  )
}

/** The most messages of any 24 hours. */
function greatestOfADay(left: number[]): number {
  let greatest = 0
  let first = 0
  left.sort((a, b) => a - b)
  for (const [index, at] of left.entries()) {
    while ((left[first] ?? at) <= at - dayMs) first++
    greatest = Math.max(greatest, index - first + 1)
  }
  return greatest
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
