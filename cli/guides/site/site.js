import MiniSearch from 'minisearch'
import { apiReference, makeExcerpt, searchOptions } from '../../../src/docs/search.ts'

// Parts of the header, which the guides and the API reference share.
switchTheme()
search()

function switchTheme() {
  const button = document.querySelector('#theme')
  const root = document.documentElement
  const isDark = () =>
    (root.dataset.theme ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark'
  const label = () => {
    button.textContent = isDark() ? 'Light' : 'Dark'
    button.title = `Switch to the ${isDark() ? 'light' : 'dark'} theme`
  }
  button.hidden = false
  label()
  button.addEventListener('click', () => {
    root.dataset.theme = isDark() ? 'light' : 'dark'
    localStorage.setItem('otpd-theme', root.dataset.theme)
    // The API reference has its theme as a class.
    document.body.classList.toggle('dark-mode', isDark())
    document.body.classList.toggle('light-mode', !isDark())
    label()
  })
}

/** Lists the operations of the API as entries of the search, with their addresses in the API reference. */
function listOperations({ paths }) {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      const text = `${method.toUpperCase()} ${path}`
      const tag = operation.tags[0]
      const anchor = `tag/${tag.toLowerCase().replaceAll(' ', '-')}/${text.replace(' ', '')}`
      return {
        id: `${apiReference}#${anchor}`,
        title: `API: ${tag}`,
        section: operation.summary,
        text,
        words: '',
      }
    }),
  )
}

function search() {
  const input = document.querySelector('#search')
  const list = document.querySelector('#results')
  /** Absolute: the API reference is in another folder. */
  const root = document.querySelector('.brand').href
  let index
  let selected = -1

  const read = async (address) => (await fetch(new URL(address, root))).text()
  // Loaded only for the first search.
  const load = () => (index ??= readIndex())
  async function readIndex() {
    const loaded = MiniSearch.loadJSON(await read('search.json'), searchOptions)
    // The guides do not wait for the API, and are found without it.
    read('../v1/openapi.json')
      .then((api) => loaded.addAll(listOperations(JSON.parse(api))))
      .then(() => list.hidden || show())
      .catch(() => {})
    return loaded
  }

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
    link.href = new URL(id, root)
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
    if (event.key !== '/' || event.target.matches('input, textarea, [contenteditable=true]')) return
    event.preventDefault()
    input.focus()
  })
}
