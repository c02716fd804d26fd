import { matchLocale } from '../../delivery/text/locale-choice.ts'
import { englishTexts, pageTexts, type PageTexts } from './texts.ts'

/** Language of a page: its texts, and the locale in which names and durations are written. */
export type Language = { locale: string; texts: PageTexts; direction: 'ltr' | 'rtl' }

const available = Object.keys(pageTexts)
const rightToLeft = new Set(['ar', 'he', 'fa'])

/** Languages of a header that are looked at. */
const acceptedMax = 10

/**
 * Chooses the language of a page: that of the session, else the first of the browser's that has texts, else the
 * application's, else English.
 */
export function chooseLanguage(
  acceptLanguage: string | null,
  preferred: { session: string | null; application: string | null },
): Language {
  const wanted = [preferred.session, ...readAccepted(acceptLanguage ?? ''), preferred.application]
  for (const tag of wanted) {
    const locale = tag === null ? undefined : matchLocale(tag, available)
    const texts = locale === undefined ? undefined : pageTexts[locale]
    if (locale === undefined || !texts) continue
    return { locale, texts, direction: rightToLeft.has(locale) ? 'rtl' : 'ltr' }
  }
  return english
}

const english: Language = { locale: 'en', texts: englishTexts, direction: 'ltr' }

/** Reads `Accept-Language` (RFC 9110 §12.5.4): the tags, the most wanted first. */
export function readAccepted(header: string): string[] {
  const ranges = header.split(',').slice(0, acceptedMax)
  const tags = ranges.flatMap((range) => {
    const [tag = '', ...parameters] = range.split(';').map((part) => part.trim())
    const quality = Number(/^q=([\d.]+)$/i.exec(parameters.join(''))?.[1] ?? 1)
    return quality > 0 && /^[A-Za-z0-9-]{2,35}$/.test(tag) ? [{ tag, quality }] : []
  })
  return tags.toSorted((a, b) => b.quality - a.quality).map(({ tag }) => tag)
}

/** Puts values into a text. */
export const fill = (text: string, values: Readonly<Record<string, string>>): string =>
  text.replaceAll(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole)

/** Writes a waiting time in a language, in whole minutes from two minutes on. */
export function formatWait({ locale }: Language, seconds: number): string {
  const isLong = seconds >= 120
  const format = { style: 'unit', unit: isLong ? 'minute' : 'second', unitDisplay: 'long' } as const
  // Digits are ASCII, as in the messages.
  return new Intl.NumberFormat(locale, { ...format, numberingSystem: 'latn' }).format(
    isLong ? Math.ceil(seconds / 60) : seconds,
  )
}
