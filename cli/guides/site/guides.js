document.querySelector('nav [aria-current]')?.scrollIntoView({ block: 'nearest' })
addCopyButtons()
rememberLanguage()

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
