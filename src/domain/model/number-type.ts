import type { NumberType as LibraryType } from 'libphonenumber-js/max/es6'

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
const sharedCodes: ReadonlyArray<[RegExp, RestrictedNumberType]> = [
  [/^\+(?:87[0-7]|881)/, 'satellite'],
  [/^\+878/, 'personal'],
  [/^\+(?:879|88[234589])/, 'international'],
  [/^\+979/, 'premium'],
  [/^\+808/, 'sharedCost'],
  // The library knows only the assigned ranges of these two.
  [/^\+1900/, 'premium'],
  [/^\+4470/, 'personal'],
]

const byLibraryType: Partial<Record<NonNullable<LibraryType>, RestrictedNumberType>> = {
  PREMIUM_RATE: 'premium',
  SHARED_COST: 'sharedCost',
  PERSONAL_NUMBER: 'personal',
  FIXED_LINE: 'fixedLine',
  UAN: 'company',
  PAGER: 'pager',
  VOICEMAIL: 'voicemail',
  TOLL_FREE: 'tollFree',
}

/** Classifies a number by its code, then by the library's metadata; null for all other numbers. */
export function classifyNumber(
  phone: string,
  readLibraryType: () => LibraryType,
): RestrictedNumberType | null {
  const shared = sharedCodes.find(([pattern]) => pattern.test(phone))
  if (shared) return shared[1]
  const type = readLibraryType()
  return (type && byLibraryType[type]) ?? null
}
