import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startServer, type RunningServer } from '../helpers/binary.ts'
import { chromiumPath, openPage } from '../helpers/chromium.ts'

// The ready page in a browser while the guard asks for a proof of work.

let server: RunningServer
let credentials: Record<string, string>
beforeAll(async () => {
  server = await startServer({
    env: {
      OTPD_GUARD_MODE: 'enforce',
      OTPD_GUARD_CHALLENGE_KIND: 'altcha',
      OTPD_SEND_PER_MINUTE: '0',
      OTPD_PHONE_SEND_BUDGET: 'off',
    },
  })
  const login = ['login', '--setup-token', server.setupToken(), '--email', 'a@b.example', '--password-stdin']
  await server.otpd(login, { input: 'correct horse battery' })
  await server.otpd(['project', 'create', 'shop'])
  await server.otpd(['app', 'create', 'web', '-p', 'shop', '-e', 'live', '--env-file', 'web.env'])
  await server.otpd(['app', 'page', 'web', '--on', '--return-origin', 'https://shop.example'])
  const { stdout } = await server.otpd(['app', 'env', 'web', '--env-file', 'web.env', '--json'])
  const { data } = JSON.parse(stdout)
  credentials = {
    'x-client-id': data.OTPD_CLIENT_ID,
    'x-client-secret': data.OTPD_CLIENT_SECRET,
    'x-api-key': data.OTPD_API_KEY,
    'content-type': 'application/json',
  }
  // Unverified messages to the prefix, until it needs a challenge.
  for (let number = 1000; ; number++)
    if ((await call('POST', 'send', { phone: `+1415555${number}` })).status === 403) break
})
afterAll(() => server.stop())

const call = (method: string, path: string, body?: object) =>
  fetch(`${server.url}/v1/otp/${path}`, {
    method,
    headers: credentials,
    ...(body && { body: JSON.stringify(body) }),
  })

async function createSession(): Promise<{ id: string; url: string }> {
  const body = { returnUrl: 'https://shop.example/back', locale: 'en' }
  return ((await (await call('POST', 'sessions', body)).json()) as { data: { id: string; url: string } }).data
}
const readStatus = async (id: string) =>
  ((await (await call('GET', `sessions/${id}`)).json()) as { data: { status: string } }).data.status

test.skipIf(chromiumPath === null).each([
  ['in a secure context', '127.0.0.1'],
  ['over plain HTTP on another host', 'otp.test'],
])(
  'the page solves the proof of work, and sends the code: %s',
  async (_, host) => {
    const { id, url: link } = await createSession()
    const url = link.replace('127.0.0.1', host)
    const page = await openPage(url, "document.activeElement?.id === 'phone'")
    await page.evaluate(`window.notices = []
      new MutationObserver(() => {
        const notice = document.getElementById('notice')?.textContent
        if (notice) notices.push(notice)
      }).observe(document.body, { childList: true, subtree: true })`)
    expect(await page.evaluate('isSecureContext')).toBe(host === '127.0.0.1')
    await page.type(host === '127.0.0.1' ? '+14155559998' : '+14155559996')
    await page.press('Enter')
    await page.waitFor("document.activeElement?.id === 'code'")
    expect(await page.evaluate('notices')).toContain('Checking that you are not a robot…')
    expect(await readStatus(id)).toBe('sent')
    await page.close()
  },
  120_000,
)

test.skipIf(chromiumPath === null)(
  'without JavaScript the page says what to do, and keeps what was typed',
  async () => {
    const { id, url } = await createSession()
    const page = await openPage(url, '', { width: 390, isDark: false, hasScripts: false })
    await page.waitForElement('#phone')
    await page.focusElement('#phone')
    await page.type('+14155559997')
    await page.press('Enter')
    await page.waitForElement('#notice')
    await page.waitForElement('#phone[value="+14155559997"]')
    expect(await readStatus(id)).toBe('created')
    await page.close()
  },
  120_000,
)
