/** One line of the text format, with the family that its `# TYPE` line names. */
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
 * Reads the text format of Prometheus, version 0.0.4, as its documentation has it.
 *
 * @throws Error with the line, where it breaks the format: no help or type before, a name that is not the family's, a
 *   series that stands twice
 */
export function samplesOf(text: string): Sample[] {
  if (!text.endsWith('\n')) throw new Error('the last line does not end')
  const helped = new Set<string>()
  const seen = new Set<string>()
  const samples: Sample[] = []
  let family = ''
  let type = ''
  for (const line of text.split('\n')) {
    const fail = (why: string) => new Error(`${why}: ${line}`)
    const comment = /^# (HELP|TYPE) ([a-zA-Z_:][\w:]*) (.+)$/.exec(line)
    if (line === '') continue
    if (comment) {
      const [, kind, name = '', rest = ''] = comment
      if (kind === 'HELP' && helped.has(name)) throw fail('help stands twice')
      if (kind === 'HELP') helped.add(name)
      else [family, type] = [name, rest]
      continue
    }
    const found = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line)
    if (!found) throw fail('this is no sample')
    const [, name = '', labelText = '', number = ''] = found
    const allowed = suffixes[type] ?? []
    if (!helped.has(family) || !allowed.some((suffix) => name === family + suffix)) throw fail('of no family')
    if (seen.has(`${name}{${labelText}}`)) throw fail('a series stands twice')
    seen.add(`${name}{${labelText}}`)
    samples.push({ family, type, name, labels: labelsOf(labelText, fail), value: valueOf(number, fail) })
  }
  return samples
}

function labelsOf(text: string, fail: (why: string) => Error): Record<string, string> {
  const pairs = [...text.matchAll(/([a-zA-Z_]\w*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/g)]
  if (pairs.map(([whole]) => whole).join('') !== text) throw fail('labels cannot be read')
  return Object.fromEntries(pairs.map(([, name, value]) => [name, value]))
}

function valueOf(text: string, fail: (why: string) => Error): number {
  if (text === '+Inf') return Infinity
  const value = Number(text)
  if (Number.isNaN(value) && !/^nan$/i.test(text)) throw fail('no number')
  return value
}
