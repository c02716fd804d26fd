import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startServer, type RunningServer } from '../helpers/binary.ts'
import { chromiumPath, openPage } from '../helpers/chromium.ts'

// The ready page in a browser behind a proxy that serves otpd below a path, and takes it off.

let server: RunningServer
let proxy: Bun.Server<undefined>
beforeAll(async () => {
  proxy = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: (request) => forward(request) })
  const publicUrl = `${proxy.url.href}otp`
  server = await startServer({ args: ['--public-url', publicUrl] })
  for (const args of [
    ['login', '--setup-token', server.setupToken(), '--email', 'a@b.example', '--password-stdin'],
    ['project', 'create', 'shop'],
    ['app', 'create', 'web', '-p', 'shop', '-e', 'test', '--env-file', 'web.env'],
    ['app', 'page', 'web', '--on', '--return-origin', proxy.url.origin],
  ])
    await run(args)
})
afterAll(async () => {
  await proxy.stop(true)
  await server.stop()
})

async function run(args: string[]): Promise<string> {
  const { exitCode, stdout } = await server.otpd(args, { input: 'correct horse battery' })
  expect(exitCode).toBe(0)
  return stdout
}

async function forward(request: Request): Promise<Response> {
  const { pathname, search } = new URL(request.url)
  if (pathname === '/back') return new Response('<p id=back>', { headers: { 'content-type': 'text/html' } })
  if (!pathname.startsWith('/otp/')) return new Response(null, { status: 404 })
  const { method } = request
  // Bun decodes the body, and would pass on that it is encoded.
  const headers = { ...Object.fromEntries(request.headers), 'accept-encoding': 'identity' }
  const body = method === 'POST' ? await request.text() : null
  return fetch(`${server.url}${pathname.slice('/otp'.length)}${search}`, {
    method,
    headers,
    body,
    redirect: 'manual',
  })
}

test.skipIf(chromiumPath === null).each([true, false])(
  'the page stays below the path of a proxy, with scripts: %p',
  async (hasScripts) => {
    const create = ['otp', 'session', 'create', '--return-url', `${proxy.url.origin}/back`]
    const { data: created } = JSON.parse(await run([...create, '--env-file', 'web.env', '--json']))
    expect(created.url).toStartWith(`${proxy.url.href}otp/verify/`)
    const page = await openPage(created.url, 'true', { width: 390, isDark: false, hasScripts })
    const sendTo = async (phone: string) => {
      await page.waitForElement('#phone')
      await page.focusElement('#phone')
      await page.type(phone)
      await page.press('Enter')
      await page.waitForElement('#code')
    }
    await sendTo('+14155550101')
    await page.focusElement('a.button')
    await page.press('Enter')
    await sendTo('+14155550102')
    await page.focusElement('#code')
    await page.type('424242')
    await page.press('Enter')
    await page.waitForElement('#back')
    const { data } = JSON.parse(
      await run(['otp', 'session', 'get', created.id, '--env-file', 'web.env', '--json']),
    )
    expect(data).toMatchObject({ status: 'verified', phone: '+14155550102' })
    await page.close()
  },
  60_000,
)
