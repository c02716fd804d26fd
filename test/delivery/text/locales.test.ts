import { describe, expect, test } from 'bun:test'
import { chooseLocale, matchLocale } from '../../../src/delivery/text/locale-choice.ts'
import { mainLanguageFor } from '../../../src/delivery/text/country-languages.ts'
import { localeTexts } from '../../../src/delivery/text/locales.ts'
import { lintTemplates } from '../../../src/delivery/text/template-lint.ts'
import { renderMessage } from '../../../src/delivery/text/message.ts'
import { findCodes, firstStrongDirection, createMessageInput, stripDirectionMarks } from '../message-input.ts'

const locales = Object.keys(localeTexts)
const lintedTemplates = lintTemplates()
const rightToLeft = ['ar', 'fa', 'he']
const minutes = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]

test('there are texts in 34 languages', () => {
  expect(locales).toHaveLength(34)
  expect(Intl.getCanonicalLocales(locales)).toEqual(locales)
})

describe.each(locales)('%s', (locale) => {
  test.each(minutes)(
    'shows the code once, uninterrupted, in ASCII digits, with %i minutes',
    (minutesLeft) => {
      for (const applicationName of ['Northwind', null]) {
        const { text } = renderMessage(createMessageInput({ locale, applicationName, minutesLeft }))
        expect(findCodes(text)).toEqual(['012345'])
        expect(text.match(/\p{Nd}/gu)?.join('')).toMatch(/^[0-9]+$/)
        expect(text).not.toMatch(/[{}]/)
        expect(text).toBe(text.normalize('NFC').trim())
      }
    },
  )

  test('names the application, and also works without a name', () => {
    expect(renderMessage(createMessageInput({ locale, applicationName: 'Northwind' })).text).toContain(
      'Northwind',
    )
    const { text } = renderMessage(createMessageInput({ locale, applicationName: null }))
    expect(text.length).toBeGreaterThan(14)
    expect(stripDirectionMarks(text)).not.toMatch(/ {2}|^[\s:,.]|\[\]|【】| [.,:]/)
  })

  test.each(minutes)('uses the plural form for %i minutes', (minutesLeft) => {
    const { text } = renderMessage(createMessageInput({ locale, minutesLeft }))
    // Arabic and Hebrew have words for one and two of a thing.
    const isWord = (locale === 'ar' && minutesLeft <= 2) || (locale === 'he' && minutesLeft === 1)
    expect(text.replace('012345', '').match(/\d+/)?.[0]).toBe(isWord ? undefined : String(minutesLeft))
    const expiry = localeTexts[locale]?.expiry
    const form = expiry?.[new Intl.PluralRules(locale).select(minutesLeft)] ?? expiry?.other ?? '?'
    expect(text).toContain(form.replace('{minutes}', String(minutesLeft)))
  })

  test('fits one part with a name of 20 characters and any minutes', () => {
    const row = lintedTemplates.find((one) => one.locale === locale)
    expect(row?.text).toContain('Northwind Trading Co')
    expect(row?.parts).toBe(1)
    for (const minutesLeft of minutes) {
      const message = renderMessage(
        createMessageInput({ locale, applicationName: 'Northwind Trading Co', minutesLeft }),
      )
      expect(message.leftOut).toEqual([])
    }
  })

  test('still fits one part with both machine-readable lines', () => {
    expect(lintedTemplates.find((one) => one.locale === locale)?.withBoth.parts).toBe(1)
  })

  test('lays out its lines in its reading direction', () => {
    for (const applicationName of ['Northwind', 'نورث', null]) {
      const { text } = renderMessage(createMessageInput({ locale, applicationName }))
      expect(firstStrongDirection(text)).toBe(
        rightToLeft.includes(locale) ? 'right to left' : 'left to right',
      )
    }
  })
})

test.each([
  ['pl', 1, '1 minutę'],
  ['pl', 3, '3 minuty'],
  ['pl', 5, '5 minut.'],
  ['ru', 1, '1 минуту'],
  ['ru', 4, '4 минуты'],
  ['ru', 10, '10 минут.'],
  ['cs', 2, '2 minuty'],
  ['sk', 5, '5 minút'],
  ['uk', 2, '2 хвилини'],
  ['ro', 2, '2 minute.'],
  ['ar', 2, 'دقيقتين'],
  ['ar', 5, '5 دقائق'],
  ['en', 1, '1 minute.'],
  ['en', 2, '2 minutes.'],
])('%s counts %i as %s', (locale, minutesLeft, expectedText) => {
  expect(renderMessage(createMessageInput({ locale, minutesLeft })).text).toContain(expectedText)
})

