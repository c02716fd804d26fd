/**
 * Renders the guides in `src/docs`. `bun cli/guides/render.ts` prints a JSON object with the text of each file by its
 * name; the build embeds them into the executable.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { contents } from './contents.ts'
import { fileName, renderArticle, type Guide } from './markdown.ts'
import { renderLlmsText, toServedMarkdown } from './for-programs.ts'
import { renderPage } from './page.ts'
import { scalarFiles } from './scalar.ts'
import { commandReference } from './reference/commands.ts'
import { errorReference } from './reference/errors.ts'
import { eventReference } from './reference/events.ts'
import { alertTable } from './reference/alerts.ts'
import { providerTable } from './reference/providers.ts'
import { settingTable } from './reference/settings.ts'
import { buildSearchIndex } from './search-index.ts'

const root = join(import.meta.dir, '../..')
const docs = join(root, 'src/docs')

/** Builds the parts that guides name as `<!-- generated: NAME -->`. */
const generators: Record<string, () => string> = {
  commands: commandReference,
  errors: errorReference,
  events: eventReference,
  alerts: alertTable,
  providers: providerTable,
  settings: settingTable,
}

/** Shows a file that guides name as `<!-- file: PATH -->`. */
function fileBlock(path: string): string {
  const language = { service: 'ini', timer: 'ini', yaml: 'yaml', yml: 'yaml' }[path.split('.').at(-1) ?? '']
  return `\`\`\`${language ?? 'text'}\n${readFileSync(join(root, path), 'utf8')}\`\`\``
}

/** Reads all guides, and fills in their generated parts. @throws Error for an unlisted guide or an unknown part */
export function readGuides(): Guide[] {
  const listed = contents.flatMap(({ pages }) => pages)
  const unlisted = [...new Bun.Glob('*.md').scanSync(docs)].filter(
    (file) => !listed.includes(file.slice(0, -3)),
  )
  if (unlisted.length > 0)
    throw new Error(`Add ${unlisted.join(', ')} to a section of cli/guides/contents.ts.`)
  return contents.flatMap(({ section, pages }) =>
    pages.map((name) => {
      const source = readFileSync(join(docs, `${name}.md`), 'utf8')
      const markdown = source
        .replaceAll(/<!-- file: (\S+) -->/g, (_, path: string) => fileBlock(path))
        .replaceAll(/<!-- generated: (\w+) -->/g, (_, part: string) => {
          const generate = generators[part]
          if (!generate) throw new Error(`${name}.md asks for an unknown part: ${part}.`)
          return generate()
        })
      const title = /^# (.*)$/m.exec(markdown)?.[1] ?? name
      return { name, section, title, markdown }
    }),
  )
}

/** Makes the page for an address without a guide. */
function notFoundGuide(guides: readonly Guide[]): Guide {
  const titles = new Map(guides.map(({ name, title }) => [name, title]))
  const link = (name: string) => `[${name === 'index' ? 'Overview' : titles.get(name)}](${name}.md)`
  const title = 'There is no such page'
  const lists = contents.map(({ section, pages }) => `- ${section}: ${pages.map(link).join(', ')}`)
  const markdown = `# ${title}\n\nSearch the guides above, or pick one:\n\n${lists.join('\n')}\n`
  return { name: 'not-found', section: '', title, markdown }
}

/** Renders all files of the guides. */
export async function renderGuides(): Promise<Record<string, string>> {
  const guides = readGuides()
  const names = new Set(guides.map(({ name }) => name))
  const pages = guides.map((guide) => ({ guide, article: renderArticle(guide.markdown, names) }))
  const notFound = notFoundGuide(guides)
  const pictures = new Set(pages.flatMap(({ article }) => article.pictures))
  return {
    ...Object.fromEntries(
      pages.map(({ guide, article }) => [`${guide.name}.html`, renderPage(guide, article, guides)]),
    ),
    [`${notFound.name}.html`]: renderPage(notFound, renderArticle(notFound.markdown, names), guides),
    ...Object.fromEntries(
      [...pictures].map((path) => [fileName(path), readFileSync(join(docs, path), 'utf8')]),
    ),
    ...Object.fromEntries(guides.map(({ name, markdown }) => [`${name}.md`, toServedMarkdown(markdown)])),
    'guides.json': JSON.stringify(guides.map(({ name, section, title }) => ({ name, section, title }))),
    'llms.txt': renderLlmsText(guides),
    'search.json': buildSearchIndex(pages),
    ...(await siteFiles()),
    ...scalarFiles(),
  }
}

const site = join(import.meta.dir, 'site')
const siteFile = (name: string) => readFileSync(join(site, name), 'utf8')

async function siteFiles() {
  return {
    'site.css': siteFile('site.css'),
    'guides.css': siteFile('guides.css'),
    'theme.js': siteFile('theme.js'),
    'site.js': await bundleScript('site.js'),
    'guides.js': await bundleScript('guides.js'),
  }
}

async function bundleScript(name: string): Promise<string> {
  const entrypoints = [join(site, name)]
  const { outputs } = await Bun.build({ entrypoints, target: 'browser', minify: true })
  return (await outputs[0]?.text()) ?? ''
}

if (import.meta.main) process.stdout.write(JSON.stringify(await renderGuides()))
