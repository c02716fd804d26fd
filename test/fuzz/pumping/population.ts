import type { RestrictedNumberType } from '../../../src/domain/model/numbering-plans.ts'

export type Country = {
  code: string
  callingCode: string
  /** Share of the messages to strangers whose code is entered. */
  conversion: number
  messagesPerDay: number
  /** Whether otpd only delivers codes of another system there, and is not told which are verified. */
  isRelayed?: boolean
}

/** Destination of a message, and the client that asks for it. */
export type Target = {
  appId: string
  phone: string
  country: string | null
  clientIp: string | null
  deviceId?: string | null
  numberType: RestrictedNumberType | null
  /** Whether otpd only delivers the code of another system. */
  isRelayed?: boolean
}

const callingCodes: Record<string, string> = {
  DE: '49', AT: '43', CH: '41', FR: '33', NL: '31', BE: '32', IT: '39', ES: '34', PT: '351', PL: '48',
  CZ: '420', SE: '46', NO: '47', DK: '45', FI: '358', IE: '353', GB: '44', GR: '30', HU: '36', RO: '40',
  TR: '90', IL: '972', AE: '971', IN: '91', BR: '55', MX: '52', AU: '61', JP: '81', KR: '82', ZA: '27',
} // prettier-ignore

/** Countries with honest traffic. */
export const countryCodes = Object.keys(callingCodes)

export const coldCountry: Country = { code: 'SO', callingCode: '252', conversion: 0, messagesPerDay: 0 }
/** The country of the launch, in which the developer verified nothing yet. */
export const newCountry: Country = { code: 'NG', callingCode: '234', conversion: 0.6, messagesPerDay: 0 }

/** 30 countries with 2,000 messages a day, the first of them with a fifth of all; 20 to 90 per cent are verified. */
export function makeCountries(random: () => number): Country[] {
  const weights = countryCodes.map((_, index) => 1 / (index + 1) ** 0.8)
  const sum = weights.reduce((total, weight) => total + weight, 0)
  const conversions = countryCodes.map((_, index) => 0.2 + (0.7 * index) / (countryCodes.length - 1))
  return countryCodes.map((code, index) => {
    const [conversion = 0.5] = conversions.splice(Math.floor(random() * conversions.length), 1)
    const messagesPerDay = (2_000 * (weights[index] ?? 0)) / sum
    return { code, callingCode: callingCodes[code] ?? '', conversion, messagesPerDay }
  })
}

const digits = (random: () => number, count: number) =>
  String(Math.floor(random() * 10 ** count)).padStart(count, '0')

/** A mobile number: one of ten carriers of the country, then seven digits. */
export const randomPhone = ({ callingCode }: Country, random: () => number) =>
  `+${callingCode}7${digits(random, 1)}${digits(random, 7)}`

const address = (parts: readonly number[]) => parts.join('.')
const sharedRanges = 8
const octet = (random: () => number) => Math.floor(random() * 256)

const firstOctet = ({ callingCode }: Country) => 60 + (Number(callingCode) % 100)

/** An address of each range that the customers of a country's mobile networks share. */
export const sharedAddresses = (country: Country) =>
  Array.from({ length: sharedRanges }, (_, range) => address([firstOctet(country), 255, range, 1]))

/**
 * The address of a person: half are on mobile networks, where eight shared ranges serve a whole country, and half at home.
 * Home networks of a country have the first number of their address in common.
 */
export function personAddress(country: Country, random: () => number): string {
  const first = firstOctet(country)
  return random() < 0.5
    ? address([first, 255, Math.floor(random() * sharedRanges), octet(random)])
    : address([first, Math.floor(random() * 255), octet(random), octet(random)])
}

/** Addresses of an attacker, rented from homes all over the world. */
export const rentAddresses = (count: number, random: () => number) =>
  Array.from({ length: count }, () =>
    address([60 + Math.floor(random() * 150), octet(random), octet(random), octet(random)]),
  )

/** Countries in which the developer verified nothing. */
export const coldCountries = (count: number): Country[] =>
  Array.from({ length: count }, (_, n) => ({
    code: `${String.fromCharCode(65 + (n % 26))}${Math.floor(n / 26)}`,
    callingCode: String(600 + n),
    conversion: 0,
    messagesPerDay: 0,
  }))
