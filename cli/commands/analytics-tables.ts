import { formatMoney, formatUnitCost, savedText, sumCosts } from '../client/costs.ts'
import type { BreakdownRow, CostRow } from '../client/resources.ts'
import type { Output } from '../terminal/output.ts'
import { kept, optional, type Heading } from '../terminal/table.ts'
import { formatNumber, printable } from '../terminal/text.ts'

const countText = (value: number | null | undefined) => (value == null ? '-' : formatNumber(value))
const nameOf = ({ name, key }: BreakdownRow, missing = 'unknown') => printable(name ?? key ?? missing)

/** Formats counts by one key, with their costs if the operator has set a currency. */
export function breakdownText(by: string, rows: BreakdownRow[], { formatTable }: Output) {
  if (rows.length === 0) return 'No codes in this time.'
  const currency = rows[0]?.currency ?? null
  const hasRelayed = rows.some(({ relayed }) => (relayed ?? 0) > 0)
  const headings: Heading[] = [
    by.toUpperCase(),
    kept('SENT'),
    ...(hasRelayed ? [optional('RELAYED')] : []),
    optional('DELIVERED'),
    optional('UNDELIVERED'),
    kept('VERIFIED'),
    kept('FAILED'),
    kept('CONVERSION'),
    ...(currency === null ? [] : [kept(`COST (${currency})`), kept('PER VERIFIED')]),
    optional('MEDIAN'),
    optional('FILTERED'),
  ]
  // A request has no provider until one accepts its message; those of test applications have no channel either.
  const missing = by === 'country' ? 'unknown' : 'none'
  const cells = rows.map((row) => [
    nameOf(row, missing),
    formatNumber(row.sent),
    ...(hasRelayed ? [countText(row.relayed)] : []),
    countText(row.delivered),
    countText(row.undelivered),
    formatNumber(row.verified),
    formatNumber(row.failed),
    row.conversion === null ? '-' : `${Math.round(row.conversion)}%`,
    ...(currency === null ? [] : [formatMoney(row.cost), formatUnitCost(row.costPerVerified)]),
    medianText(row),
    countText(row.blocked),
  ])
  return formatTable(headings, cells)
}

/** Formats the costs by country and provider, and their sum. */
export function costsText(rows: CostRow[], { formatTable, paint }: Output) {
  if (rows.length === 0) return 'No codes were sent through a provider in this time.'
  const currency = rows[0]?.currency ?? null
  if (currency === null)
    return 'No costs are counted. The operator sets prices.currency, and the prices of each provider: otpd docs costs'
  const total = sumCosts(rows)
  const cells = rows.map((row) => [
    nameOf(row),
    printable(row.provider),
    formatNumber(row.sent),
    ...(total.relayed > 0 ? [formatNumber(row.relayed)] : []),
    formatNumber(row.verified),
    `${Math.round(row.conversion)}%`,
    formatMoney(row.cost),
    formatUnitCost(row.costPerVerified),
    ...(total.saved === null ? [] : [formatMoney(row.saved)]),
    medianText(row),
  ])
  const table = formatTable(
    [
      'COUNTRY',
      'PROVIDER',
      kept('SENT'),
      ...(total.relayed > 0 ? [optional('RELAYED')] : []),
      kept('VERIFIED'),
      optional('CONVERSION'),
      kept(`COST (${currency})`),
      kept('PER VERIFIED'),
      ...(total.saved === null ? [] : [kept('SAVED')]),
      optional('MEDIAN'),
    ],
    cells,
  )
  const perVerified =
    total.costPerVerified === null ? '' : `, ${formatUnitCost(total.costPerVerified)} per verified code`
  const notes = [
    `Total: ${formatMoney(total.cost)} ${currency} for ${formatNumber(total.sent + total.relayed)} messages${perVerified}`,
    ...(total.saved === null
      ? []
      : [`Strategies ${savedText(total.saved, currency)}, compared with the fixed order`]),
    ...(total.estimatedCost > 0
      ? [`Estimated by your prices: ${formatMoney(total.estimatedCost)} ${currency}`]
      : []),
    ...(total.relayed > 0
      ? [
          `Codes of other systems: ${formatNumber(total.relayed)} messages for ${formatMoney(total.relayedCost)} ${currency}, not in the cost per verified code`,
        ]
      : []),
    ...(total.unpriced > 0
      ? [`Without a price: ${formatNumber(total.unpriced)} messages, which are not in the cost`]
      : []),
  ]
  return `${table}\n\n${notes.map((line, index) => (index === 0 ? paint.bold(line) : paint.dim(line))).join('\n')}`
}

/** Seconds until a code was entered; the last class of times has no end. */
const medianText = ({ medianSeconds }: BreakdownRow) =>
  medianSeconds == null ? '-' : medianSeconds >= 120 ? '2 min+' : `${medianSeconds} s`

type CsvRow = Record<string, string | number | null>

/** Formats CSV (RFC 4180) that runs no formulas in spreadsheets. @param columns default: those of the first row */
export const toCsv = (rows: readonly CsvRow[], columns: readonly string[] = Object.keys(rows[0] ?? {})) =>
  [columns, ...rows.map((row) => columns.map((column) => row[column]))]
    .map((cells) => cells.map(toCsvCell).join(','))
    .join('\n')

const countColumns = [
  'sent',
  'delivered',
  'undelivered',
  'verified',
  'failed',
  'conversion',
  'blocked',
  'medianSeconds',
  'currency',
  'cost',
  'estimatedCost',
  'costPerVerified',
  'unpriced',
  'relayed',
  'relayedCost',
]

/** Formats counts by one key as CSV; without rows, its header alone. */
export const breakdownCsv = (rows: readonly BreakdownRow[]) => toCsv(rows, ['key', 'name', ...countColumns])

/** Formats the costs as CSV; without rows, its header alone. */
export const costsCsv = (rows: readonly CostRow[]) =>
  toCsv(
    rows.map((row) => ({ ...row, country: row.key })),
    ['country', 'name', 'provider', ...countColumns, 'saved'],
  )

/** Start of a text that spreadsheets run as a formula; the names of applications may begin with it. */
const formulaStart = /^[=+\-@\t\r]/
/** Money is decimal text, and savings can be negative. */
const decimalNumber = /^-?\d+(?:\.\d+)?$/

function toCsvCell(value: string | number | null | undefined) {
  const content = String(value ?? '')
  const text = formulaStart.test(content) && !decimalNumber.test(content) ? `'${content}` : content
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
