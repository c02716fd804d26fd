import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { loadGuideFiles } from '../../src/docs/guide-files.ts'
import { readGuideFile } from '../../src/docs/read-guide-file.ts'
import { searchGuides } from '../../src/docs/search-guides.ts'
import { httpStatusByCode } from '../../src/http/errors.ts'
import { listen, type Listener } from '../../src/http/listener.ts'
import { logTypes } from '../../src/shared/event-kinds.ts'
import { chromiumPath, openPage } from '../helpers/chromium.ts'
import { createTestService, type TestService } from '../helpers/service.ts'

let service: TestService
let listener: Listener
const pages = new Map<string, string>()

beforeAll(async () => {
  service = await createTestService()
  listener = listen({ host: '127.0.0.1', port: 0 }, service.app, {
    newId: service.services.newId,
    onBug: (error) => {
      throw error
    },
  })
  for (const name of Object.keys(await loadGuideFiles()))
    if (name.endsWith('.html') && !['not-found.html', 'reference.html'].includes(name))
      pages.set(name.slice(0, -5), (await readGuideFile(name)) ?? '')
})
afterAll(async () => {
  await listener.stop(0)
  await service.dispose()
})

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(new URL(path, listener.url), { headers, redirect: 'manual' })
const pageUrl = (name: string) => `${listener.url}/docs/${name === 'index' ? '' : name}`
const addressesIn = (html: string) =>
  [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, address = '']) => address)
const idsIn = (html: string) => [...html.matchAll(/ id="([^"]+)"/g)].map(([, id = '']) => id)

