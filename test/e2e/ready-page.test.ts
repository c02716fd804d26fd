import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startServer, type RunningServer } from '../helpers/binary.ts'
import { chromiumPath, openPage, type BrowserPage } from '../helpers/chromium.ts'

// The ready page of the compiled binary in a browser, from the link to the backend's question for the result.

const axe = await Bun.file(join(import.meta.dir, '../../node_modules/axe-core/axe.min.js')).text()
/** Folder for screenshots, to look at. */
const pictures = process.env['OTPD_TEST_PICTURES']

const html = { headers: { 'content-type': 'text/html' } }

let server: RunningServer
let credentials: Record<string, string>
let shop: Bun.Server<undefined>
beforeAll(async () => {
  server = await startServer({
    env: { OTPD_SEND_PER_MINUTE: '0', OTPD_VERIFY_PER_MINUTE: '0', OTPD_PHONE_SEND_BUDGET: 'off' },
  })
  shop = Bun.serve({
    hostname: 'localhost',
    port: 0,
    fetch: () => new Response('<!doctype html><title>Shop</title><p id=back>welcome back', html),
  })
  const login = ['login', '--setup-token', server.setupToken(), '--email', 'a@b.example', '--password-stdin']
  await server.otpd(login, { input: 'correct horse battery' })
  await server.otpd(['project', 'create', 'shop'])
  await server.otpd(['app', 'create', 'web', '-p', 'shop', '-e', 'test', '--env-file', 'web.env'])
  const origin = `http://localhost:${shop.port}`
  await server.otpd(['app', 'page', 'web', '--on', '--return-origin', origin, '--name', 'The Shop'])
  await server.otpd([
    'template',
    'set',
    'payment',
    '--app',
    'web',
    '--text',
    'en=Pay {amount} to {payee}: {code}',
  ])
  const { stdout } = await server.otpd(['app', 'env', 'web', '--env-file', 'web.env', '--json'])
  const { data } = JSON.parse(stdout)
  credentials = {
    'x-client-id': data.OTPD_CLIENT_ID,
    'x-client-secret': data.OTPD_CLIENT_SECRET,
    'x-api-key': data.OTPD_API_KEY,
  }
})
afterAll(async () => {
  await shop.stop(true)
  await server.stop()
})

