/**
 * Writes the code of a country as ISO 3166-1 does: in upper case, and GB for the United Kingdom, for which it reserves UK.
 */
export const normalizeCountry = (code: string): string => code.toUpperCase().replace(/^UK$/, 'GB')

/**
 * Numbering plans in which one mobile subscriber has two numbers that differ in one digit, and both receive messages.
 * `long` and `short` match the same subscribers, with the digit and without it.
 */
const optionalDigits = [
  // Argentina: calls from abroad put a 9 before mobile numbers (ENACOM). Area codes begin with 1, 2 or 3.
  { long: /^(\+54)9([1-3]\d{9})$/, short: /^(\+54)([1-3]\d{9})$/, digit: '9' },
  // Mexico: the 1 before mobile numbers was abolished in 2019 (IFT). Area codes begin with 2 to 9.
  { long: /^(\+52)1([2-9]\d{9})$/, short: /^(\+52)([2-9]\d{9})$/, digit: '1' },
  // Brazil: mobile numbers got a leading 9 from 2012 on (Anatel, resolution 553). Those with 7 are excluded, since
  // trunked radio keeps eight digits that begin with 7; so are 2 to 5, which are fixed lines without the 9.
  { long: /^(\+55[1-9]{2})9([689]\d{7})$/, short: /^(\+55[1-9]{2})([689]\d{7})$/, digit: '9' },
] as const

/**
 * Folds the spellings of one subscriber into one: Argentina `+549…` and `+54…`, Mexico `+521…` and `+52…`, Brazil with
 * and without the ninth digit. All other numbers stay as they are. A key for limits, never a number to send to or to
 * answer: messages go to the number as the caller wrote it, except for `+521…`, which no network knows any more.
 *
 * @param phone E.164; any other text stays as it is
 */
export function canonicalPhone(phone: string): string {
  for (const { long } of optionalDigits) if (long.test(phone)) return phone.replace(long, '$1$2')
  return phone
}

/** Lists all spellings of a subscriber, the canonical one first. @param phone E.164 */
export function phoneSpellings(phone: string): string[] {
  const canonical = canonicalPhone(phone)
  const plan = optionalDigits.find(({ short }) => short.test(canonical))
  return plan ? [canonical, canonical.replace(plan.short, `$1${plan.digit}$2`)] : [canonical]
}

/** Drops what people write between the digits of a phone. */
export const dropSeparators = (text: string): string => text.replaceAll(/[ \-.()]/g, '')

/** Drops separators, and writes `+` for the `00` of an international call. */
export const compactPhone = (text: string): string => dropSeparators(text).replace(/^00/, '+')