describe('the root of the server', () => {
  test('leads browsers to the guides, and lists links for others', async () => {
    const forBrowsers = await get('/', { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' })
    expect([forBrowsers.status, forBrowsers.headers.get('location')]).toEqual([302, 'docs/'])
    expect(forBrowsers.headers.get('vary')).toBe('Accept')
    const { data }: { data: Record<string, string> } = JSON.parse(await (await get('/')).text())
    for (const link of Object.values(data)) expect([link, (await get(link)).status]).toEqual([link, 200])
  })

  test('leads from /docs to /docs/', async () => {
    const { status, headers } = await get('/docs')
    expect([status, headers.get('location')]).toEqual([302, 'docs/'])
  })
})

describe('a path below /docs/ that is no guide', () => {
  test.each([
    '/docs/x',
    '/docs/index.html',
    '/docs/reference',
    '/docs/constructor',
    '/docs/..%2fx',
    '/docs/a/b',
  ])('is 404: %s', async (path) => {
    const response = await get(path)
    expect(response.status).toBe(404)
    expect(await response.json()).toMatchObject({ error: { reason: 'ROUTE_NOT_FOUND' } })
  })

  test.each(['/docs/nope', '/docs/not-found', '/docs/constructor'])(
    'is a page that lists the guides for browsers: %s',
    async (path) => {
      const response = await get(path, { accept: 'text/html,*/*;q=0.8' })
      expect([response.status, response.headers.get('content-type')]).toEqual([
        404,
        'text/html; charset=utf-8',
      ])
      expect(response.headers.get('content-security-policy')).toContain("default-src 'none'")
      const main = /<main.*<\/main>/s.exec(await response.text())?.[0] ?? ''
      const listed = addressesIn(main).map((address) => (address === './' ? 'index' : address))
      expect(listed.toSorted()).toEqual([...pages.keys()].toSorted())
    },
  )
})

describe('for programs', () => {
  const linksIn = (markdown: string) =>
    [...markdown.matchAll(/\]\(([^)#]+)[^)]*\)/g)].map(([, address = '']) => address)

  test('/llms.txt lists every guide with a sentence about it', async () => {
    const response = await get('/llms.txt')
    expect([response.status, response.headers.get('content-type')]).toEqual([
      200,
      'text/plain; charset=utf-8',
    ])
    const text = await response.text()
    expect(text).toMatch(/^# otpd\n\n> otpd issues and verifies/)
    const items = [...text.matchAll(/^- \[[^\]]+\]\(docs\/([\w-]+)\.md\): .+\.$/gm)].map(
      ([, name]) => name ?? '',
    )
    expect(items.toSorted()).toEqual([...pages.keys()].toSorted())
  })

  test('each guide is Markdown, and its links lead to other Markdown', async () => {
    const seen = new Map([[`${listener.url}/llms.txt`, 'llms.txt']])
    for (const [url, from] of seen) {
      const response = await fetch(url)
      expect([from, url, response.status]).toEqual([from, url, 200])
      const text = await response.text()
      const type = response.headers.get('content-type')
      if (url.endsWith('.md')) expect([url, type]).toEqual([url, 'text/markdown; charset=utf-8'])
      if (!/\.(?:md|txt)$/.test(url)) continue
      expect([url, /<!-- (?:generated|file):/.exec(text)]).toEqual([url, null])
      for (const link of linksIn(text.replaceAll(/^```.*?^```$/gms, ''))) {
        const target = new URL(link, url)
        if (target.origin === new URL(listener.url).origin) seen.set(target.href, url)
      }
    }
    expect(seen.size).toBeGreaterThan(pages.size)
  })

  test('the page of a guide names its Markdown', () => {
    for (const [name, html] of pages)
      expect(html).toContain(`<link rel="alternate" type="text/markdown" href="${name}.md">`)
  })
})

describe('the guides', () => {
  test('have pages that each link resolves from, anchors included', async () => {
    expect(pages.size).toBeGreaterThan(20)
    const broken: string[] = []
    const checked = new Map<string, Promise<{ status: number; ids: string[] }>>()
    const look = async (url: string) => {
      const response = await fetch(url)
      return { status: response.status, ids: idsIn(await response.text()) }
    }
    for (const [name, html] of pages)
      for (const address of addressesIn(html)) {
        const url = new URL(address, pageUrl(name))
        if (url.origin !== new URL(listener.url).origin) continue
        const anchor = decodeURIComponent(url.hash.slice(1))
        url.hash = ''
        if (!checked.has(url.href)) checked.set(url.href, look(url.href))
        const found = await checked.get(url.href)
        if (found?.status !== 200 || (anchor !== '' && !found.ids.includes(anchor)))
          broken.push(`${name}: ${address}`)
      }
    expect(broken).toEqual([])
  })

  test('are all in the navigation of every page', () => {
    for (const [name, html] of pages) {
      const navigation = /<nav.*?<\/nav>/s.exec(html)?.[0] ?? ''
      const targets = addressesIn(navigation).map((address) => (address === './' ? 'index' : address))
      expect([name, targets.toSorted()]).toEqual([name, [...pages.keys()].toSorted()])
    }
  })

  test('use each id once on a page', () => {
    for (const [name, html] of pages) {
      const ids = idsIn(html)
      expect([name, ids.filter((id, at) => ids.indexOf(id) !== at)]).toEqual([name, []])
    }
  })

  test('load nothing from other hosts and have no inline script or style', async () => {
    for (const [name, html] of pages) {
      const response = await fetch(pageUrl(name))
      expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
      const policy = response.headers.get('content-security-policy') ?? ''
      expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'")
      expect(policy).not.toMatch(/https?:|\*|unsafe/)
      expect([
        name,
        /<script(?![^>]* src=)|<style| style=| on\w+=/.exec(html.replaceAll(/<code.*?<\/code>/gs, '')),
      ]).toEqual([name, null])
      const loaded = [...html.matchAll(/<(?:script|link|img)[^>]* (?:src|href)="([^"]*)"/g)]
      for (const [, address = ''] of loaded) expect(address).toMatch(/^(?:data:,|[\w-]+\.(?:css|js|svg|md))$/)
    }
  })

  test('explain every event and every error code', () => {
    const headings = (name: string) =>
      [...(pages.get(name) ?? '').matchAll(/<h3[^>]*>(.*?) <a/g)].map(([, text = '']) => text)
    expect(headings('events').toSorted()).toEqual([...logTypes].toSorted())
    expect(headings('errors').toSorted()).toEqual(Object.keys(httpStatusByCode).toSorted())
  })

  test.each([
    ['429', 'errors#rate_limited'],
    ['too many requests', 'errors#rate_limited'],
    ['too many attempts', 'errors#attempts_exhausted'],
    ['Twilio', 'twilio'],
    ['sendgrid', 'providers#kinds-of-providers'],
    ['GDPR', 'data#data-retention'],
    ['delete user', 'data#data-retention'],
    ['price', ''],
    ['fraud', 'guard'],
    ['2fa', 'accounts#passwords-and-a-second-factor'],
    ['resend', 'sending#resend-and-cancel'],
    ['got no code', 'troubleshooting#44-got-no-code'],
    ['no code received', 'support#i-got-no-code'],
    ['sms not arriving', 'troubleshooting#44-got-no-code'],
    ['too many attempts', 'support#i-am-locked-out'],
    ['delete user', 'support#delete-my-data'],
    ['help desk', 'support'],
    ['systemd', 'operating#with-systemd'],
    ['docker', 'operating#in-a-container'],
    ['letsencrypt', 'tls'],
    ['backup', 'backup'],
    ['upgrade', 'upgrading'],
  ])('are found by searching for %s', async (words, address) => {
    const found = searchGuides((await readGuideFile('search.json')) ?? '', words)
    expect([words, found.slice(0, 2).map(({ path }) => path)]).toEqual([
      words,
      expect.arrayContaining([`/docs/${address}`]),
    ])
    for (const { path, excerpt } of found) {
      expect((await get(path)).status).toBe(200)
      expect(excerpt).not.toMatch(/<\/|&(?:lt|quot|amp);/)
    }
  })
})

describe.skipIf(chromiumPath === null)('in a browser', () => {
  test('pages open without a console error or a foreign request', async () => {
    for (const name of ['index', 'sending', 'errors', 'console', 'commands']) {
      const visited = await openPage(pageUrl(name), "document.readyState === 'complete'")
      try {
        expect(await visited.evaluate('document.title')).toContain('otpd')
        const origins = visited.requests
          .filter((url) => !url.startsWith('data:'))
          .map((url) => new URL(url).origin)
        expect(new Set(origins)).toEqual(new Set([new URL(listener.url).origin]))
        expect(visited.consoleErrors).toEqual([])
      } finally {
        await visited.close()
      }
    }
  }, 300_000)

  test('tables stack on a phone, code has colours, and the outline follows', async () => {
    const phone = await openPage(pageUrl('errors'), "document.readyState === 'complete'", {
      width: 390,
      isDark: false,
    })
    try {
      expect(await phone.evaluate('scrollY')).toBe(0)
      const widths =
        'Math.max(...[...document.querySelectorAll(".table")].map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth))'
      expect(await phone.evaluate(widths)).toBe(0)
      expect(await phone.evaluate('document.documentElement.scrollWidth')).toBe(390)
    } finally {
      await phone.close()
    }
    const visited = await openPage(
      pageUrl('sending'),
      "document.readyState === 'complete' && (document.querySelector('aside [aria-current]') || scrollBy(0, 900))",
    )
    try {
      expect(await visited.evaluate("document.querySelectorAll('pre .string').length")).toBeGreaterThan(10)
      const outline = "[...document.querySelectorAll('aside [aria-current]')].map(({ hash }) => hash).join()"
      const before = await visited.evaluate(outline)
      await visited.evaluate("document.querySelector('#retry-safely').scrollIntoView()")
      await visited.waitFor(`${outline} === '#retry-safely'`)
      expect(before).not.toBe('#retry-safely')
    } finally {
      await visited.close()
    }
  }, 60_000)

  test('search, tabs and theme work', async () => {
    const visited = await openPage(pageUrl('sending'), "document.querySelectorAll('.copy').length > 5")
    try {
      await visited.evaluate(
        "const input = document.querySelector('#search'); input.focus(); input.value = 'resend'; input.dispatchEvent(new Event('input'))",
      )
      const found = await visited.evaluate(
        "new Promise((done) => { const look = () => { const links = [...document.querySelectorAll('#results a')]; links.length > 0 ? done(links.map((link) => link.href)) : setTimeout(look, 10) }; look() })",
      )
      expect(found).toContain(`${listener.url}/docs/sending#resend-and-cancel`)
      const shownCode =
        "[...document.querySelectorAll('.panel pre')].find((one) => one.checkVisibility()).innerText"
      expect(await visited.evaluate(shownCode)).toContain('curl http')
      await visited.evaluate("document.querySelector('[data-language=go]').click()")
      expect(await visited.evaluate(shownCode)).toContain('package main')
      const theme = 'getComputedStyle(document.body).backgroundColor'
      const before = await visited.evaluate(theme)
      await visited.evaluate("document.querySelector('#theme').click()")
      expect(await visited.evaluate(theme)).not.toBe(before)
      expect(visited.consoleErrors).toEqual([])
    } finally {
      await visited.close()
    }
  }, 300_000)
})