async function callApi<T>(method: string, path: string, body?: object): Promise<T> {
  const response = await fetch(`${server.url}/v1/otp/${path}`, {
    method,
    headers: { ...credentials, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })
  const { data } = (await response.json()) as { data: T }
  return data
}

type Session = { id: string; url: string; status: string; phone: string | null; requestId: string }

const createSession = (body: object = {}) =>
  callApi<Session>('POST', 'sessions', {
    returnUrl: `http://localhost:${shop.port}/back`,
    state: 'cart 7',
    ...body,
  })
const getSession = (id: string) => callApi<Session>('GET', `sessions/${id}`)

/** Reads the code of a session in the inbox. */
async function readCode(id: string): Promise<string> {
  const { requestId } = await getSession(id)
  const { stdout } = await server.otpd(['inbox', '--json'])
  const items: Array<{ requestId: string; code: string }> = JSON.parse(stdout).data
  return items.find((item) => item.requestId === requestId)?.code ?? ''
}

/** Lists the violations of WCAG 2.2 AA that axe finds on the page. */
async function findFaults(page: BrowserPage): Promise<unknown> {
  // Once for each document: the steps of the page replace its content without a reload.
  if ((await page.evaluate('typeof axe')) === 'undefined') await page.evaluate(`${axe}; true`)
  const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
  return page.evaluate(
    `axe.run({ runOnly: ${JSON.stringify(tags)} }).then(({ violations }) => violations.map(({ id, nodes }) => id + ' ' + nodes.map((node) => node.html).join()))`,
  )
}

async function takePicture(page: BrowserPage, name: string): Promise<void> {
  if (pictures === undefined) return
  mkdirSync(pictures, { recursive: true })
  writeFileSync(join(pictures, `${name}.png`), Buffer.from(await page.screenshot(), 'base64'))
}

/** A PNG image of one pixel. */
const pixel =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='

/** Relative luminance (WCAG 2.2) of a computed color: `rgb(20, 22, 27)`, or `color(srgb 0.5 0.5 0.5)`. */
function luminanceOf(color: string): number {
  const parts = color.match(/[\d.]+/g)?.map(Number) ?? []
  const [red = 0, green = 0, blue = 0] = parts
    .map((part) => (color.startsWith('rgb') ? part / 255 : part))
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

const focus = (id: string) => `document.getElementById('${id}').focus()`
const isCursorBehind = (id: string) =>
  `(({ value, selectionStart }) => value !== '' && selectionStart === value.length)(document.getElementById('${id}'))`
const isFocused = (id: string) => `document.activeElement?.id === '${id}'`
const overflows = 'document.documentElement.scrollWidth > document.documentElement.clientWidth'
let phones = 0
const newPhone = () => `+1415555${2000 + phones++}`

const views = [
  { width: 320, isDark: false, languages: 'de' },
  { width: 390, isDark: true, languages: 'ar' },
  { width: 1280, isDark: false, languages: 'ja' },
  { width: 320, isDark: true, languages: 'ja' },
  { width: 390, isDark: false, languages: 'de' },
  { width: 1280, isDark: true, languages: 'ar' },
]

describe.skipIf(chromiumPath === null)('the ready page', () => {
  test.each(views.slice(0, 4))(
    'verifies a phone without a reload, by keyboard alone: %o',
    async (view) => {
      const { id, url } = await createSession()
      const name = `${view.languages}-${view.width}-${view.isDark ? 'dark' : 'light'}`
      const page = await openPage(url, isFocused('phone'), view)
      expect(await page.evaluate('document.documentElement.lang')).toBe(view.languages)
      expect(await findFaults(page)).toEqual([])
      expect(await page.evaluate(overflows)).toBe(false)
      await takePicture(page, `${name}-1-phone`)
      await page.evaluate('window.isSamePage = true')
      await page.type('123')
      await page.press('Enter')
      await page.waitFor("document.getElementById('notice') && document.activeElement?.id === 'phone'")
      expect(await page.evaluate(isCursorBehind('phone'))).toBe(true)
      expect(await findFaults(page)).toEqual([])
      await takePicture(page, `${name}-2-wrong-phone`)
      await page.evaluate("document.getElementById('phone').select()")
      await page.type(newPhone())
      await page.press('Enter')
      await page.waitFor(isFocused('code'))
      expect(await findFaults(page)).toEqual([])
      expect(await page.evaluate(overflows)).toBe(false)
      await takePicture(page, `${name}-3-code`)
      const code = await readCode(id)
      await page.type(code === '111111' ? '222222' : '111111')
      await page.press('Enter')
      await page.waitFor("document.getElementById('notice') && document.activeElement?.id === 'code'")
      expect(await findFaults(page)).toEqual([])
      await takePicture(page, `${name}-4-wrong-code`)
      // As it is pasted from a message.
      await page.type(`${code.slice(0, 3)} ${code.slice(3)}`)
      expect(await page.evaluate('window.isSamePage')).toBe(true)
      await page.press('Enter')
      await page.waitFor("document.getElementById('back')")
      expect(await page.evaluate('location.search')).toBe(`?session=${id}&state=cart+7`)
      expect((await getSession(id)).status).toBe('verified')
      const foreign = page.requests.filter(
        (address) => !address.startsWith(server.url) && !address.includes('localhost'),
      )
      expect(foreign.filter((address) => address !== 'about:blank')).toEqual([])
      expect(
        page.consoleErrors.filter((text) => !/status of 400|favicon|"canceled":true/.test(text)),
      ).toEqual([])
      await page.close()
    },
    120_000,
  )

  test.each(views.slice(0, 3))(
    'verifies a phone without JavaScript: %o',
    async (view) => {
      const { id, url } = await createSession()
      const page = await openPage(url, '', { ...view, hasScripts: false })
      await page.waitForElement('#phone')
      await page.focusElement('#phone')
      const phone = newPhone()
      await page.type(phone)
      await page.press('Enter')
      await page.waitForElement('#code')
      await takePicture(page, `${view.languages}-${view.width}-no-script`)
      await page.focusElement('#code')
      await page.type(await readCode(id))
      await page.press('Enter')
      await page.waitForElement('#back')
      expect(await getSession(id)).toMatchObject({ status: 'verified', phone })
      await page.close()
    },
    60_000,
  )

  test.each(views.slice(3))(
    'confirms a payment, which both steps show: %o',
    async (view) => {
      const variables = { amount: '1.234,50 €', payee: 'Donaudampfschifffahrtsgesellschaft & Co' }
      const { id, url } = await createSession({ template: 'payment', variables, phone: newPhone() })
      const page = await openPage(url, "document.querySelector('.primary')", view)
      const name = `${view.languages}-${view.width}-${view.isDark ? 'dark' : 'light'}-payment`
      for (const step of ['.primary', '#code']) {
        await page.waitFor(`document.querySelector('${step}')`)
        expect(
          await page.evaluate("[...document.querySelectorAll('dd')].map((one) => one.textContent)"),
        ).toEqual(Object.values(variables))
        expect(await findFaults(page)).toEqual([])
        expect(await page.evaluate(overflows)).toBe(false)
        await takePicture(page, `${name}${step}`)
        await page.evaluate(`document.querySelector('${step}').focus()`)
        if (step === '.primary') await page.press('Enter')
      }
      await page.type(await readCode(id))
      await page.press('Enter')
      await page.waitFor("document.getElementById('back')")
      expect(await getSession(id)).toMatchObject({ status: 'verified', variables })
      await page.close()
    },
    60_000,
  )

  test('has a name for each control, in the order of the keyboard', async () => {
    const { url } = await createSession({ locale: 'en' })
    const page = await openPage(url, isFocused('phone'))
    const readNames = async (count: number) => {
      const names: unknown[] = []
      while (names.length < count) {
        names.push(
          await page.evaluate(
            '(document.activeElement.labels?.[0] ?? document.activeElement).textContent.trim().slice(0, 40)',
          ),
        )
        await page.press('Tab')
      }
      return names
    }
    expect(await readNames(3)).toEqual(['Phone number', 'Send code', 'Cancel'])
    await page.evaluate(focus('phone'))
    await page.type(newPhone())
    await page.press('Enter')
    await page.waitFor(isFocused('code'))
    // The button that sends again is disabled for 30 seconds.
    expect(await readNames(4)).toEqual(['6-digit code', 'Verify', 'Use another number', 'Cancel'])
    await page.close()
  }, 60_000)

  test('formats the number as its country writes it, while it is typed', async () => {
    const { url } = await createSession({ locale: 'en' })
    const page = await openPage(url, isFocused('phone'))
    const typed = async (country: string, digits: string) => {
      await page.evaluate(
        `document.getElementById('country').value = '${country}'; document.getElementById('phone').value = ''`,
      )
      await page.evaluate(focus('phone'))
      for (const digit of digits) await page.type(digit)
      return page.evaluate("document.getElementById('phone').value")
    }
    expect(await typed('US', '4155550100')).toBe('(415) 555-0100')
    expect(await typed('DE', '015123456789')).toBe('01512 3456789')
    expect(await typed('DE', '15123456789')).toBe('1512 3456789')
    expect(await typed('FR', '0612345678')).toBe('06 12 34 56 78')
    expect(await typed('US', '+447700900123')).toBe('+447700900123')
    await page.close()
  }, 60_000)

  test('counts down to the next message', async () => {
    const { url } = await createSession({ locale: 'en' })
    const page = await openPage(url, isFocused('phone'))
    await page.type(newPhone())
    await page.press('Enter')
    await page.waitFor(isFocused('code'))
    const button = `document.querySelector('[value="resend"]')`
    expect(await page.evaluate(`${button}.textContent`)).toMatch(/^Resend code \(0:(30|29)\)$/)
    expect(await page.evaluate(`${button}.disabled`)).toBe(true)
    await page.waitFor(`/0:2[0-8]/.test(${button}.textContent)`)
    await page.close()
  }, 60_000)

  test('fills in the code of a message that the browser reads (WebOTP), and submits it', async () => {
    // No headless browser gets messages: its API is replaced, and called by the page as it is.
    const before = `window.OTPCredential = class {}
      window.calls = []
      navigator.credentials.get = (options) => new Promise((resolve, reject) => {
        calls.push(options.otp.transport.join())
        options.signal.addEventListener('abort', () => { calls.push('aborted'); reject(options.signal.reason) })
        window.receive = (code) => resolve({ code })
      })`
    const { id, url } = await createSession({ locale: 'en' })
    const page = await openPage(url, isFocused('phone'), { width: 390, isDark: false, before })
    expect(await page.evaluate('calls')).toEqual([])
    await page.type(newPhone())
    await page.press('Enter')
    await page.waitFor(isFocused('code'))
    const code = await readCode(id)
    await page.type(code === '111111' ? '222222' : '111111')
    await page.press('Enter')
    await page.waitFor("document.getElementById('notice')")
    expect(await page.evaluate('calls')).toEqual(['sms', 'aborted', 'sms'])
    await page.evaluate(`receive('${code}')`)
    await page.waitFor("document.getElementById('back')")
    expect((await getSession(id)).status).toBe('verified')
    await page.close()
  }, 60_000)

  test('shows the logo and the colour of the application, in their places', async () => {
    const { url } = await createSession({ locale: 'en' })
    const logo = join(server.home, 'shop.png')
    writeFileSync(logo, Buffer.from(pixel, 'base64'))
    await server.otpd(['app', 'page', 'web', '--logo', logo, '--colour', '#0055cc'])
    const page = await openPage(url, isFocused('phone'), { width: 390, isDark: true })
    const image = "document.querySelector('header img')"
    await page.waitFor(`${image}.complete`)
    expect(await page.evaluate(`${image}.naturalWidth`)).toBe(1)
    const primary = "getComputedStyle(document.querySelector('.primary'))"
    expect(await page.evaluate(`${primary}.backgroundColor`)).toBe('rgb(0, 85, 204)')
    expect(await page.evaluate(`${primary}.color`)).toBe('rgb(255, 255, 255)')
    expect(await findFaults(page)).toEqual([])
    expect(page.consoleErrors.filter((text) => !text.includes('favicon'))).toEqual([])
    await takePicture(page, 'logo')
    await page.close()
    await server.otpd(['app', 'page', 'web', '--logo', '', '--colour', ''])
  }, 60_000)

  test.each([false, true])(
    'shows the edge of a button in the colour of the ground, dark: %p',
    async (isDark) => {
      await server.otpd(['app', 'page', 'web', '--colour', isDark ? '#14161b' : '#ffffff'])
      const { url } = await createSession({ locale: 'en' })
      const page = await openPage(url, isFocused('phone'), { width: 390, isDark })
      const style = "getComputedStyle(document.querySelector('.primary'))"
      const [edge, ground] = await Promise.all(
        ['borderTopColor', 'backgroundColor'].map(async (name) =>
          luminanceOf(String(await page.evaluate(`${style}.${name}`))),
        ),
      )
      const [darker = 0, lighter = 0] = [edge, ground].map(Number).toSorted((a, b) => a - b)
      // WCAG 2.2, 1.4.11.
      expect((lighter + 0.05) / (darker + 0.05)).toBeGreaterThan(3)
      await takePicture(page, `ground-${isDark}`)
      await page.close()
      await server.otpd(['app', 'page', 'web', '--colour', ''])
    },
    60_000,
  )

  test('goes back from the number to the code', async () => {
    const { id, url } = await createSession({ locale: 'en' })
    const page = await openPage(url, isFocused('phone'))
    await page.type(newPhone())
    await page.press('Enter')
    await page.waitFor(isFocused('code'))
    await page.evaluate("document.querySelector('a.button').click()")
    await page.waitFor(isFocused('phone'))
    await page.evaluate('void setTimeout(() => history.back())')
    await page.waitFor(isFocused('code'))
    await page.type(await readCode(id))
    await page.press('Enter')
    await page.waitFor("document.getElementById('back')")
    expect((await getSession(id)).status).toBe('verified')
    await page.close()
  }, 60_000)

  test('cannot be shown in a frame of another site', async () => {
    const { url } = await createSession()
    const frame = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: () =>
        new Response(`<!doctype html><iframe src="${url}"></iframe>`, {
          headers: { 'content-type': 'text/html' },
        }),
    })
    const page = await openPage(frame.url.href, "document.querySelector('iframe')")
    await page.waitFor('performance.getEntriesByType("resource").length > 0')
    expect(page.consoleErrors.join()).toContain('frame-ancestors')
    await page.close()
    await frame.stop(true)
  }, 60_000)
})
