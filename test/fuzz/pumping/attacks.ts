import type { RestrictedNumberType } from '../../../src/domain/model/numbering-plans.ts'
import { dayMs, hourMs, minuteMs } from '../../../src/shared/durations.ts'
import {
  coldCountry,
  coldCountries,
  randomPhone,
  rentAddresses,
  sharedAddresses,
  type Country,
  type Target,
} from './population.ts'
import type { SimulatedRequest, Simulation } from './simulation.ts'

/** Describes an attacker, who goes on for days. */
export type Attack = {
  /** Messages of a minute, or all of a day at once, at midnight or as soon as the evidence of the day is there. */
  perMinute: number
  isBurst?: boolean
  /** Hours of each day on which it sends. */
  activeHours?: number
  /** Where: the country with evidence, or as many without. */
  to: 'converting' | number
  /** Different networks of the sender, or the eight that customers on mobile networks share. */
  networks: number | 'shared'
  /** Different devices; 0 tells none. */
  devices?: number
  /** Numbers of the attacker's own, and the codes that each verifies a day. */
  owned?: number
  codesOfOwned?: number
  /** Whether each message is sent again as often as possible. */
  resends?: boolean
  numbers?: 'random' | 'consecutive' | 'sweep' | 'costly'
  /** Whether it goes through `POST /v1/otp/deliver`. */
  isRelayed?: boolean
}

export type PumpCount = {
  sent: number
  /** Times of the messages that left and were not verified. */
  left: number[]
  /** Phones of the attacker that were verified. */
  ownPhones: number
}

const costly: Array<[string, string | null, RestrictedNumberType]> = [
  ['+1900', 'US', 'premium'],
  ['+979', null, 'premium'],
  ['+881', null, 'satellite'],
  ['+882', null, 'international'],
  ['+4470', 'GB', 'personal'],
  ['+49180', 'DE', 'sharedCost'],
]

type Number = Pick<Target, 'phone' | 'country' | 'numberType'>

/** Makes the n-th number of an attack. */
function numberOf(kind: Attack['numbers'], country: Country, n: number, random: () => number): Number {
  const { callingCode, code } = country
  if (kind === 'costly') {
    const [prefix, own, numberType] = costly[n % costly.length] ?? ['+979', null, 'premium']
    return { phone: `${prefix}${1_000_000 + n * 7}`, country: own, numberType }
  }
  const digits = (value: number) => String(value % 10 ** 8).padStart(8, '0')
  const phone =
    kind === 'consecutive'
      ? `+${callingCode}7${digits(10_009_900 + n)}`
      : kind === 'sweep'
        ? `+${callingCode}7${digits(((1_000 + n) % 10_000) * 10_000 + Math.floor(n / 10_000) * 7 + 1_234)}`
        : randomPhone(country, random)
  return { phone, country: code, numberType: null }
}

/** Starts an attack. Blocked messages are tried on: an attacker does not know the limits. */
export function startAttack(
  simulation: Simulation,
  attack: Attack,
  target: Country,
  { from, end, random }: { from: number; end: number; random: () => number },
): PumpCount {
  const {
    perMinute,
    isBurst,
    activeHours = 24,
    to,
    networks,
    devices = 0,
    owned = 0,
    codesOfOwned = 1,
  } = attack
  const count: PumpCount = { sent: 0, left: [], ownPhones: 0 }
  const countries = to === 'converting' ? [target] : to === 1 ? [coldCountry] : coldCountries(to)
  const addresses = networks === 'shared' ? sharedAddresses(target) : rentAddresses(networks, random)
  const pick = <T>(list: readonly T[]) => list[Math.floor(random() * list.length)]
  const senderOf = () => ({
    appId: `app_${count.sent % 5}`,
    clientIp: pick(addresses) ?? null,
    deviceId: devices > 0 ? `device ${Math.floor(random() * devices)}` : null,
  })

  /** The attacker's own phones verify codes, in the countries that are attacked. */
  async function verifyOwned() {
    for (let n = 0; n < owned; n++) {
      const country = countries[n % countries.length] ?? target
      const phone = `+${country.callingCode}79${String(1_000_000 + n * 11_003)}`
      for (let code = 0; code < codesOfOwned; code++) {
        const request = await simulation.send({
          ...senderOf(),
          phone,
          country: country.code,
          numberType: null,
        })
        if (!request) continue
        await simulation.verify(request)
        if (code === 0) count.ownPhones = Math.max(count.ownPhones, n + 1)
      }
    }
  }

  async function sendOne() {
    const n = count.sent++
    const country = countries[n % countries.length] ?? target
    const number = numberOf(attack.numbers, country, n, random)
    const isRelayed = attack.isRelayed === true
    const request = await simulation.send({ ...number, ...senderOf(), isRelayed })
    if (!request) return
    count.left.push(simulation.now())
    if (attack.resends) resendLater(request)
  }

  function resendLater(request: SimulatedRequest) {
    simulation.schedule(simulation.now() + 31_000, async (now) => {
      const resent = await simulation.send(request, request)
      if (!resent) return
      count.left.push(now)
      if (resent.resends < 3) resendLater(resent)
    })
  }

  for (let day = from; day < end; day += dayMs) if (owned > 0) simulation.schedule(day, verifyOwned)
  const messages = Math.floor(perMinute * 1440)
  if (isBurst)
    for (let day = from; day < end; day += dayMs)
      for (let n = 0; n < messages; n++)
        simulation.schedule(day + hourMs + (n * minuteMs) / messages, sendOne)
  else {
    const next = async (n: number) => {
      if ((simulation.now() - from) % dayMs < activeHours * hourMs) await sendOne()
      const at = from + ((n + 1) * minuteMs) / perMinute
      if (at < end) simulation.schedule(at, () => next(n + 1))
    }
    simulation.schedule(from + (owned > 0 ? minuteMs : 0), () => next(0))
  }
  return count
}
