/** Sample of the text format, with the metric family that its `# TYPE` line names. */
export type Sample = {
  family: string
  type: string
  name: string
  labels: Record<string, string>
  value: number
}

const suffixes: Record<string, string[]> = {
  histogram: ['_bucket', '_sum', '_count'],
  counter: [''],
  gauge: [''],
}

/**
 * Parses the Prometheus text format, version 0.0.4, strictly by its documentation.
 *
 * @throws Error with the line that breaks the format: no preceding HELP or TYPE, a name outside the family, a duplicate
 *   series
 */
export function parseExposition(text: string): Sample[] {
  if (!text.endsWith('\n')) throw new Error('the last line has no line feed')
  const familiesWithHelp = new Set<string>()
  const seenSeries = new Set<string>()
  const samples: Sample[] = []
  let family = ''
  let type = ''
  for (const line of text.split('\n')) {
    const fail = (reason: string) => new Error(`${reason}: ${line}`)
    const comment = /^# (HELP|TYPE) ([a-zA-Z_:][\w:]*) (.+)$/.exec(line)
    if (line === '') continue
    if (comment) {
      const [, kind, name = '', rest = ''] = comment
      if (kind === 'HELP' && familiesWithHelp.has(name)) throw fail('duplicate HELP')
      if (kind === 'HELP') familiesWithHelp.add(name)
      else [family, type] = [name, rest]
      continue
    }
    const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line)
    if (!match) throw fail('not a sample')
    const [, name = '', labelText = '', valueText = ''] = match
    const allowed = suffixes[type] ?? []
    if (!familiesWithHelp.has(family) || !allowed.some((suffix) => name === family + suffix))
      throw fail('belongs to no family')
    if (seenSeries.has(`${name}{${labelText}}`)) throw fail('duplicate series')
    seenSeries.add(`${name}{${labelText}}`)
    samples.push({
      family,
      type,
      name,
      labels: parseLabels(labelText, fail),
      value: parseValue(valueText, fail),
    })
  }
  return samples
}

function parseLabels(text: string, fail: (reason: string) => Error): Record<string, string> {
  const pairs = [...text.matchAll(/([a-zA-Z_]\w*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/g)]
  if (pairs.map(([pair]) => pair).join('') !== text) throw fail('malformed labels')
  return Object.fromEntries(pairs.map(([, name, value]) => [name, value]))
}

function parseValue(text: string, fail: (reason: string) => Error): number {
  if (text === '+Inf') return Infinity
  const value = Number(text)
  if (Number.isNaN(value) && !/^nan$/i.test(text)) throw fail('not a number')
  return value
}
