import MiniSearch from 'minisearch'
import { makeExcerpt, searchOptions } from '../../../src/docs/search.ts'

document.querySelector('nav [aria-current]')?.scrollIntoView({ block: 'nearest' })
addCopyButtons()
rememberLanguage()
switchTheme()
search()

function addCopyButtons() {
  for (const block of document.querySelectorAll('pre')) {
    const button = document.createElement('button')
    button.type = 'button'
    button.className = 'copy'
    button.textContent = 'Copy'
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(block.querySelector('code').textContent.trimEnd())
      button.textContent = 'Copied'
      setTimeout(() => (button.textContent = 'Copy'), 1500)
    })
    block.append(button)
  }
}

/** Shows all samples in the language that was chosen last. */
function rememberLanguage() {
  const choose = (language) => {
    for (const tab of document.querySelectorAll(`input[data-language="${language}"]`)) tab.checked = true
  }
  const chosen = localStorage.getItem('otpd-language')
  if (/^\w+$/.test(chosen ?? '')) choose(chosen)
  document.addEventListener('change', ({ target }) => {
    const { language } = target.dataset
    if (language === undefined) return
    const { top } = target.getBoundingClientRect()
    choose(language)
    localStorage.setItem('otpd-language', language)
    // Samples above may have become shorter or longer.
    scrollBy(0, target.getBoundingClientRect().top - top)
  })
}

function switchTheme() {
  const button = document.querySelector('#theme')
  const root = document.documentElement
  const isDark = () =>
    (root.dataset.theme ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark'
  const label = () => (button.textContent = isDark() ? 'Light' : 'Dark')
  button.hidden = false
  label()
  button.addEventListener('click', () => {
    root.dataset.theme = isDark() ? 'light' : 'dark'
    localStorage.setItem('otpd-theme', root.dataset.theme)
    label()
  })
}

function search() {
  const input = document.querySelector('#search')
  const list = document.querySelector('#results')
  let index
  let selected = -1

  // Loaded only for the first search.
  const load = () =>
    (index ??= fetch('search.json')
      .then((response) => response.text())
      .then((json) => MiniSearch.loadJSON(json, searchOptions)))

  const links = () => [...list.querySelectorAll('a')]
  const select = (position) => {
    selected = position
    for (const [at, link] of links().entries()) link.setAttribute('aria-selected', String(at === position))
    links()[position]?.scrollIntoView({ block: 'nearest' })
  }
  const close = () => {
    list.hidden = true
    input.setAttribute('aria-expanded', 'false')
  }

  async function show() {
    const query = input.value.trim()
    if (query === '') return close()
    const found = (await load()).search(query).slice(0, 12)
    if (query !== input.value.trim()) return undefined
    list.replaceChildren(...(found.length > 0 ? found.map(makeItem) : [makeNote(query)]))
    list.hidden = false
    input.setAttribute('aria-expanded', 'true')
    return select(found.length > 0 ? 0 : -1)
  }

  function makeItem({ id, title, section, text, terms }) {
    const item = document.createElement('li')
    const link = document.createElement('a')
    link.href = id
    link.setAttribute('role', 'option')
    const heading = document.createElement('strong')
    heading.textContent = section === '' ? title : `${title} › ${section}`
    const excerpt = document.createElement('span')
    excerpt.textContent = makeExcerpt(text, terms)
    link.append(heading, excerpt)
    item.append(link)
    return item
  }

  function makeNote(query) {
    const note = document.createElement('li')
    note.className = 'none'
    note.textContent = `Nothing found for “${query}”.`
    return note
  }

  input.addEventListener('focus', load, { once: true })
  input.addEventListener('input', show)
  input.addEventListener('keydown', (event) => {
    const count = links().length
    if (event.key === 'Escape') close()
    if (event.key === 'Enter' && selected >= 0) links()[selected]?.click()
    if (count === 0 || (event.key !== 'ArrowDown' && event.key !== 'ArrowUp')) return
    event.preventDefault()
    select((selected + (event.key === 'ArrowDown' ? 1 : count - 1)) % count)
  })
  list.addEventListener('click', close)
  document.addEventListener('click', ({ target }) => {
    if (!target.closest('search')) close()
  })
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.target.matches('input')) return
    event.preventDefault()
    input.focus()
  })
}
