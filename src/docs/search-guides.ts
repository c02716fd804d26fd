import MiniSearch from 'minisearch'
import { makeExcerpt, searchOptions, type SearchEntry } from './search.ts'

export type FoundSection = {
  /** Name of the guide. */
  guide: string
  title: string
  /** Heading; empty before the first one. */
  section: string
  /** Address on a server. */
  path: string
  excerpt: string
}

/** Searches all guides, best sections first. @param index the search index, as JSON */
export function searchGuides(index: string, words: string): FoundSection[] {
  return MiniSearch.loadJSON<SearchEntry>(index, searchOptions)
    .search(words)
    .slice(0, 20)
    .map(({ id, name, title, section, text, terms }) => ({
      guide: String(name),
      title: String(title),
      section: String(section),
      path: `/docs/${String(id).replace(/^\.\//, '')}`,
      excerpt: makeExcerpt(String(text), terms),
    }))
}
