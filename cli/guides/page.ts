import { contents } from './contents.ts'
import { pageAddress, type Article, type Guide } from './markdown.ts'

/** Puts an article into the layout that all pages share. */
export function renderPage(guide: Guide, article: Article, guides: readonly Guide[]): string {
  const titles = new Map(guides.map(({ name, title }) => [name, title]))
  const index = guides.indexOf(guide)
  const next = index === -1 ? undefined : guides[index + 1]
  const title = guide.name === 'index' ? 'otpd: one-time passcodes' : `${guide.title} · otpd`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title>
<link rel="icon" href="data:,">
${index === -1 ? '' : `<link rel="alternate" type="text/markdown" href="${guide.name}.md">\n`}<link rel="stylesheet" href="site.css">
<link rel="stylesheet" href="guides.css">
<script src="theme.js"></script>
<script src="site.js" defer></script>
<script src="guides.js" defer></script>
</head>
<body>
<a class="skip" href="#content">Skip to the text</a>
${renderHeader('./', '<a href="../v1/docs">API</a>')}
<div class="columns">
<nav aria-label="Guides"><details id="menu" open><summary>All guides</summary>
${renderNavigation(guide, titles)}
</details></nav>
<main id="content">
${article.html}
<footer>${renderNeighbor('Previous', guides[index - 1])}${renderNeighbor('Next', next)}</footer>
</main>
${renderHeadings(article)}
</div>
</body>
</html>
`
}

/** The header of all pages. @param root address of the first guide */
const renderHeader = (root: string, link: string) => `<header class="site">
<a class="brand" href="${root}">otpd</a>
<search><input id="search" type="search" placeholder="Search guides ( / )" aria-label="Search the guides" autocomplete="off" spellcheck="false" role="combobox" aria-expanded="false" aria-controls="results"><ul id="results" role="listbox" aria-label="Results" hidden></ul></search>
${link}
<button id="theme" type="button" hidden>Theme</button>
</header>`

/**
 * The page of the API reference at `/v1/docs`, which Scalar fills.
 *
 * @param modules scripts that Scalar always loads, so that the browser asks for all of them at once
 */
export const renderReferencePage = (modules: readonly string[]) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>otpd API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="../docs/site.css">
<script src="../docs/theme.js"></script>
<script src="../docs/site.js" defer></script>
<link rel="preload" href="openapi.json" as="fetch" crossorigin>
${modules.map((name) => `<link rel="modulepreload" href="../docs/${name}">`).join('\n')}
</head>
<body>
${renderHeader('../docs/', '<a href="../docs/">Guides</a>')}
<p class="loading" role="status">Loading the API reference …</p>
<div id="docs"></div>
<noscript>This page needs JavaScript. The OpenAPI document is at <a href="openapi.json">/v1/openapi.json</a>.</noscript>
<script type="module" src="../docs/reference.js"></script>
</body>
</html>
`

const renderNavigation = (guide: Guide, titles: ReadonlyMap<string, string>) =>
  contents
    .map(({ section, pages }) => {
      const items = pages.map((name) => {
        const current = name === guide.name ? ' aria-current="page"' : ''
        const label = name === 'index' ? 'Overview' : (titles.get(name) ?? name)
        return `<li><a href="${pageAddress(name)}"${current}>${escapeHtml(label)}</a></li>`
      })
      return `<p>${section}</p>\n<ul>${items.join('')}</ul>`
    })
    .join('\n')

/** Lists the sections of a long page. */
function renderHeadings({ headings }: Article): string {
  if (headings.length < 3) return '<aside></aside>'
  const items = headings.map(({ id, text }) => `<li><a href="#${id}">${escapeHtml(text)}</a></li>`)
  return `<aside aria-label="On this page"><p>On this page</p><ul>${items.join('')}</ul></aside>`
}

const renderNeighbor = (direction: string, guide: Guide | undefined) =>
  guide === undefined
    ? '<span></span>'
    : `<a class="${direction.toLowerCase()}" href="${pageAddress(guide.name)}"><small>${direction}</small>${escapeHtml(guide.title)}</a>`

const escapeHtml = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
