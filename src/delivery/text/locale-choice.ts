import { languageOfCountry } from './country-languages.ts'

/** What a choice falls back to in the end; there is always a text in it. */
export const lastLocale = 'en'

/** Who reads the one reads the other; there is no text in the first. */
const readAlike: Record<string, string> = { no: 'nb', nn: 'nb' }

export type LocaleWish = {
  /** As the request says it. */
  locale: string | null
  applicationDefaultLocale: string | null
  /** ISO 3166-1 alpha-2, of the phone. */
  country: string | null
}

/**
 * The language of a message: the request's, else the application's, else the main one of the phone's country, else
 * English. A wish that there is no text for counts as none.
 *
 * @param available the canonical locales that there are texts in
 */
export function chooseLocale(wish: LocaleWish, available: readonly string[]): string {
  for (const wanted of [wish.locale, wish.applicationDefaultLocale, languageOfCountry(wish.country)]) {
    const found = wanted === null ? undefined : matchLocale(wanted, available)
    if (found !== undefined) return found
  }
  return lastLocale
}

/**
 * The best text for a wish: the very locale, else the nearest that is wider (`pt` for `pt-AO`), else one of the same
 * language. Never one in another script (CLDR's likely subtags): who asks for `zh-HK` gets `zh-TW`, and `sr-Latn` is not
 * answered in Cyrillic.
 */
export function matchLocale(wanted: string, available: readonly string[]): string | undefined {
  const wish = parseLocale(wanted)
  if (!wish) return undefined
  const alike = available.filter((tag) => {
    const locale = parseLocale(tag)
    return locale?.language === wish.language && scriptOf(locale) === scriptOf(wish)
  })
  const wider = alike
    .filter((tag) => `${wish.baseName}-`.startsWith(`${tag}-`))
    .toSorted((a, b) => b.length - a.length)
  return wider[0] ?? alike[0]
}

/** By their tags, as making one takes microseconds and each choice compares some forty. Callers may send any tag. */
const parsed = new Map<string, Intl.Locale | undefined>()
const parsedMax = 1000
const scripts = new WeakMap<Intl.Locale, string | undefined>()

/** Undefined where the tag is not one of BCP 47. */
export function parseLocale(tag: string): Intl.Locale | undefined {
  if (!parsed.has(tag)) {
    if (parsed.size === parsedMax) parsed.clear()
    parsed.set(tag, makeLocale(tag))
  }
  return parsed.get(tag)
}

function makeLocale(tag: string): Intl.Locale | undefined {
  try {
    // By its text: JavaScriptCore's parts of `iw` and the like still have the old name.
    const locale = new Intl.Locale(new Intl.Locale(tag).toString())
    const alike = readAlike[locale.language]
    return alike === undefined ? locale : new Intl.Locale(locale.baseName, { language: alike })
  } catch {
    return undefined
  }
}

/** The script that the locale is written in, said or not. */
export function scriptOf(locale: Intl.Locale): string | undefined {
  if (!scripts.has(locale)) scripts.set(locale, locale.maximize().script)
  return scripts.get(locale)
}
