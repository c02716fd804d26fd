import type { Client } from 'pg'
import type { MovedTable, Value } from './moved-tables.ts'

/** Number of rows of a table, and the first 64 bits of the rows' MD5 sums, combined by XOR so that no order matters. */
export type TableSum = { rows: number; checksum: string }

/** Adds up the rows of a table while they are sent. */
export function createTableSum() {
  const digest = new Uint8Array(16)
  const words = new DataView(digest.buffer)
  let rows = 0
  let high = 0
  let low = 0
  return {
    add(text: string) {
      Bun.MD5.hash(text, digest)
      high ^= words.getUint32(0)
      low ^= words.getUint32(4)
      rows++
    },
    rows: () => rows,
    read: (): TableSum => ({ rows, checksum: toHex(high) + toHex(low) }),
  }
}

const toHex = (word: number) => (word >>> 0).toString(16).padStart(8, '0')

/** Null in the text format of COPY. */
const nullText = String.raw`\N`

/** Writes a row for the checksum: its values with tabs between them. */
export const rowText = (row: readonly Value[]) => row.map((value) => value ?? nullText).join('\t')

/** Adds up the rows that PostgreSQL has. */
export async function readTableSum(client: Client, { name, columns }: MovedTable): Promise<TableSum> {
  const values = columns.map((column) => `coalesce(${column}::text, '${nullText}')`).join(`, E'\\t', `)
  const result = await client.query<{ rows: string; bits: string }>(
    `select count(*)::text as rows,
       coalesce(bit_xor(('x' || left(md5(concat(${values})), 16))::bit(64))::text, '0') as bits from ${name}`,
  )
  const { rows, bits } = result.rows[0] ?? { rows: '0', bits: '0' }
  return { rows: Number(rows), checksum: BigInt(`0b${bits}`).toString(16).padStart(16, '0') }
}

/** Writes a row in the text format of COPY. @param text what rowText made of it */
export function copyLine(row: readonly Value[], text: string): string {
  const isPlain = row.every((value) => typeof value !== 'string' || !special.test(value))
  if (isPlain) return `${text}\n`
  const values = row.map((value) =>
    typeof value === 'string' ? value.replaceAll(everySpecial, escapeCharacter) : (value ?? nullText),
  )
  return `${values.join('\t')}\n`
}

const special = /[\\\t\n\r]/
const everySpecial = /[\\\t\n\r]/g
const escapes: Record<string, string> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' }
const escapeCharacter = (character: string) => escapes[character] ?? character
