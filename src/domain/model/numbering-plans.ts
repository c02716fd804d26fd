import type { NumberType } from 'libphonenumber-js/max/es6'
import metadata from 'libphonenumber-js/max/metadata'

/** Country of a number, and its type if it is in a known range. */
type PlannedNumber = { country: string; type: NumberType }

/** Numbers of one type. */
type NumberRange = { pattern: RegExp; lengths: readonly number[] }

/** National numbers of a country. */
type NumberingPlan = {
  country: string
  lengths: readonly number[]
  pattern: RegExp
  leadingDigits: RegExp | undefined
  fixedLine: NumberRange | undefined
  mobile: NumberRange | undefined
  /** In the order in which the library looks for the type of a number. */
  others: ReadonlyArray<readonly [type: RangeType, range: NumberRange]>
}

type CallingCode = {
  /** The main country is the first. */
  plans: readonly NumberingPlan[]
  /** Matches digits that the library removes as a prefix of calls within the country. */
  nationalPrefix: RegExp | undefined
}

/** Types in the order of the metadata (METADATA.md of libphonenumber-js). */
const rangeTypes = [
  'FIXED_LINE',
  'MOBILE',
  'TOLL_FREE',
  'PREMIUM_RATE',
  'PERSONAL_NUMBER',
  'VOICEMAIL',
  'UAN',
  'PAGER',
  'VOIP',
  'SHARED_COST',
] as const

type RangeType = (typeof rangeTypes)[number]

/** In the order in which the library looks for the type of a number that is neither a fixed line nor mobile. */
const otherTypes: readonly RangeType[] = [
  'PREMIUM_RATE',
  'TOLL_FREE',
  'SHARED_COST',
  'VOIP',
  'PERSONAL_NUMBER',
  'PAGER',
  'UAN',
  'VOICEMAIL',
]

/** A calling code is compiled when a number first needs it: most servers send to few countries. */
const compiledCodes = new Map<string, CallingCode>()

/**
 * Finds the country and the type of a number in E.164, with the metadata and the rules of libphonenumber-js. The library
 * compiles its patterns again for each number, which takes more than ten times as long.
 *
 * @returns undefined if the library must decide: the number has an impossible length or belongs to no country, or it
 *   begins with a national prefix, which the library may remove
 */
export function findPlannedNumber(phone: string): PlannedNumber | undefined {
  const code = findCallingCode(phone)
  if (code === undefined) return undefined
  const { plans, nationalPrefix } = compiledCodes.get(code) ?? compileCallingCode(code)
  const number = phone.slice(1 + code.length)
  if (nationalPrefix?.test(number)) return undefined
  const plan = plans.length === 1 ? plans[0] : plans.find((one) => isInPlan(number, one))
  if (!plan?.lengths.includes(number.length)) return undefined
  return { country: plan.country, type: findType(number, plan) }
}

/** Countries by calling code. Codes that belong to no country are in another part of the metadata. */
const countriesByCode = new Map(Object.entries(metadata.country_calling_codes))

/** Codes of services such as satellites, which belong to no country. */
const sharedCodes: ReadonlySet<string> = new Set(Object.keys(metadata.nonGeographic))

/** Tells whether the calling code of a number, or of the beginning of one, is assigned. Both begin with `+`. */
export const hasCallingCode = (text: string) =>
  findCallingCode(text) !== undefined || sharedCodes.has(text.slice(1, 4))

/** No calling code is the beginning of another. */
function findCallingCode(phone: string): string | undefined {
  for (let end = 2; end <= 4; end++) {
    const code = phone.slice(1, end)
    if (countriesByCode.has(code)) return code
  }
  return undefined
}

/** Tells whether a text is `+` and the whole calling code of one or more countries. */
export const isCallingCode = (text: string) =>
  countriesByCode.has(text.slice(1)) || sharedCodes.has(text.slice(1))

const isInPlan = (number: string, plan: NumberingPlan) =>
  plan.leadingDigits ? plan.leadingDigits.test(number) : findType(number, plan) !== undefined

function findType(number: string, { pattern, fixedLine, mobile, others }: NumberingPlan): NumberType {
  if (!pattern.test(number)) return undefined
  // The metadata omits mobile numbers whose pattern is that of fixed lines.
  const isMobile = (whenOmitted: boolean) => (mobile ? isInRange(number, mobile) : whenOmitted)
  if (fixedLine && isInRange(number, fixedLine)) return isMobile(true) ? 'FIXED_LINE_OR_MOBILE' : 'FIXED_LINE'
  return isMobile(false) ? 'MOBILE' : others.find(([, range]) => isInRange(number, range))?.[0]
}

