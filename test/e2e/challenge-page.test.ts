import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startServer, type RunningServer } from '../helpers/binary.ts'
import { chromiumPath, openPage } from '../helpers/chromium.ts'
import { codeBlocks, readDocument } from '../helpers/guide-blocks.ts'
import { runToEnd } from '../helpers/run-to-end.ts'

const root = join(import.meta.dir, '../..')
const guide = readDocument('src/docs/challenge.md')
const widget = join(root, 'node_modules/altcha/dist/main/altcha.min.js')

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
  const { stdout } = await server.otpd(['app', 'env', 'web', '--env-file', 'web.env', '--json'])
  credentials = JSON.parse(stdout).data
  const library = join(server.home, 'node_modules/otpd')
  mkdirSync(library, { recursive: true })
  await runToEnd([process.execPath, join(root, 'cli/build-client.ts'), '--outdir', library])
})
afterAll(async () => {
  for (const name of Object.keys(credentials)) delete process.env[name]
  await server.stop()
})

/** Starts the backend and the page of the guide. */
async function startShop() {
  const [backend = ''] = codeBlocks(guide, 'ts')
  const [page = ''] = codeBlocks(guide, 'html')
  writeFileSync(join(server.home, 'send-code.ts'), backend)
  Object.assign(process.env, credentials)
  const { sendCode }: { sendCode(input: object): Promise<Response> } = await import(
    join(server.home, 'send-code.ts')
  )
  const answers: number[] = []
  const shop = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    routes: {
      '/': new Response(`<!doctype html>${page}`, { headers: { 'content-type': 'text/html' } }),
      '/altcha.min.js': new Response(Bun.file(widget)),
      '/send-code': {
        async POST(request) {
          const input = (await request.json()) as object
          const response = await sendCode({ ...input, clientIp: '203.0.113.9' })
          answers.push(response.status)
          return response
        },
      },
    },
  })
  return { url: shop.url.href, answers, sendCode, stop: () => shop.stop(true) }
}

test.skipIf(chromiumPath === null)(
  'the page of the guide gets a code after the proof of work of the ALTCHA widget',
  async () => {
    const shop = await startShop()
    const spend = (n: number) => shop.sendCode({ phone: `+1415555${1000 + n}` })
    // Messages in flight count a fifth, so 54 spend the 30 of a prefix.
    const spent = await Promise.all(Array.from({ length: 54 }, (_, n) => spend(n)))
    expect(spent.map(({ status }) => status)).not.toContain(403)
    const page = await openPage(shop.url, "customElements.get('altcha-widget') !== undefined")
    await page.evaluate("document.querySelector('input').focus()")
    await page.type('+14155559999')
    await page.evaluate("document.querySelector('button').click()")
    await page.waitFor("document.querySelector('output').value !== ''")
    expect(await page.evaluate("document.querySelector('output').value")).toBe('Look at your phone.')
    expect(shop.answers).toEqual([403, 200])
    await page.close()
    await shop.stop()
  },
  120_000,
)
