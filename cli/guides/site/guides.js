showInList()
addCopyButtons()
rememberLanguage()
followOutline()

/** Scrolls the list to the guide. On a phone the list is part of the page, which would move instead. */
function showInList() {
  if (matchMedia('(max-width: 60rem)').matches) return
  document.querySelector('nav [aria-current]')?.scrollIntoView({ block: 'nearest' })
}

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

/** Marks the section that is read in the outline. */
function followOutline() {
  const links = [...document.querySelectorAll('aside a')]
  const headings = links.map((link) => document.getElementById(decodeURIComponent(link.hash.slice(1))))
  const follow = () => {
    const isAtEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 2
    const read = isAtEnd
      ? links.length - 1
      : headings.findLastIndex((one) => one.getBoundingClientRect().top < 120)
    for (const [at, link] of links.entries()) {
      if (at !== read) link.removeAttribute('aria-current')
      else if (!link.hasAttribute('aria-current')) {
        link.setAttribute('aria-current', 'true')
        link.scrollIntoView({ block: 'nearest' })
      }
    }
  }
  document.addEventListener('scroll', follow, { passive: true })
  follow()
}
