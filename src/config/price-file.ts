import { formatPrice, parsePrice, parsePriceKey, type PriceKey } from '../domain/model/price.ts'
import { quote, type Parsed } from './values.ts'

type PriceRow = { key: PriceKey; price: number }
type PriceFileProblem = { line: number; message: string; remedy: string }

/** More would hide the first ones: a file with the wrong columns has a problem in each line. */
const problemsMax = 10

/**
 * Parses a CSV file of prices: a destination and a price in each line, below a heading if there is one. The destination is
 * `default`, a country such as `US`, or a prefix, whose `+` may be missing because spreadsheets remove it.
 */
export function parsePriceFile(bytes: Uint8Array): { rows: PriceRow[]; problems: PriceFileProblem[] } {
  const problems: PriceFileProblem[] = []
  const rows = new Map<string, PriceRow & { line: number }>()
  for (const [index, text] of decode(bytes).split(/\r?\n/).entries()) {
    if (problems.length >= problemsMax) break
    const line = index + 1
    if (text.trim() === '' || (line === 1 && isHeading(text))) continue
    const row = parseRow(text)
    const first = 'key' in row ? rows.get(keyText(row.key)) : undefined
    if (first && 'key' in row) {
      problems.push({
        line,
        message: `${keyText(row.key)} already has a price in line ${first.line}.`,
        remedy: 'Keep one of the two.',
      })
    } else if ('key' in row) rows.set(keyText(row.key), { ...row, line })
    else problems.push({ line, message: row.fault, remedy: row.remedy })
  }
  if (rows.size === 0 && problems.length === 0)
    problems.push({ line: 1, message: 'The file has no prices.', remedy: 'Write lines such as +4930,0.07.' })
  return { rows: [...rows.values()].map(({ key, price }) => ({ key, price })), problems }
}

function parseRow(text: string): PriceRow | { fault: string; remedy: string } {
  const cells = splitCells(text)
  const [destination = '', price = ''] = cells
  if (cells.length !== 2) {
    return {
      fault: `The line has ${cells.length === 1 ? '1 column' : `${cells.length} columns`}, separated by commas, instead of 2.`,
      remedy: 'Write the country or prefix and the price, with a decimal point: +4930,0.07.',
    }
  }
  const key = parsePriceKey(/^\d+$/.test(destination) ? `+${destination}` : destination)
  if ('fault' in key) return key
  const parsed = parsePriceText(price)
  return 'fault' in parsed ? parsed : { key, price: parsed.value }
}

const splitCells = (text: string) => text.split(',').map((cell) => cell.trim().replace(/^"(.*)"$/, '$1'))

/** Tells a heading from a mistake: it names columns, and neither a destination nor a price. */
const isHeading = (text: string) =>
  splitCells(text).every((cell) => 'fault' in parsePriceKey(cell) && /^[a-z][a-z ()/_-]*$/i.test(cell))

const keyText = (key: PriceKey) => (key.kind === 'default' ? key.kind : key.key)

/** Invalid bytes become replacement characters, which are reported as part of no destination or price. */
const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

/** Parses a decimal number in a configuration or CSV file. */
export function parsePriceText(text: string): Parsed<number> {
  const price = parsePrice(text)
  if (price !== undefined) return { value: price }
  const positive = parsePrice(text.replace(/^-/, ''))
  if (positive !== undefined)
    return { fault: `${quote(text)} is negative.`, remedy: `Write "${formatPrice(positive)}".` }
  const fault = `${quote(text)} is not a price.`
  const withPoint = parsePrice(text.replace(',', '.'))
  if (withPoint !== undefined) return { fault, remedy: `Write it with a point: "${formatPrice(withPoint)}".` }
  const bare = parsePrice(
    text.replace(/^(?:[A-Z]{3}|\p{Sc}) ?| ?(?:[A-Z]{3}|\p{Sc})$/gu, '').replace(',', '.'),
  )
  return {
    fault,
    remedy:
      bare === undefined
        ? 'Write a decimal number with at most seven digits, six decimals and no currency, such as "0.0079".'
        : `Write it without a currency, which [prices] names for all: "${formatPrice(bare)}".`,
  }
}
