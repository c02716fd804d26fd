import { mainLanguageFor } from './country-languages.ts'

/** What a choice falls back to in the end; there is always a text in it. */
export const fallbackLocale = 'en'

/** Who reads the one reads the other; there is no text in the first. */
const languageAliases: Record<string, string> = { no: 'nb', nn: 'nb' }

export type LocalePreference = {
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
export function chooseLocale(preference: LocalePreference, available: readonly string[]): string {
  for (const requested of [
    preference.locale,
    preference.applicationDefaultLocale,
    mainLanguageFor(preference.country),
  ]) {
    const found = requested === null ? undefined : matchLocale(requested, available)
    if (found !== undefined) return found
  }
  return fallbackLocale
}

/**
 * The best text for a wish: the very locale, else the nearest that is wider (`pt` for `pt-AO`), else one of the same
 * language. Never one in another script (CLDR's likely subtags): who asks for `zh-HK` gets `zh-TW`, and `sr-Latn` is not
 * answered in Cyrillic.
 */
export function matchLocale(requestedTag: string, available: readonly string[]): string | undefined {
  const requested = parseLocale(requestedTag)
  if (!requested) return undefined
  const sameLanguage = available.filter((tag) => {
    const locale = parseLocale(tag)
    return locale?.language === requested.language && likelyScript(locale) === likelyScript(requested)
  })
  const broader = sameLanguage
    .filter((tag) => `${requested.baseName}-`.startsWith(`${tag}-`))
    .toSorted((a, b) => b.length - a.length)
  return broader[0] ?? sameLanguage[0]
}

/** By their tags, as making one takes microseconds and each choice compares some forty. Callers may send any tag. */
const localeCache = new Map<string, Intl.Locale | undefined>()
const localeCacheMax = 1000
const scriptCache = new WeakMap<Intl.Locale, string | undefined>()

/** Undefined where the tag is not one of BCP 47. */
export function parseLocale(tag: string): Intl.Locale | undefined {
  if (!localeCache.has(tag)) {
    if (localeCache.size === localeCacheMax) localeCache.clear()
    localeCache.set(tag, createLocale(tag))
  }
  return localeCache.get(tag)
}

function createLocale(tag: string): Intl.Locale | undefined {
  try {
    // By its text: JavaScriptCore's parts of `iw` and the like still have the old name.
    const locale = new Intl.Locale(new Intl.Locale(tag).toString())
    const alias = languageAliases[locale.language]
    return alias === undefined ? locale : new Intl.Locale(locale.baseName, { language: alias })
  } catch {
    return undefined
  }
}

/** The script that the locale is written in, said or not. */
export function likelyScript(locale: Intl.Locale): string | undefined {
  if (!scriptCache.has(locale)) scriptCache.set(locale, locale.maximize().script)
  return scriptCache.get(locale)
}
