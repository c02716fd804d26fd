import { breakText, type Line } from '../spans.ts'
import type { Theme } from '../theme.ts'

type CredentialRow = { label: string; value: string; remark?: string | undefined }

const labelWidth = 11

/** Formats credentials, one after the other, with a pointer at the selected one. Long values continue on the next line. */
export function credentialLines(
  rows: readonly CredentialRow[],
  selected: number,
  width: number,
  { paint, symbols }: Theme,
): Line[] {
  const indent = labelWidth + 2
  return rows.flatMap(({ label, value, remark = '' }, index): Line[] => {
    const isSelected = index === selected
    const [firstPiece = '', ...continuation] = breakText(value, width - indent)
    const style = isSelected ? paint.bold : undefined
    const tail = { text: `  ${remark}`, paint: paint.dim }
    return [
      [
        { text: isSelected ? `${symbols.pointer} ` : '  ', paint: paint.cyan },
        { text: label.padEnd(labelWidth), paint: style ?? paint.dim },
        { text: firstPiece, paint: style },
        ...(remark !== '' && continuation.length === 0 ? [tail] : []),
      ],
      ...continuation.map((text) => ({ text: ' '.repeat(indent) + text, paint: style })),
    ]
  })
}
