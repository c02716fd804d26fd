import { describe, expect, test } from 'bun:test'
import { changedSettings } from '../../src/config/changes.ts'
import { load, requireConfig, requireProblem } from '../helpers/config.ts'

const path = '/etc/otpd/otpd.toml'
const csvPath = '/etc/otpd/prices.csv'
const provider = `[prices]
currency = "EUR"

[[providers]]
name = "main"
kind = "twilio"
accountSid = "AC${'0'.repeat(32)}"
authTokenFile = "token"
from = "+15005550006"
`
const priceLine = provider.split('\n').length

const loadText = (text: string, csv?: string | Error) =>
  load({
    files: { [path]: text, '/etc/otpd/token': 'a-token\n', ...(csv !== undefined && { [csvPath]: csv }) },
  })
const loadPrices = (text: string, csv?: string | Error) => loadText(provider + text, csv)
const readPrices = (text: string, csv?: string) => {
  const { delivery } = requireConfig(loadPrices(text, csv))
  expect(delivery.currency).toBe('EUR')
  return delivery.providers[0]?.prices
}

describe('prices of a provider', () => {
  test('are a table of destinations', () => {
    const prices = { default: 50_000, countries: { US: 7_900 }, prefixes: { '+4930': 70_000 } }
    expect(readPrices('price = { default = "0.05", US = "0.0079", "+4930" = "0.07" }')).toEqual(prices)
    expect(readPrices('[providers.price]\ndefault = "0.05"\nUS = "0.0079"\n"+4930" = "0.07"')).toEqual(prices)
    expect(readPrices('')).toBeUndefined()
  })

  test('are rows of a CSV file, which the table overrides', () => {
    const file = '\uFEFFprefix,price\r\n+4930,0.07\r\n"4940" , "0.08"\r\n\r\nUS,0.0079\r\ndefault,0.1\r\n'
    expect(readPrices('prices = "prices.csv"\nprice = { US = "0.01" }', file)).toEqual({
      default: 100_000,
      countries: { US: 10_000 },
      prefixes: { '+4930': 70_000, '+4940': 80_000 },
    })
  })

  test('are shown, and a file with other prices counts as a change that a reload applies', () => {
    const text = 'price = { default = "0.05", US = "0.0079" }\nprices = "prices.csv"'
    const [before, after] = ['DE,0.1', 'DE,0.2'].map((csv) => loadPrices(text, csv).settings)
    expect(before).toContainEqual({
      setting: 'providers.main.price',
      value: ['default 0.05', 'US 0.0079'],
      origin: `${path}:${priceLine}`,
    })
    expect(changedSettings(before ?? [], after ?? [])).toMatchObject([
      { setting: 'providers.main.prices', isReloadable: true },
    ])
  })
})

describe('a mistake is reported with its place and what to write', () => {
  test.each([
    ['price = { US = "-0.01" }', 'The price of US: "-0.01" is negative.', 'Write "0.01".'],
    ['price = { US = "cheap" }', 'The price of US: "cheap" is not a price.', 'such as "0.0079".'],
    ['price = { US = "0,05" }', '"0,05" is not a price.', 'Write it with a point: "0.05".'],
    ['price = { US = "0.05 EUR" }', '"0.05 EUR" is not a price.', 'Write it without a currency'],
    ['price = { US = "$0.05" }', '"$0.05" is not a price.', 'for all: "0.05".'],
    ['price = { US = 0.05 }', 'The price of US: it must be text.', 'Put it in quotes: "0.05".'],
    ['price = { US = -0.05 }', 'The price of US: it must be text.', 'Write "0.05".'],
    ['price = { US = {} }', 'it must be text.', 'such as "0.0079".'],
    ['price = { US = [{}] }', 'it must be text.', 'such as "0.0079".'],
    ['price = { US = true }', 'it must be text.', 'such as "0.0079".'],
    ['price = { US = "0.00000001" }', 'is not a price.', 'at most seven digits, six decimals'],
    ['price = { XY = "0.05" }', '"XY" is not a country or a prefix.', 'two-letter ISO 3166 code such as US'],
    ['price = { us = "0.05" }', '"us" is not a country or a prefix.', 'Write US.'],
    ['price = { UK = "0.05" }', '"UK" is not a country or a prefix.', 'Write GB.'],
    ['price = { Germany = "0.05" }', '"Germany" is not a country or a prefix.', 'Write DE.'],
    ['price = { "+999" = "0.05" }', 'No phone number begins with "+999".', 'such as "+4930"'],
    ['price = { 4930 = "0.05" }', '"4930" has no +.', 'Write "+4930", in quotes.'],
    ['price = "0.05"', 'price must be a table of destinations.', 'Write price = { default = "0.05"'],
    ['price = {}', 'price must be a table of destinations.', 'Write price = { default = "0.05"'],
    ['prices = 3', 'prices must be the name of a CSV file.', 'Write prices = "prices.csv".'],
    [
      'prices = "missing.csv"',
      'There is no file /etc/otpd/missing.csv.',
      'Correct the path or the permissions of the file.',
    ],
  ])('%s', (text, message, remedy) => {
    const problem = requireProblem(loadPrices(text))
    expect(problem.source).toBe(`${path}:${priceLine}`)
    expect(problem.message).toContain(message)
    expect(problem.remedy).toContain(remedy)
  })

  test.each([
    ['DE,0.1\nUS;0.01', 2, 'The line has 1 column,', '+4930,0.07'],
    ['DE,0.1\nUS,0,01', 2, 'The line has 3 columns', '+4930,0.07'],
    ['prefix,price\nUS,-1', 2, '"-1" is negative.', 'Write "1".'],
    ['prefix,price\nUS,', 2, '"" is not a price.', 'such as "0.0079"'],
    ['XX,1', 1, '"XX" is not a country or a prefix.', 'two-letter'],
    ['+999,1', 1, 'No phone number begins with "+999".', '+4930'],
    ['US,free\nDE,1', 1, '"free" is not a price.', 'such as "0.0079"'],
    ['US,1\nDE,1\nUS,2', 3, 'US already has a price in line 1.', 'Keep one of the two.'],
    ['', 1, 'The file has no prices.', 'Write lines such as +4930,0.07.'],
    [`US,1${' '.repeat(256 * 1024)}`, 1, 'The file is over 256 KiB.', 'Keep one row for each country'],
  ])('in the file: %#', (csv, line, message, remedy) => {
    const problem = requireProblem(loadPrices('prices = "prices.csv"', csv))
    expect(problem.source).toBe(`${csvPath}:${line}`)
    expect(problem.message).toContain(message)
    expect(problem.remedy).toContain(remedy)
  })

  test('a file of another form has ten problems at most', () => {
    const { problems } = loadPrices('prices = "prices.csv"', 'x\n'.repeat(500))
    expect(problems.length).toBe(10)
  })

  test('prices need a currency', () => {
    const text = provider.replace('[prices]\ncurrency = "EUR"\n\n', '')
    const problem = requireProblem(loadText(`${text}price = { US = "0.01" }`))
    expect(problem.text).toBe(
      'The prices have no currency. Write [prices] and currency = "EUR" below it: one currency for all providers.',
    )
    expect(requireConfig(loadText(text)).delivery).not.toHaveProperty('currency')
    expect(requireProblem(loadText(provider.replace('EUR', 'eur'))).text).toBe(
      '"eur" is not a currency. Write EUR.',
    )
    expect(requireProblem(loadText(provider.replace('EUR', 'Euro'))).remedy).toContain('ISO 4217')
  })
})