describe('the language of a message', () => {
  const localeOptions = { locale: null, applicationDefaultLocale: null, country: null }

  test('is that of the request first', () => {
    const all = { locale: 'de', applicationDefaultLocale: 'fr', country: 'JP' }
    expect(chooseLocale(all, locales)).toBe('de')
  })

  test('is the default of the application if the request names none, or one without texts', () => {
    const fallbackOptions = { applicationDefaultLocale: 'fr', country: 'JP' }
    expect(chooseLocale({ ...fallbackOptions, locale: null }, locales)).toBe('fr')
    expect(chooseLocale({ ...fallbackOptions, locale: 'sw' }, locales)).toBe('fr')
    expect(chooseLocale({ ...fallbackOptions, locale: 'not a tag' }, locales)).toBe('fr')
  })

  test.each([
    ['JP', 'ja'],
    ['BR', 'pt-BR'],
    ['PT', 'pt'],
    ['AO', 'pt'],
    ['MX', 'es'],
    ['HK', 'zh-TW'],
    ['CN', 'zh-CN'],
    ['EG', 'ar'],
    ['CH', 'de'],
    ['NO', 'nb'],
    ['IN', 'en'],
    ['US', 'en'],
    ['ZZ', 'en'],
  ])('is that of the country %s if no locale is given: %s', (country, locale) => {
    expect(chooseLocale({ ...localeOptions, country }, locales)).toBe(locale)
  })

  test('is English if nothing is known', () => {
    expect(chooseLocale(localeOptions, locales)).toBe('en')
    expect(
      chooseLocale(
        { ...localeOptions, locale: 'tlh', applicationDefaultLocale: 'sw', country: 'XX' },
        locales,
      ),
    ).toBe('en')
  })

  test('has texts, for every country', () => {
    const codes = Array.from({ length: 26 * 26 }, (_, n) =>
      String.fromCharCode(65 + Math.floor(n / 26), 65 + (n % 26)),
    )
    const languages = codes.flatMap((code) => mainLanguageFor(code) ?? [])
    expect(languages.length).toBeGreaterThan(130)
    expect(languages.filter((locale) => !locales.includes(locale))).toEqual([])
  })

  test.each([
    ['pt-BR', 'pt-BR'],
    ['PT-br', 'pt-BR'],
    ['pt', 'pt'],
    ['pt-MZ', 'pt'],
    ['en-GB', 'en'],
    ['es-419', 'es'],
    ['zh', 'zh-CN'],
    ['zh-Hans-HK', 'zh-CN'],
    ['zh-HK', 'zh-TW'],
    ['zh-Hant', 'zh-TW'],
    ['zh-Hant-MO', 'zh-TW'],
    ['no', 'nb'],
    ['nn-NO', 'nb'],
    ['iw', 'he'],
    ['in', 'id'],
    ['de-u-nu-arab', 'de'],
    ['ru-Latn', undefined],
    ['hi-Latn', undefined],
    ['sr', undefined],
    ['x', undefined],
    ['', undefined],
    ['en_US', undefined],
  ])('for the requested locale %s is %s', (requestedLocale, found) => {
    expect(matchLocale(requestedLocale, locales)).toBe(found)
  })

  test("is the nearest of the operator's locales, never in another script", () => {
    expect(matchLocale('en-GB', ['en', 'en-GB'])).toBe('en-GB')
    expect(matchLocale('zh-Hant-HK', ['zh', 'zh-Hant', 'zh-TW'])).toBe('zh-Hant')
    expect(matchLocale('zh-HK', ['zh', 'zh-TW'])).toBe('zh-TW')
    expect(matchLocale('sr-Latn-RS', ['sr', 'sr-Latn'])).toBe('sr-Latn')
  })

  test.each([
    ['es-419', ['es-ES', 'es-MX'], 'es-MX'],
    ['es-AR', ['es', 'es-ES', 'es-MX', 'es-419'], 'es-419'],
    ['es-AR', ['es', 'es-ES'], 'es'],
    ['es-419', ['es-ES'], 'es-ES'],
    ['es-GQ', ['es-MX', 'es-ES'], 'es-ES'],
    ['es', ['es-ES', 'es-MX'], 'es-ES'],
    ['pt-MZ', ['pt-BR', 'pt-PT'], 'pt-PT'],
    ['pt', ['pt-BR', 'pt-PT'], 'pt-BR'],
  ])('for %s of %j is that of the same variety, %s', (requestedLocale, available, found) => {
    expect(matchLocale(requestedLocale, available)).toBe(found)
  })
})