const isInRange = (number: string, { pattern, lengths }: NumberRange) =>
  lengths.includes(number.length) && pattern.test(number)

/** A country in the metadata, as far as it is read here. Absent values are 0, or missing at the end. */
type CountryMetadata = readonly [
  callingCode: string,
  internationalPrefix: unknown,
  pattern: string,
  lengths: readonly number[],
  formats: unknown,
  nationalPrefix: string | 0 | undefined,
  nationalPrefixRule: unknown,
  nationalPrefixForParsing: string | 0 | undefined,
  nationalPrefixTransform: unknown,
  isNationalPrefixOptional: unknown,
  leadingDigits: string | 0 | undefined,
  ranges: ReadonlyArray<readonly [pattern: string, lengths?: readonly number[] | 0] | 0> | undefined,
]

function compileCallingCode(code: string): CallingCode {
  const plans = (countriesByCode.get(code) ?? []).map((country) => ({
    country,
    // The library types it as `any[]`.
    row: metadata.countries[country] as unknown as CountryMetadata,
  }))
  const main = plans[0]?.row
  const compiled = {
    plans: plans.map(({ country, row }) => compilePlan(country, row)),
    nationalPrefix: compileStart(main?.[7] || main?.[5]),
  }
  compiledCodes.set(code, compiled)
  return compiled
}

function compilePlan(country: string, row: CountryMetadata): NumberingPlan {
  const [, , pattern, lengths, , , , , , , leadingDigits, rows = []] = row
  const rangeOf = (type: RangeType): NumberRange | undefined => {
    const row = rows[rangeTypes.indexOf(type)]
    return row && row[0] ? { pattern: compileWhole(row[0]), lengths: row[1] || lengths } : undefined
  }
  return {
    country,
    lengths,
    pattern: compileWhole(pattern),
    leadingDigits: compileStart(leadingDigits),
    fixedLine: rangeOf('FIXED_LINE'),
    mobile: rangeOf('MOBILE'),
    others: otherTypes.flatMap((type) => {
      const range = rangeOf(type)
      return range ? [[type, range] as const] : []
    }),
  }
}

const compileWhole = (pattern: string) => new RegExp(`^(?:${pattern})$`)
const compileStart = (pattern: string | 0 | undefined) =>
  pattern ? new RegExp(`^(?:${pattern})`) : undefined

/** Types of numbers whose calls or messages pay their holder, or cost far more than a mobile phone's. */
const costlyNumberTypes = ['premium', 'sharedCost', 'personal', 'satellite', 'international'] as const
/** Types of numbers that cannot read an SMS. They may be called. */
const unreadableNumberTypes = ['fixedLine', 'company', 'pager', 'voicemail', 'tollFree'] as const

export const restrictedNumberTypes = [...costlyNumberTypes, ...unreadableNumberTypes] as const

export type RestrictedNumberType = (typeof restrictedNumberTypes)[number]

/** Tells whether numbers of a type cannot read an SMS. */
export const isUnreadable = (type: RestrictedNumberType | null): boolean =>
  unreadableNumberTypes.some((one) => one === type)

/**
 * Country codes that belong to no country (ITU-T E.164, list of assigned codes). 870 to 879 and 881 to 889 hold
 * satellite systems and international networks except 880 (Bangladesh) and 886 (Taiwan), which are countries.
 */
const typesByCode: ReadonlyArray<[RegExp, RestrictedNumberType]> = [
  [/^\+(?:87[0-7]|881)/, 'satellite'],
  [/^\+878/, 'personal'],
  [/^\+(?:879|88[234589])/, 'international'],
  [/^\+979/, 'premium'],
  [/^\+808/, 'sharedCost'],
  // The library knows only the assigned ranges of these two.
  [/^\+1900/, 'premium'],
  [/^\+4470/, 'personal'],
]

const byLibraryType: Partial<Record<NonNullable<NumberType>, RestrictedNumberType>> = {
  PREMIUM_RATE: 'premium',
  SHARED_COST: 'sharedCost',
  PERSONAL_NUMBER: 'personal',
  FIXED_LINE: 'fixedLine',
  UAN: 'company',
  PAGER: 'pager',
  VOICEMAIL: 'voicemail',
  TOLL_FREE: 'tollFree',
}

/** Classifies a number by its code, then by the type that the library's metadata gives it; null for all other numbers. */
export function classifyNumber(phone: string, type: NumberType): RestrictedNumberType | null {
  const byCode = typesByCode.find(([pattern]) => pattern.test(phone))
  return byCode ? byCode[1] : ((type && byLibraryType[type]) ?? null)
}
