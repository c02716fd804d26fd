import { highlight } from './highlight.ts'

/** A guide: its Markdown with the generated parts filled in. */
export type Guide = { name: string; section: string; title: string; markdown: string }

/** A page ready to be put into the layout. */
export type Article = {
  html: string
  /** Headings of the second level; also of the third, if there are few. */
  headings: { id: string; text: string }[]
  /** Pictures outside of `src/docs`, as written in the guide. */
  pictures: string[]
}

/** Renders the Markdown of a guide to HTML. @param names all guides, which links between them may name */
export function renderArticle(markdown: string, names: ReadonlySet<string>): Article {
  const pictures: string[] = []
  const html = Bun.markdown
    .html(markdown)
    .replaceAll(/<a href="([^"]*)">(.*?)<\/a>/gs, (_, href: string, text: string) =>
      renderLink(href, text, names),
    )
    .replaceAll(/<img src="([^"]*)"/g, (_, source: string) => {
      pictures.push(source)
      return `<img loading="lazy" src="${fileName(source)}"`
    })
    .replaceAll(/<h([1-4])>(.*?)<\/h\1>/gs, (_, level: string, text: string) => {
      const id = slug(toText(text))
      const anchor =
        level === '1' ? '' : ` <a class="anchor" href="#${id}" aria-label="Link to this section">#</a>`
      return `<h${level} id="${id}">${text}${anchor}</h${level}>`
    })
    .replaceAll(
      /<table>.*?<\/table>/gs,
      (table) => `<div class="table" tabindex="0">${labelCells(table)}</div>`,
    )
  const headings = [...html.matchAll(/<h([23]) id="([^"]+)">(.*?) <a class="anchor"/gs)].map(
    ([, level = '', id = '', text = '']) => ({ level, id, text: toText(text) }),
  )
  const main = headings.filter(({ level }) => level === '2')
  return { html: colourCode(groupSamples(html)), headings: main.length < 3 ? headings : main, pictures }
}

/** Names the column in each cell, because a phone shows a row as a list. */
function labelCells(table: string): string {
  const titles = [...table.matchAll(/<th\b[^>]*>(.*?)<\/th>/gs)].map(([, title = '']) => toText(title))
  return table.replaceAll(/<tr>.*?<\/tr>/gs, (row) => {
    let column = 0
    return row.replaceAll(/<td\b/g, () => {
      const title = titles[column++] ?? ''
      return title === ''
        ? '<td'
        : `<td data-label="${title.replaceAll('"', '&quot;').replaceAll('<', '&lt;')}"`
    })
  })
}

const colourCode = (html: string) =>
  html.replaceAll(
    /(<pre><code class="language-(\w+)">)([^<]*)(?=<\/code><\/pre>)/g,
    (_, start: string, language: string, code: string) => start + highlight(code, language),
  )

/** The id of a heading, as GitHub makes it, so that links work in the repository too. */
const slug = (text: string) =>
  text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-')

export const fileName = (path: string) => path.split('/').at(-1) ?? ''

/** Links between guides become relative addresses. A file of the repository is named, but not linked: it is not served. */
function renderLink(href: string, text: string, names: ReadonlySet<string>): string {
  if (href.startsWith('#') || /^[a-z]+:/.test(href)) return `<a href="${href}">${text}</a>`
  const [, name = '', anchor = ''] = /^([\w-]+)\.md(#.*)?$/.exec(href) ?? []
  if (names.has(name)) return `<a href="${pageAddress(name)}${anchor}">${text}</a>`
  if (href.startsWith('../../')) return text
  throw new Error(`There is no guide for the link ${href}. Correct it, or add the guide to contents.ts.`)
}

/** Address of a guide, relative to another. */
export const pageAddress = (name: string) => (name === 'index' ? './' : name)

/** Titles of tabs by language. */
const languages = new Map([
  ['sh', 'curl'],
  ['js', 'JavaScript'],
  ['python', 'Python'],
  ['go', 'Go'],
])

/** Code blocks that follow each other directly are one sample in several languages: tabs, which need no script. */
function groupSamples(html: string): string {
  let count = 0
  return html.replaceAll(/(?:<pre><code class="language-\w+">[^<]*<\/code><\/pre>\s*){2,}/g, (blocks) => {
    const id = `tabs-${++count}`
    const samples = [...blocks.matchAll(/<pre><code class="language-(\w+)">[^<]*<\/code><\/pre>/g)]
    if (!samples.every(([, language = '']) => languages.has(language))) return blocks
    const tabs = samples.map(([, language = ''], index) => {
      const checked = index === 0 ? ' checked' : ''
      return `<input type="radio" name="${id}" id="${id}-${language}" data-language="${language}"${checked}><label for="${id}-${language}">${languages.get(language)}</label>`
    })
    const panels = samples.map(([block]) => `<div class="panel">${block}</div>`)
    return `<div class="tabs">${tabs.join('')}${panels.join('')}</div>\n`
  })
}

/** Text of a piece of HTML. */
export const toText = (html: string) =>
  html
    .replaceAll(/<a class="anchor".*?<\/a>/g, '')
    .replaceAll(/<(?:\/(?:p|li|tr|td|th|pre|h\d)|br)>/g, ' ')
    .replaceAll(/<[^>]+>/g, '')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
    .replaceAll(/\s+/g, ' ')
    .trim()
