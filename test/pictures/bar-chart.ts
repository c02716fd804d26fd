export type Bar = { label: string; value: number; isOurs: boolean }

const width = 840
const labelWidth = 380
const barHeight = 20
const gap = 10

/**
 * Draws horizontal bars on a logarithmic scale as SVG. Its colours can be read on light and on dark pages, because a
 * picture does not know the page's theme.
 */
export function drawBars(title: string, unit: string, bars: readonly Bar[]): string {
  const top = 44
  const height = top + bars.length * (barHeight + gap) + 8
  const room = width - labelWidth - 90
  const largest = Math.log10(Math.max(...bars.map(({ value }) => value)))
  const smallest = Math.log10(Math.min(...bars.map(({ value }) => value))) - 0.4
  const rows = bars.map(({ label, value, isOurs }, index) => {
    const y = top + index * (barHeight + gap)
    const length = Math.round((room * (Math.log10(value) - smallest)) / (largest - smallest))
    const weight = isOurs ? ' font-weight="700"' : ''
    return `<text x="${labelWidth - 10}" y="${y + 15}" text-anchor="end"${weight}>${escapeXml(label)}</text><rect x="${labelWidth}" y="${y}" width="${length}" height="${barHeight}" rx="3" fill="${isOurs ? '#3b82f6' : '#8b96ab'}"/><text x="${labelWidth + length + 8}" y="${y + 15}"${weight}>${value.toLocaleString('en-US')}</text>`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escapeXml(title)}">
<g font-family="system-ui, sans-serif" font-size="13" fill="#7d889c">
<text x="0" y="16" font-size="14" font-weight="700">${escapeXml(title)}</text>
<text x="${width}" y="16" text-anchor="end">${escapeXml(unit)}, logarithmic</text>
${rows.join('\n')}
</g>
</svg>
`
}

const escapeXml = (value: string) => value.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
