import type { Output } from '../terminal/output.ts'
import { kept, wrapped } from '../terminal/table.ts'
import { formatFacts, printable } from '../terminal/text.ts'
import type { Template } from './resources.ts'

export const partsText = (parts: number) => (parts === 1 ? '1 part' : `${parts} parts`)

/** Lists a few of the characters that require UCS-2. */
export const sampleCharacters = (foreign: readonly string[]) => {
  const visible = foreign.filter((character) => printable(character) === character)
  return [...visible.slice(0, 3), ...(visible.length > 3 ? ['…'] : [])].join(' ')
}

/** Table of an application's templates. */
export const templatesText = (templates: readonly Template[], output: Output) =>
  output.formatTable(
    [kept('NAME'), 'LANGUAGES', 'VARIABLES', 'PARTS', output.timeHeading('UPDATED')],
    templates.map(({ name, texts, variables, sizes, updatedAt }) => [
      printable(name),
      Object.keys(texts).map(printable).join(', '),
      variables.join(', ') || '—',
      String(Math.max(...sizes.map(({ parts }) => parts))),
      output.columnTime(updatedAt),
    ]),
  )

/** Facts and texts of a template. */
export function templateText({ name, texts, variables, createdAt, updatedAt }: Template, output: Output) {
  const facts = formatFacts(
    [
      ['Template', printable(name)],
      ['Variables', variables.length === 0 ? 'none' : variables.join(', ')],
      ['Created', output.formatTime(createdAt)],
      ['Updated', createdAt === updatedAt ? null : output.formatTime(updatedAt)],
    ],
    output.paint,
  )
  const rows = Object.entries(texts).map(([locale, text]) => [
    printable(locale),
    printable(text.replaceAll('\n', ' ⏎ ')),
  ])
  return `${facts}\n\n${output.formatTable([kept('LANGUAGE'), wrapped('TEXT')], rows)}`
}

/** Table of the sizes of templates, one row for each text. */
export const templateSizesText = (templates: readonly Template[], { paint, formatTable }: Output) =>
  formatTable(
    [kept('TEMPLATE'), 'LOCALE', 'ENCODING', 'UNITS', 'PARTS', 'UCS-2'],
    templates.flatMap(({ name, sizes }) =>
      sizes.map(({ locale, encoding, units, unitsMax, parts, foreign }) => [
        printable(name),
        printable(locale),
        encoding,
        `${units}/${unitsMax}`,
        parts > 1 ? paint.yellow(String(parts)) : '1',
        sampleCharacters(foreign),
      ]),
    ),
  )

/** Warns of each text whose message needs more than one SMS. */
export function warnOfParts(output: Output, templates: readonly Template[]) {
  for (const { name, sizes } of templates) {
    for (const { locale, parts, encoding, foreign } of sizes) {
      if (parts === 1) continue
      const reason = encoding === 'UCS-2' ? ` because of ${sampleCharacters(foreign)}` : ''
      output.warn(
        `${printable(name)} in ${printable(locale)} takes up to ${partsText(parts)} of an SMS${reason}; each is charged as one message.`,
      )
    }
  }
}
