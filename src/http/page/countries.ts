import { getCountries, getCountryCallingCode, getExampleNumber } from 'libphonenumber-js/max/es6'
import examples from 'libphonenumber-js/mobile/examples'
import { parseLocale } from '../../delivery/text/locale-choice.ts'
import { readAccepted } from './language.ts'

/** A country of the picker. */
export type CountryChoice = {
  code: string
  name: string
  callingCode: string
  /** How a number is written there: `#` for a digit, and digits that may be left out; empty if it is not known. */
  mask: string
}

const countryCodes: readonly string[] = getCountries()

/** Masks and calling codes are the same in every language. */
const facts = new Map<string, Pick<CountryChoice, 'callingCode' | 'mask'>>()
/** By locale: 245 names, sorted. */
const choices = new Map<string, readonly CountryChoice[]>()

/** Lists the countries in the order of their names in a language. @param only those of the application; null: all */
export function listCountries(locale: string, only: readonly string[] | null): readonly CountryChoice[] {
  let all = choices.get(locale)
  if (!all) choices.set(locale, (all = nameCountries(locale)))
  const listed = only === null ? all : all.filter(({ code }) => only.includes(code))
  return listed.length > 0 ? listed : all
}

function nameCountries(locale: string): CountryChoice[] {
  const names = new Intl.DisplayNames([locale, 'en'], { type: 'region' })
  const { compare } = new Intl.Collator(locale)
  return countryCodes
    .map((code) => ({ code, name: names.of(code) ?? code, ...factsOf(code) }))
    .toSorted((a, b) => compare(a.name, b.name))
}

function factsOf(code: string) {
  let found = facts.get(code)
  if (!found) facts.set(code, (found = readFacts(code)))
  return found
}

function readFacts(code: string): Pick<CountryChoice, 'callingCode' | 'mask'> {
  // `code` is one of the library's.
  const country = code as Parameters<typeof getCountryCallingCode>[0]
  const example = getExampleNumber(country, examples)
  const written = example?.formatNational() ?? ''
  const digits = written.replaceAll(/\D/g, '')
  const national = String(example?.nationalNumber ?? '')
  let prefixLeft = digits.length - national.length
  // Where the two differ in more than a prefix, as in Argentina, no mask is better than a wrong one.
  const mask = digits.endsWith(national)
    ? written.replaceAll(/\d/g, (digit) => (prefixLeft-- > 0 ? digit : '#'))
    : ''
  return { callingCode: getCountryCallingCode(country), mask }
}

/**
 * Chooses the country that is selected at first: the application's, else that of the browser's first language, by its tags or
 * by where it is spoken most (`de,en-US;q=0.7`, as German browsers send it, is Germany), else of its other languages, else the
 * main country of the page's language.
 */
export function guessCountry(
  listed: readonly CountryChoice[],
  {
    defaultCountry,
    acceptLanguage,
    locale,
  }: {
    defaultCountry: string | null
    acceptLanguage: string | null
    locale: string
  },
): string | undefined {
  const accepted = readAccepted(acceptLanguage ?? '').flatMap((tag) => parseLocale(tag) ?? [])
  const first = accepted.filter(({ language }) => language === accepted[0]?.language)
  const likely = (one: Intl.Locale | undefined) => {
    const region = one?.maximize().region
    // Latin America, as Chrome sends it: Spain is not in it, and Mexico has most speakers.
    return region === '419' ? 'MX' : region
  }
  const wanted = [
    defaultCountry,
    ...first.map(({ region }) => region),
    likely(first[0]),
    ...accepted.map(({ region }) => region),
    likely(parseLocale(locale)),
  ]
  return wanted.find((code) => listed.some((one) => one.code === code)) ?? listed[0]?.code
}
