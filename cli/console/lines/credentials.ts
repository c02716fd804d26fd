import { breakText, type Line } from '../spans.ts'
import type { Theme } from '../theme.ts'

export type CredentialRow = { label: string; value: string; remark?: string | undefined }

const labelWidth = 11

/**
 * One credential after the other, the selected one with the pointer. A value is there to be read whole: what does not
 * fit goes on in the next line.
 */
export function credentialLines(
  rows: readonly CredentialRow[],
  selected: number,
  width: number,
  { paint, symbols }: Theme,
): Line[] {
  const indent = labelWidth + 2
  return rows.flatMap(({ label, value, remark = '' }, index): Line[] => {
    const isHere = index === selected
    const [first = '', ...others] = breakText(value, width - indent)
    const style = isHere ? paint.bold : undefined
    const tail = { text: `  ${remark}`, paint: paint.dim }
    return [
      [
        { text: isHere ? `${symbols.pointer} ` : '  ', paint: paint.cyan },
        { text: label.padEnd(labelWidth), paint: style ?? paint.dim },
        { text: first, paint: style },
        ...(remark !== '' && others.length === 0 ? [tail] : []),
      ],
      ...others.map((text) => ({ text: ' '.repeat(indent) + text, paint: style })),
    ]
  })
}
