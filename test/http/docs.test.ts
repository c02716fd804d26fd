import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createApp } from '../../src/http/app.ts'
import { listen, type Listener } from '../../src/http/listener.ts'
import { chromiumPath, openPage, type BrowserPage, type PageView } from '../helpers/chromium.ts'
import { createTestService, type TestService } from '../helpers/service.ts'

let service: TestService
let listener: Listener

beforeAll(async () => {
  service = await createTestService()
  listener = listen({ host: '127.0.0.1', port: 0 }, service.app, {
    newId: service.services.newId,
    onBug: (error) => {
      throw error
    },
  })
})
afterAll(async () => {
  await listener.stop(0)
  await service.dispose()
})

const get = (path: string) => fetch(new URL(path, listener.url))

/** Lists the URLs in attributes, which the page loads, as written. */
const addressesIn = (html: string) =>
  [...html.matchAll(/\b(?:src|href|action|srcset|poster|data)\s*=\s*["']?([^"'\s>]+)/g)].map(
    ([, address = '']) => address,
  )

describe('the reference page', () => {
  test('loads nothing from other hosts, and its policy forbids it', async () => {
    const page = await get('/v1/docs')
    expect(page.status).toBe(200)
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
    const addresses = addressesIn(await page.text())
    expect(addresses.length).toBeGreaterThanOrEqual(4)
    for (const address of addresses) {
      const url = new URL(address, `${listener.url}/v1/docs`)
      expect(['data:', new URL(listener.url).protocol]).toContain(url.protocol)
      if (url.protocol !== 'data:') expect(url.origin).toBe(listener.url)
    }
    const policy = page.headers.get('content-security-policy') ?? ''
    const rules = Object.fromEntries(
      policy.split('; ').map((rule) => [rule.slice(0, rule.indexOf(' ')), rule.slice(rule.indexOf(' ') + 1)]),
    )
    expect(rules).toEqual({
      'default-src': "'none'",
      'script-src': "'self'",
      'style-src': "'self' 'unsafe-inline'",
      'img-src': "'self' data:",
      'connect-src': "'self'",
      'base-uri': "'none'",
      'form-action': "'none'",
      'frame-ancestors': "'none'",
    })
  })

  test('and all its files have the security headers', async () => {
    for (const path of ['/v1/docs', '/v1/openapi.json', '/docs/reference.js', '/docs/standalone.esm.js']) {
      for (const method of ['GET', 'HEAD']) {
        const { status, headers } = await fetch(new URL(path, listener.url), { method })
        expect([path, status, headers.get('x-content-type-options')]).toEqual([path, 200, 'nosniff'])
        expect(headers.get('x-request-id')).toMatch(/^req_/)
      }
    }
  })

  test.each(['/v1/openapi.json', '/docs/standalone.esm.js', '/docs/search.json'])(
    '%s is compressed, and sent once',
    async (path) => {
      const request = (headers: Record<string, string>) =>
        fetch(new URL(path, listener.url), { headers, decompress: false })
      const plain = await request({ 'accept-encoding': 'identity' })
      const text = await plain.text()
      expect(plain.headers.get('content-encoding')).toBeNull()
      for (const accepted of ['gzip', 'gzip, deflate, br', 'br;q=1, gzip;q=0.5']) {
        const zipped = await request({ 'accept-encoding': accepted })
        expect(zipped.headers.get('content-encoding')).toBe('gzip')
        const bytes = await zipped.bytes()
        expect(bytes.byteLength).toBeLessThan(text.length / 3)
        expect(Buffer.from(Bun.gunzipSync(new Uint8Array(bytes))).toString()).toBe(text)
      }
      const refused = await request({ 'accept-encoding': 'gzip;q=0' })
      expect(refused.headers.get('content-encoding')).toBeNull()
      const etag = plain.headers.get('etag') ?? ''
      expect(etag).toMatch(/^"[\w-]{22}"$/)
      expect(plain.headers.get('vary')).toBe('Accept-Encoding')
      expect(plain.headers.get('cache-control')).toBe(path.startsWith('/docs/') ? 'max-age=300' : 'no-cache')
      for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
        const unchanged = await request({ 'if-none-match': known })
        expect([unchanged.status, await unchanged.text()]).toEqual([304, ''])
      }
      expect((await request({ 'if-none-match': '"other"' })).status).toBe(200)
    },
  )

  test('names the public address of the server in the document', async () => {
    const { services } = service
    const app = createApp({
      ...services,
      configuredUrl: 'https://otp.example.com',
      readiness: () => Promise.resolve('ready' as const),
      onBug: () => {},
    })
    const response = await app.handle(new Request('http://otpd.test/v1/openapi.json'))
    expect(await response.json()).toMatchObject({ servers: [{ url: 'https://otp.example.com' }] })
  })
})

describe.skipIf(chromiumPath === null)('the reference page in a browser', () => {
  const desktop = { width: 1280, isDark: false }
  const phone = { width: 390, isDark: true }
  // The text with its layout takes long to read: it is read once the text is there.
  const shows = (text: string) =>
    `document.body.textContent.includes('${text}') && document.body.innerText.includes('${text}')`

  async function expectNoFaults(page: BrowserPage, { width, isDark }: PageView) {
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width)
    expect(await page.evaluate("document.body.innerText.includes('Loading')")).toBe(false)
    await page.waitFor(`document.body.classList.contains('${isDark ? 'dark' : 'light'}-mode')`)
    expect(page.consoleErrors).toEqual([])
    const transferred =
      'performance.getEntriesByType("resource").reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)'
    expect(await page.evaluate(transferred)).toBeLessThan(900_000)
    const guides = `[...document.querySelectorAll('header.site a')].at(-1)`
    expect(await page.evaluate(`${guides}.checkVisibility() && ${guides}.href`)).toBe(`${listener.url}/docs/`)
  }

  /** Finds a guide, and goes to the operation that sends a code. @param secret what its example shows as the secret */
  async function search(page: BrowserPage, secret: string) {
    await page.evaluate(
      "const input = document.querySelector('#search'); input.value = 'resend'; input.dispatchEvent(new Event('input'))",
    )
    await page.waitFor("document.querySelector('#results a')?.href.startsWith(`${location.origin}/docs/`)")
    await page.evaluate("input.value = 'POST /v1/otp/send'; input.dispatchEvent(new Event('input'))")
    const operation = `[...document.querySelectorAll('#results a')].find(({ hash }) => hash === '#tag/otp/POST/v1/otp/send')`
    await page.waitFor(operation)
    await page.evaluate(`${operation}.click()`)
    await page.waitFor(shows(`x-client-secret: ${secret}`))
  }

  // One test, because each load of the page takes seconds of CPU: there is one in each view.
  test('has no fault in any view, and calls operations with credentials, which it keeps for the next visit', async () => {
    const developer = await service.createDeveloper()
    const application = await service.createApplication(developer, { environment: 'test' })
    const { clientId, clientSecret, apiKey, projectId } = application
    const idToken = developer.headers['authorization']?.replace('Bearer ', '') ?? ''
    const fields = `[...document.querySelectorAll('input')].filter(({ placeholder }) => /^Token$|^value$/.test(placeholder))`
    const findButton = (text: string) =>
      `[...document.querySelectorAll('button')].find(({ innerText }) => innerText.replace(/\\s+/g, '').startsWith('${text.replaceAll(' ', '')}'))`
    const page = await openPage(`${listener.url}/v1/docs`, shows('Conventions'), desktop)
    const press = async (text: string) => {
      await page.waitFor(findButton(text))
      await page.evaluate(`${findButton(text)}.click()`)
    }
    const tryOut = async (operation: string, expected: string) => {
      await press(`Test Request (${operation})`)
      await press('SendSend')
      await page.waitFor(shows(expected))
    }
    try {
      await expectNoFaults(page, desktop)
      await search(page, 'YOUR_SECRET_TOKEN')
      await page.waitFor(`${fields}.length === 4`)
      const shown = String(await page.evaluate('document.body.innerText'))
      for (const part of ['Search', 'Errors', 'OTP', 'Webhooks', 'Models', 'Shell Curl'])
        expect(shown).toContain(part)
      expect(shown).toContain('Send a code to a phone number')
      expect(shown).toContain('This application may send 5 codes per minute')
      for (const [index, secret] of [idToken, clientId, clientSecret, apiKey].entries()) {
        await page.evaluate(`${fields}[${index}].focus()`)
        await page.type(secret)
      }
      await tryOut('post /v1/otp/send', '201 Created')
      // The page stores what was typed with a delay.
      await page.waitFor(
        `['${idToken}', '${apiKey}'].every((secret) => JSON.stringify({ ...localStorage }).includes(secret))`,
      )
      await page.open(`${listener.url}/v1/docs#tag/projects/GET/v1/projects`, phone)
      await page.waitFor(`${fields}.length === 4 && ${shows('Conventions')}`)
      await expectNoFaults(page, phone)
      await tryOut('get /v1/projects', projectId)
      await search(page, clientSecret)
      expect(page.consoleErrors).toEqual([])
      const hosts = page.requests
        .filter((url) => !/^(?:data|about):/.test(url))
        .map((url) => new URL(url).origin)
      expect(new Set(hosts)).toEqual(new Set([listener.url]))
    } finally {
      await page.close()
    }
  }, 120_000)
})
