import type { Options } from 'minisearch'

/** One section of a guide in the search index. */
export type SearchEntry = {
  /** Address of the section, relative to `/docs/`. */
  id: string
  /** Name of the guide, as `otpd docs` takes it. */
  name: string
  /** Title of the guide. */
  title: string
  /** Heading of the section; empty before the first heading. */
  section: string
  text: string
  /** Words that people search for and that the section does not use. */
  words: string
}

/** Address of the API reference, relative to `/docs/`. Its operations are found after the guides; `site.js` adds them. */
export const apiReference = '../v1/docs'

/** Pages on how otpd is made. */
const backgroundPages = /^(\.\/)?(architecture|decisions|guard-attacks|performance)\b/

/** Options of the index. Building and loading it need the same ones. */
export const searchOptions: Options<SearchEntry> = {
  fields: ['section', 'title', 'words', 'text'],
  storeFields: ['name', 'title', 'section', 'text'],
  searchOptions: {
    boost: { section: 4, title: 4, words: 6 },
    // First what a guide begins with; last the pages that do not say how to do something.
    boostDocument: (id) =>
      backgroundPages.test(String(id)) || String(id).startsWith(apiReference)
        ? 0.3
        : String(id).startsWith('commands#')
          ? 0.7
          : String(id).includes('#')
            ? 1
            : 1.5,
    weights: { fuzzy: 0.2, prefix: 0.4 },
    prefix: true,
    fuzzy: 0.1,
    combineWith: 'AND',
  },
}

const excerptLength = 140

/** Cuts the part around the first of the words out of a section. */
export function makeExcerpt(text: string, words: readonly string[]): string {
  const lower = text.toLowerCase()
  const found = words.map((word) => lower.indexOf(word.toLowerCase())).filter((at) => at >= 0)
  const around = Math.max(0, (found.length === 0 ? 0 : Math.min(...found)) - 50)
  const start = around === 0 ? 0 : text.indexOf(' ', around) + 1
  const end = start + excerptLength
  return `${start > 0 ? '… ' : ''}${text.slice(start, end).trim()}${end < text.length ? ' …' : ''}`
}
