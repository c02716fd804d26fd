import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { listen, type Listener } from '../../src/http/listener.ts'
import { chromiumPath, openPage } from '../helpers/chromium.ts'
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

describe('the documentation page', () => {
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
    expect(rules).toMatchObject({
      'default-src': "'none'",
      'script-src': "'self'",
      'connect-src': "'self'",
      'frame-ancestors': "'none'",
      'base-uri': "'none'",
      'form-action': "'none'",
    })
    expect(policy).not.toMatch(/https?:|\*|unsafe-eval|script-src[^;]*unsafe/)
  })

  test('finds all its assets, each with its content type', async () => {
    const page = await (await get('/v1/docs')).text()
    const types: Record<string, string> = {
      js: 'text/javascript; charset=utf-8',
      css: 'text/css; charset=utf-8',
    }
    for (const address of addressesIn(page).filter((one) => !one.startsWith('data:'))) {
      const asset = await get(`/v1/${address}`)
      expect([address, asset.status, asset.headers.get('content-type')]).toEqual([
        address,
        200,
        types[address.split('.').at(-1) ?? ''] ?? '',
      ])
      expect((await asset.text()).length).toBeGreaterThan(50)
    }
  })

  test('and all its assets have the security headers', async () => {
    for (const path of [
      '/v1/docs',
      '/v1/openapi.json',
      '/v1/docs/start.js',
      '/v1/docs/swagger-ui.js',
      '/v1/docs/swagger-ui.css',
    ]) {
      for (const method of ['GET', 'HEAD']) {
        const { status, headers } = await fetch(new URL(path, listener.url), { method })
        expect([path, status, headers.get('x-content-type-options')]).toEqual([path, 200, 'nosniff'])
        expect(headers.get('content-security-policy')).toContain("default-src 'none'")
        expect(headers.get('x-request-id')).toMatch(/^req_/)
      }
    }
  })

  test.skipIf(chromiumPath === null)(
    'shows every operation in a browser without console errors',
    async () => {
      const operations = service.app.routes.filter(({ hooks }) => hooks.detail?.hide !== true).length
      const visited = await openPage(
        `${listener.url}/v1/docs`,
        `document.querySelectorAll('.opblock').length >= ${operations}`,
      )
      try {
        expect(await visited.evaluate('document.title')).toBe('otpd API')
        expect(await visited.evaluate("document.querySelectorAll('.opblock').length")).toBe(operations)
        await visited.evaluate(
          "document.querySelector('#operations-OTP-sendOtp .opblock-summary-control').click()",
        )
        const shown = "document.querySelector('#operations-OTP-sendOtp .opblock-body')?.innerText ?? ''"
        await visited.evaluate(
          `new Promise((done) => { const look = () => (${shown}).includes('+14155550100') ? done() : requestAnimationFrame(look); look() })`,
        )
        expect(await visited.evaluate(shown)).toContain('Idempotency-Key')
        expect(visited.consoleErrors).toEqual([])
        const hosts = visited.requests
          .filter((url) => !url.startsWith('data:'))
          .map((url) => new URL(url).origin)
        expect(new Set(hosts)).toEqual(new Set([listener.url]))
      } finally {
        await visited.close()
      }
    },
    300_000,
  )
})
