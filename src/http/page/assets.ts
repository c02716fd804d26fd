import type { Markup } from './markup.ts'
import { readPageFile } from './page-file.ts' with { type: 'macro' }

/** Style and script of the page, which are part of it: it loads nothing else. */
export const pageStyle: Markup = { markup: readPageFile('page.css') }
export const pageScript: Markup = { markup: readPageFile('page.js') }
