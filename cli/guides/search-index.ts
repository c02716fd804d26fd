import MiniSearch from 'minisearch'
import { searchOptions, type SearchEntry } from '../../src/docs/search.ts'
import { searchWords } from './search-words.ts'
import { pageAddress, toText, type Article, type Guide } from './markdown.ts'

/** Builds the search index of all guides, one entry per section, as JSON that the page and the command line load. */
export function buildSearchIndex(pages: ReadonlyArray<{ guide: Guide; article: Article }>): string {
  const index = new MiniSearch<SearchEntry>(searchOptions)
  index.addAll(pages.flatMap(({ guide, article }) => listSections(guide, article)))
  const unknown = Object.keys(searchWords).filter((id) => !index.has(id))
  if (unknown.length > 0)
    throw new Error(`Correct cli/guides/search-words.ts: no section ${unknown.join(', ')}.`)
  return JSON.stringify(index)
}

/** Splits a page at its headings. */
function listSections({ name, title }: Guide, { html }: Article): SearchEntry[] {
  return html.split(/(?=<h[123] id=")/).flatMap((part) => {
    const [heading = '', level = '', id = ''] = /^<h([123]) id="([^"]+)">.*?<\/h\1>/s.exec(part) ?? []
    if (level === '') return []
    const text = toText(part.slice(heading.length))
    const anchor = level === '1' ? '' : `#${id}`
    const section = level === '1' ? '' : toText(heading)
    const address = `${pageAddress(name)}${anchor}`
    return [{ id: address, name, title, section, text, words: searchWords[address] ?? '' }]
  })
}
