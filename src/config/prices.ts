import { createHash } from 'node:crypto'
import { resolve } from 'node:path'
import { parsePriceKey, type PriceKey, type PriceList } from '../domain/model/price.ts'
import { parsePriceFile, parsePriceText } from './price-file.ts'
import { tryReadFile } from './paths.ts'
import type { ConfigInput, Reader } from './reader.ts'
import type { ConfigTable } from './tables.ts'
import { quote, type Parsed } from './values.ts'

/** Whether a key of a `[[providers]]` table is about prices: `prices`, `price`, or a destination below it. */
export const isPriceKey = (key: string) => key === 'prices' || key === 'price' || key.startsWith('price.')

/** Large enough for each area of the world; the list is kept with the other settings. */
const fileBytesMax = 256 * 1024

/**
 * Reads the prices of a provider: `price = { default = "0.05", US = "0.0079", "+4930" = "0.07" }`, and the rows of the CSV
 * file that `prices` names. A destination that both have costs what the table says.
 *
 * @returns undefined if there are none, or any of them has a problem
 */
export function readPrices(
  reader: Reader,
  input: ConfigInput,
  { keys }: ConfigTable,
  provider: string,
): PriceList | undefined {
  const problemsBefore = reader.problems.length
  let defaultPrice: number | null = null
  const countries = new Map<string, number>()
  const prefixes = new Map<string, number>()
  const file = keys.get('prices')
  if (file) readFile(file)
  const entries = [...keys].filter(([key]) => key !== 'prices' && isPriceKey(key))
  for (const [key, { value, source }] of entries) readEntry(key.slice('price.'.length), value, source)
  if ((entries.length === 0 && !file) || reader.problems.length > problemsBefore) return undefined
  const [first] = entries
  if (first) {
    const shown = entries.map(([key, { value }]) => `${key.slice('price.'.length)} ${String(value)}`)
    reader.values.push({ setting: `providers.${provider}.price`, value: shown, origin: first[1].source })
  }
  return {
    default: defaultPrice,
    countries: Object.fromEntries(countries),
    prefixes: Object.fromEntries(prefixes),
  }

  function readEntry(key: string, value: unknown, source: string) {
    if (key === '') {
      reader.report(
        source,
        'price must be a table of destinations.',
        'Write price = { default = "0.05", US = "0.0079" }.',
      )
      return
    }
    const price = parsePriceValue(value)
    if ('fault' in price) reader.report(source, `The price of ${key}: ${price.fault}`, price.remedy)
    const destination = parsePriceKey(key)
    if ('fault' in destination) reader.report(source, destination.fault, destination.remedy)
    else if ('value' in price) add(destination, price.value)
  }

  function readFile({ value, source }: { value: unknown; source: string }) {
    if (typeof value !== 'string' || value === '') {
      reader.report(source, 'prices must be the name of a CSV file.', 'Write prices = "prices.csv".')
      return
    }
    const path = resolve(reader.configFileDir(), value)
    const content = tryReadFile(input, path)
    if (!('bytes' in content)) {
      reader.report(source, content.fault, 'Correct the path or the permissions of the file.')
      return
    }
    if (content.bytes.length > fileBytesMax) {
      reader.report(
        `${path}:1`,
        'The file is over 256 KiB.',
        'Keep one row for each country, and few prefixes.',
      )
      return
    }
    const { rows, problems } = parsePriceFile(content.bytes)
    for (const { line, message, remedy } of problems) reader.report(`${path}:${line}`, message, remedy)
    for (const { key, price } of rows) add(key, price)
    const digest = createHash('sha256').update(content.bytes).digest('hex').slice(0, 8)
    const shown = `${path} (${rows.length} prices, sha256 ${digest})`
    reader.values.push({ setting: `providers.${provider}.prices`, value: shown, origin: source })
  }

  function add(destination: PriceKey, price: number) {
    if (destination.kind === 'default') defaultPrice = price
    else if (destination.kind === 'country') countries.set(destination.key, price)
    else prefixes.set(destination.key, price)
  }
}

/** Prices are text: TOML's decimals are binary fractions, which cannot hold 0.0079 exactly. */
function parsePriceValue(value: unknown): Parsed<number> {
  if (typeof value === 'string') return parsePriceText(value)
  // A table or a list has no text.
  const text = typeof value === 'number' ? String(value) : ''
  const quoted = parsePriceText(text)
  const remedy = 'fault' in quoted ? quoted.remedy : `Put it in quotes: "${text}".`
  return { fault: 'it must be text.', remedy }
}

/**
 * Reads the currency of all prices. Null: otpd keeps no prices.
 *
 * @param priced where the first provider's prices are; they mean nothing without a currency
 */
export function readCurrency(reader: Reader, priced: string | undefined): string | null {
  const { value, source } = reader.read<string | null>('pricesCurrency', parseCurrency, null)
  if (priced !== undefined && value === null && source === null) {
    reader.report(
      priced,
      'The prices have no currency.',
      'Write [prices] and currency = "EUR" below it: one currency for all providers.',
    )
  }
  return value
}

function parseCurrency(text: string): Parsed<string> {
  if (Intl.supportedValuesOf('currency').includes(text)) return { value: text }
  const upper = text.toUpperCase()
  return {
    fault: `${quote(text)} is not a currency.`,
    remedy: Intl.supportedValuesOf('currency').includes(upper)
      ? `Write ${upper}.`
      : 'Use a three-letter ISO 4217 code such as EUR or USD.',
  }
}
