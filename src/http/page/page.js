// The page works without this script. With it, forms are sent and their answers shown without a reload.
const byId = (id) => document.getElementById(id)
let asked
let reading

/** Shows the answer of the server, which is a whole page, in the place of this one. */
function show(text, path) {
  // Style and script stay those of this page, whose policy refuses others.
  const body = text.replace(/<(style|script)[^]*?<\/\1>/g, '')
  const next = new DOMParser().parseFromString(body, 'text/html')
  document.title = next.title
  byId('page').replaceWith(document.adoptNode(next.getElementById('page')))
  // Empty and filled again: screen readers announce an alert when its content changes.
  const alert = document.querySelector('[role=alert]')
  const notice = [...alert.childNodes]
  alert.replaceChildren()
  setTimeout(() => alert.replaceChildren(...notice))
  history.replaceState(null, '', path)
  start()
  const focus = document.querySelector('[autofocus]') ?? document.querySelector('h1')
  if (focus.tagName === 'H1') focus.tabIndex = -1
  focus.focus()
  // To correct what was entered; browsers put the cursor before it.
  focus.setSelectionRange?.(focus.value.length, focus.value.length)
}

async function load(path, options) {
  const page = byId('page')
  page.setAttribute('aria-busy', 'true')
  try {
    const response = await fetch(path, { ...options, headers: { 'otpd-page': '1' } })
    const location = response.headers.get('otpd-location')
    if (location) window.location.replace(location)
    else show(await response.text(), response.url.replace(window.location.origin, ''))
  } catch {
    page.removeAttribute('aria-busy')
    if (options) post(asked)
    else window.location.assign(path)
  }
}

/** Sends a form as a browser does without this script, when the answer could not be fetched. */
function post({ form, button }) {
  const action = document.createElement('input')
  Object.assign(action, { type: 'hidden', name: button.name, value: button.value })
  form.append(action)
  form.submit()
}

document.addEventListener('submit', (event) => {
  event.preventDefault()
  if (byId('page').ariaBusy === 'true') return
  asked = { form: event.target, button: event.submitter }
  const body = new URLSearchParams(new FormData(event.target, event.submitter))
  load(window.location.pathname, { method: 'POST', body })
})

document.addEventListener('click', (event) => {
  const link = event.target.closest('a[href*="?step="]')
  if (!link) return
  event.preventDefault()
  // The way back leads to the code again.
  history.pushState(null, '', link.href)
  load(link.getAttribute('href'))
})

window.addEventListener('popstate', () => load(window.location.pathname + window.location.search))

/** Formats the digits of a number as its country writes them. */
function format(input, mask) {
  const digits = input.value.replace(/\D/g, '')
  const isPlain = /[^\d\s().-]/.test(input.value) || !mask || digits === ''
  if (isPlain || input.selectionStart !== input.value.length) return
  let at = 0
  let text = ''
  for (const place of mask) {
    if (at === digits.length) break
    if (place === '#') text += digits[at++]
    else if (!/\d/.test(place)) text += text === '' && place !== '(' ? '' : place
    else if (digits[at] === place) text += digits[at++]
  }
  input.value = at === digits.length ? text : digits
}

function countDown() {
  for (const button of document.querySelectorAll('[data-wait]')) {
    const seconds = Number(button.dataset.wait)
    button.dataset.text ??= button.textContent
    button.disabled = seconds > 0
    const time = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
    button.textContent = seconds > 0 ? `${button.dataset.text} (${time})` : button.dataset.text
    if (seconds > 0) button.dataset.wait = seconds - 1
  }
}
setInterval(countDown, 1000)

// Constants of SHA-256: the first 32 bits of the fractions of roots of the first primes.
const primes = []
for (let number = 2; primes.length < 64; number++)
  if (primes.every((prime) => number % prime)) primes.push(number)
const fraction = (root) => ((root % 1) * 2 ** 32) | 0
const initial = primes.slice(0, 8).map((prime) => fraction(Math.sqrt(prime)))
const constants = primes.map((prime) => fraction(Math.cbrt(prime)))

const turn = (word, by) => (word >>> by) | (word << (32 - by))
const words = new Int32Array(64)

/**
 * Returns the SHA-256 of up to 55 ASCII characters, which fit into one block. Browsers have `crypto.subtle` over HTTPS only, and
 * it is slower for so short a text.
 */
function sha256(text) {
  words.fill(0)
  const put = (at, byte) => (words[at >> 2] |= byte << (24 - (at % 4) * 8))
  for (let at = 0; at < text.length; at++) put(at, text.charCodeAt(at))
  put(text.length, 0x80)
  words[15] = text.length * 8
  for (let at = 16; at < 64; at++) {
    const x = words[at - 15]
    const y = words[at - 2]
    const mixed = (turn(x, 7) ^ turn(x, 18) ^ (x >>> 3)) + (turn(y, 17) ^ turn(y, 19) ^ (y >>> 10))
    words[at] = words[at - 16] + words[at - 7] + mixed
  }
  let [a, b, c, d, e, f, g, h] = initial
  for (let at = 0; at < 64; at++) {
    const choice = (e & f) ^ (~e & g)
    const majority = (a & b) ^ (a & c) ^ (b & c)
    const next = h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + choice + constants[at] + words[at]
    const sum = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + majority
    h = g
    g = f
    f = e
    e = (d + next) | 0
    d = c
    c = b
    b = a
    a = (next + sum) | 0
  }
  const hex = (word, at) => ((word + initial[at]) >>> 0).toString(16).padStart(8, '0')
  return [a, b, c, d, e, f, g, h].map(hex).join('')
}

/** Solves the proof of work that the server asks for, and sends the form again. */
async function work(field) {
  const { salt, challenge, maxnumber, ...rest } = JSON.parse(field.dataset.work)
  for (let number = 0; number <= maxnumber; number++) {
    // The page stays usable meanwhile.
    if (number % 2000 === 0) await new Promise((resolve) => setTimeout(resolve))
    if (sha256(salt + number) !== challenge) continue
    field.value = btoa(JSON.stringify({ ...rest, salt, challenge, number }))
    field.form.requestSubmit(field.form.querySelector('.primary'))
    return
  }
}

/** Fills the code of a message in, if the browser reads it (WebOTP). A browser waits for one message at a time. */
async function readMessage(input) {
  if (!('OTPCredential' in window)) return
  reading?.abort()
  reading = new AbortController()
  try {
    const { signal } = reading
    const { code } = await navigator.credentials.get({ otp: { transport: ['sms'] }, signal })
    if (!input.isConnected) return
    input.value = code
    input.form.requestSubmit(input.form.querySelector('.primary'))
  } catch {}
}

function start() {
  const phone = byId('phone')
  const country = byId('country')
  const apply = () => format(phone, country.selectedOptions[0]?.dataset.m)
  phone?.addEventListener('input', (event) => {
    if (!event.inputType?.startsWith('delete')) apply()
  })
  country?.addEventListener('change', apply)
  const code = byId('code')
  code?.addEventListener('input', () => {
    code.value = code.value.replace(/[\s-]/g, '').slice(0, 6)
  })
  if (code) readMessage(code)
  const field = document.querySelector('[data-work]')
  if (field) work(field)
  countDown()
}
start()
