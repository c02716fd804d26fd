import type { Command } from 'commander'
import type { FoundSection } from '../../src/docs/search-guides.ts'
import type { Context, RunCommand } from '../context.ts'
import { examples } from '../help.ts'
import { exitCodes, usageError } from '../terminal/errors.ts'
import { formatMarkdown } from '../terminal/markdown.ts'
import { page } from '../terminal/pager.ts'
import { similarWords } from '../terminal/similar.ts'
import { printable, shellWord, truncate } from '../terminal/text.ts'

type Options = { list?: true; search?: string }

type Guide = { name: string; section: string; title: string; markdown: string }

/** Widest lines that are still read easily. */
const columnsMax = 100

/** Registers `otpd docs`. */
export function addDocsCommand(program: Command, runCommand: RunCommand) {
  program
    .command('docs')
    .argument('[guide]', 'name of a guide, like webhooks; without one, all are listed')
    .description('read the guides; no server is needed')
    .option('-l, --list', 'list the guides')
    .option('-s, --search <words>', 'search all guides')
    .addHelpText('after', examples('otpd docs', 'otpd docs webhooks', 'otpd docs --search resend'))
    .action((name: string | undefined, { list, search }: Options, command: Command) =>
      runCommand(command, async (context) => {
        if (search !== undefined) return await findSections(context, search)
        const guides = await readGuides()
        if (name === undefined || list) return listGuides(context, guides)
        return await showGuide(context, guides, name)
      }),
    )
}

async function readText(file: string): Promise<string> {
  const { readGuideFile } = await import('../../src/docs/read-guide-file.ts')
  return (await readGuideFile(file)) ?? '[]'
}

export async function readGuides(): Promise<Guide[]> {
  return JSON.parse(await readText('guides.json'))
}

function listGuides({ output }: Context, guides: Guide[]) {
  const data = guides.map(({ name, section, title }) => ({ name, section, title }))
  output.printResult(JSON.stringify({ data }), () => {
    const rows = guides.map(({ name, title }) => [name, title])
    return output.formatTable(['GUIDE', 'TITLE'], rows)
  })
  output.suggestNext('otpd docs quickstart', 'otpd docs --search resend')
}

async function showGuide({ io, output }: Context, guides: Guide[], name: string) {
  const guide = guides.find((one) => one.name === name.toLowerCase().replace(/\.md$/, ''))
  if (guide === undefined)
    throw usageError(
      `Unknown guide '${printable(name)}'.`,
      ...similarWords(
        name.toLowerCase(),
        guides.map((one) => one.name),
      ).map((similar) => `Did you mean: otpd docs ${similar}`),
      'List them: otpd docs',
      `Search them: otpd docs --search ${shellWord(name)}`,
    )
  if (output.json) return output.printResult(JSON.stringify({ data: guide }), () => '')
  const columns = Math.min(output.columns() ?? columnsMax, columnsMax)
  const text = formatMarkdown(guide.markdown, {
    columns,
    hasColor: output.paint.isColorSupported,
    paint: output.paint,
  })
  return await page(io, `${text}\n`)
}

async function findSections({ output }: Context, words: string) {
  const { searchGuides } = await import('../../src/docs/search-guides.ts')
  const found = searchGuides(await readText('search.json'), words)
  output.printResult(JSON.stringify({ data: found }), () =>
    found.length === 0 ? `Nothing found for ${JSON.stringify(words)}.` : found.map(formatFound).join('\n'),
  )
  const [best] = found
  if (best) output.suggestNext(`otpd docs ${best.guide}`)
  return best ? exitCodes.done : exitCodes.negative

  function formatFound({ guide, section, title, excerpt }: FoundSection) {
    const heading = section === '' ? title : `${title} › ${section}`
    const line = truncate(excerpt, (output.columns() ?? Infinity) - 4, '…')
    return `${output.paint.bold(guide)}  ${heading}\n    ${output.paint.dim(line)}`
  }
}
