import { Option } from 'commander'
import type { CliCommand } from './command.ts'
import type { FoundSection } from '../../src/docs/search-guides.ts'
import type { Context } from '../context.ts'
import { exitCodes, usageError } from '../terminal/errors.ts'
import { formatMarkdown } from '../terminal/markdown.ts'
import { page } from '../terminal/pager.ts'
import { similarWords } from '../terminal/similar.ts'
import { shellWord } from '../../src/shared/shell-word.ts'
import { printable, truncate } from '../terminal/text.ts'

type Options = { list?: true; search?: string; format: 'text' | 'md' }

type Guide = { name: string; section: string; title: string }

/** Widest lines that are still read easily. */
const columnsMax = 100

/** Registers `otpd docs`. */
export function addDocsCommand(program: CliCommand) {
  program
    .command('docs')
    .argument('[guide]', 'name of a guide, like webhooks; without one, all are listed')
    .description('read the guides; no server is needed')
    .option('-l, --list', 'list the guides')
    .option('-s, --search <words>', 'search all guides')
    .addOption(
      new Option('--format <format>', 'text for people, or md for programs (Markdown)')
        .choices(['text', 'md'])
        .default('text'),
    )
    .examples(
      'otpd docs',
      'otpd docs webhooks',
      'otpd docs --search resend',
      'otpd docs agents --format md > AGENTS-otpd.md',
    )
    .run(async (context, name: string | undefined, { list, search, format }: Options) => {
      const isMarkdown = format === 'md'
      if (isMarkdown && (search !== undefined || context.output.json))
        throw usageError('--format md goes with neither --search nor --json.', 'Leave one of them out.')
      if (search !== undefined) return await findSections(context, search)
      const guides = await readGuides()
      if (name === undefined || list)
        return isMarkdown ? context.io.writeOut(await readText('llms.txt')) : listGuides(context, guides)
      return await showGuide(context, guides, name, isMarkdown)
    })
}

/** @throws Error if the build left the file out */
async function readText(file: string): Promise<string> {
  const { readGuideFile } = await import('../../src/docs/read-guide-file.ts')
  const text = await readGuideFile(file)
  if (text === undefined) throw new Error(`The guides have no file ${file}.`)
  return text
}

export async function readGuides(): Promise<Guide[]> {
  return JSON.parse(await readText('guides.json'))
}

function listGuides({ output }: Context, guides: Guide[]) {
  output.printData(guides, () => {
    const rows = guides.map(({ name, title }) => [name, title])
    return output.formatTable(['GUIDE', 'TITLE'], rows)
  })
  output.suggestNext('otpd docs quickstart', 'otpd docs --search resend')
}

async function showGuide({ io, output }: Context, guides: Guide[], name: string, isMarkdown: boolean) {
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
  const markdown = await readText(`${guide.name}.md`)
  if (isMarkdown) return io.writeOut(markdown)
  if (output.json) return output.printData({ ...guide, markdown }, () => '')
  const columns = Math.min(output.columns() ?? columnsMax, columnsMax)
  const text = formatMarkdown(markdown, {
    columns,
    hasColor: output.paint.isColorSupported,
    paint: output.paint,
  })
  return await page(io, `${text}\n`)
}

async function findSections({ output }: Context, words: string) {
  const { searchGuides } = await import('../../src/docs/search-guides.ts')
  const found = searchGuides(await readText('search.json'), words)
  output.printData(found, () =>
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
