import type { LocalePreference } from '../../domain/model/message-settings.ts'
import type { TemplateText } from '../../domain/model/message-template.ts'
import { mainLanguageFor } from './country-languages.ts'

/** Last fallback; its texts always exist. */
export const fallbackLocale = 'en'

/** Languages without texts, mapped to one that their readers understand. */
const languageAliases: Record<string, string> = { no: 'nb', nn: 'nb' }

/**
 * Chooses the language of a message: the request's, else the application's, else the main language of the
 * phone number's country, else English. A locale without texts is skipped.
 *
 * @param available canonical locales that have texts
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
 * Chooses the text of a template as `chooseLocale` does. A template need not have a text in English: the first one takes
 * its place.
 *
 * @param texts at least one
 */
export function chooseTemplateText(
  texts: readonly TemplateText[],
  preference: LocalePreference,
): TemplateText {
  const available = texts.map(({ locale }) => locale)
  const chosen = chooseLocale(preference, available)
  const locale = matchLocale(chosen, available)
  const found = texts.find((text) => text.locale === locale) ?? texts[0]
  if (!found) throw new Error('a template has no text')
  return found
}

/**
 * Finds the best available locale: the exact one, else one of the same variety (`es-MX` for `es-419`, `pt-PT` for `pt-AO`),
 * else the nearest broader one (`pt`), else one of the same language. Never one in another script (CLDR's likely subtags):
 * `zh-HK` gets `zh-TW`, and `sr-Latn` gets no Cyrillic.
 */
export function matchLocale(requestedTag: string, available: readonly string[]): string | undefined {
  const requested = parseLocale(requestedTag)
  if (!requested) return undefined
  const sameLanguage = available.filter((tag) => {
    const locale = parseLocale(tag)
    return locale?.language === requested.language && likelyScript(locale) === likelyScript(requested)
  })
  if (sameLanguage.includes(requested.baseName)) return requested.baseName
  const variety = varietyOf(requested)
  const sameVariety = sameLanguage.filter(
    (tag) => variety !== undefined && varietyOf(parseLocale(tag)) === variety,
  )
  if (sameVariety.length > 0) return sameVariety.find((tag) => tag === variety) ?? sameVariety[0]
  const broader = sameLanguage
    .filter((tag) => `${requested.baseName}-`.startsWith(`${tag}-`))
    .toSorted((a, b) => b.length - a.length)
  return broader[0] ?? sameLanguage[0]
}

/** Regions of a language that has two written varieties, and the one of every other region, as CLDR's parent locales have them. */
const varieties: Record<string, { regions: readonly string[]; theirs: string; others: string }> = {
  es: { regions: ['ES', 'GQ', 'PH', 'EA', 'IC'], theirs: 'es-ES', others: 'es-419' },
  pt: { regions: ['BR'], theirs: 'pt-BR', others: 'pt-PT' },
}

/** Variety of a locale that names a region; undefined for any other. */
function varietyOf(locale: Intl.Locale | undefined): string | undefined {
  const variety = locale?.region === undefined ? undefined : varieties[locale.language]
  return variety && (variety.regions.includes(locale?.region ?? '') ? variety.theirs : variety.others)
}

/**
 * Cache by tag: parsing takes microseconds, and each choice compares about forty. Bounded, because callers
 * may send any tag.
 */
const localeCache = new Map<string, Intl.Locale | undefined>()
const localeCacheMax = 1000
const scriptCache = new WeakMap<Intl.Locale, string | undefined>()

/** Parses a BCP 47 tag and applies `languageAliases`; undefined if the tag is invalid. */
export function parseLocale(tag: string): Intl.Locale | undefined {
  if (!localeCache.has(tag)) {
    if (localeCache.size === localeCacheMax) localeCache.clear()
    localeCache.set(tag, createLocale(tag))
  }
  return localeCache.get(tag)
}

function createLocale(tag: string): Intl.Locale | undefined {
  try {
    // Parsed twice to canonicalize: in JavaScriptCore the properties of a deprecated tag (`iw`) keep the old
    // name.
    const locale = new Intl.Locale(new Intl.Locale(tag).toString())
    const alias = languageAliases[locale.language]
    return alias === undefined ? locale : new Intl.Locale(locale.baseName, { language: alias })
  } catch {
    return undefined
  }
}

/** Script of a locale, explicit or likely (CLDR). */
export function likelyScript(locale: Intl.Locale): string | undefined {
  if (!scriptCache.has(locale)) scriptCache.set(locale, locale.maximize().script)
  return scriptCache.get(locale)
}
