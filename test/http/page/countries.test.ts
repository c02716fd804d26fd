import { expect, test } from 'bun:test'
import { guessCountry, listCountries } from '../../../src/http/page/countries.ts'

test.each([
  ['en-US,en;q=0.9', 'en', 'US'],
  // Firefox and Chrome in German, which name no country of German.
  ['de,en-US;q=0.7,en;q=0.3', 'de', 'DE'],
  ['de,de-AT;q=0.9,en-US;q=0.8', 'de', 'AT'],
  ['en,de-DE;q=0.5', 'en', 'US'],
  ['zh-Hant,en-US;q=0.8', 'zh-TW', 'TW'],
  ['es-419,es;q=0.9', 'es', 'MX'],
  ['es-419,es-MX;q=0.9', 'es', 'MX'],
  ['', 'ja', 'JP'],
])('selects for %p on a page in %p the country %p', (acceptLanguage, locale, country) => {
  const listed = listCountries(locale, null)
  expect(guessCountry(listed, { defaultCountry: null, acceptLanguage, locale })).toBe(country)
  expect(guessCountry(listed, { defaultCountry: 'CH', acceptLanguage, locale })).toBe('CH')
})

test('selects the first country of an application that sends to none of the languages', () => {
  const listed = listCountries('en', ['GB', 'IE'])
  expect(guessCountry(listed, { defaultCountry: null, acceptLanguage: 'ja', locale: 'en' })).toBe('IE')
})
