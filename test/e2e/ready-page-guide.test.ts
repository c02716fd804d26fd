import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startServer, type RunningServer } from '../helpers/binary.ts'
import { codeBlocks, readDocument } from '../helpers/guide-blocks.ts'
import { createPageVisitor } from '../helpers/page-visitor.ts'
import { runToEnd } from '../helpers/run-to-end.ts'

// The backend of the guide, as it is written there, with the compiled server.

type Visitor = { state?: string }
type Backend = {
  start(visitor: Visitor): Promise<Response>
  back(request: Request, visitor: Visitor): Promise<string | null>
}

const guide = readDocument('src/docs/ready-page.md')
let server: RunningServer
let credentials: Record<string, string>
let backend: Backend

beforeAll(async () => {
  server = await startServer({ env: { OTPD_LOG_LEVEL: 'debug' } })
  const login = ['login', '--setup-token', server.setupToken(), '--email', 'a@b.example', '--password-stdin']
  await server.otpd(login, { input: 'correct horse battery' })
  await server.otpd(['project', 'create', 'shop'])
  await server.otpd(['app', 'create', 'web', '-p', 'shop', '-e', 'test', '--env-file', 'web.env'])
  await server.otpd(['app', 'page', 'web', '--on', '--return-origin', 'https://shop.example'])
  const { stdout } = await server.otpd(['app', 'env', 'web', '--env-file', 'web.env', '--json'])
  credentials = JSON.parse(stdout).data
  const library = join(server.home, 'node_modules/otpd')
  mkdirSync(library, { recursive: true })
  await runToEnd([process.execPath, join(import.meta.dir, '../../cli/build-client.ts'), '--outdir', library])
  const [source = ''] = codeBlocks(guide, 'ts')
  writeFileSync(join(server.home, 'backend.ts'), source)
  Object.assign(process.env, credentials)
  backend = await import(join(server.home, 'backend.ts'))
})
afterAll(async () => {
  for (const name of Object.keys(credentials)) delete process.env[name]
  await server.stop()
})

/** Opens a link in a browser of its own. */
async function openLink(url: string) {
  const handle = (request: Request) => fetch(request, { redirect: 'manual' })
  const browser = createPageVisitor({ app: { handle } }, url)
  await browser.get()
  return browser
}

/** Starts a visit at the shop. @returns the link */
async function start(visitor: Visitor): Promise<string> {
  const response = await backend.start(visitor)
  expect(response.status).toBe(303)
  return response.headers.get('location') ?? ''
}

/** Verifies a phone on the page. @returns the address to which the browser goes */
async function verifyPhone(url: string, phone: string): Promise<Request> {
  const browser = await openLink(url)
  await browser.submit({ action: 'send', phone })
  await browser.post({ action: 'verify', code: '424242' })
  return new Request((await browser.get()).location ?? '')
}

test('returns the phone to the visitor who verified it, once', async () => {
  const visitor: Visitor = {}
  const returned = await verifyPhone(await start(visitor), '+14155550100')
  expect(await backend.back(returned, {})).toBeNull()
  expect(await backend.back(returned, visitor)).toBe('+14155550100')
  expect(await backend.back(returned, visitor)).toBeNull()
})

test('gives an attacker nothing who has passed the link on', async () => {
  const attacker: Visitor = {}
  const url = await start(attacker)
  const victim: Visitor = {}
  await start(victim)
  const ofVictim = await verifyPhone(url, '+14155550101')
  expect(await backend.back(ofVictim, victim)).toBeNull()
  const ofAttacker = new Request((await (await openLink(url)).get()).location ?? '')
  expect(new URL(ofAttacker.url).searchParams.get('session')).toStartWith('ses_')
  expect(await backend.back(ofAttacker, attacker)).toBeNull()
})

test('the log of the server has neither links nor phones', async () => {
  const url = await start({})
  await verifyPhone(url, '+14155550102')
  const token = url.slice(url.lastIndexOf('/') + 1)
  await fetch(url, { headers: { referer: url }, redirect: 'manual' })
  await server.waitForLog('/verify/')
  const log = server.log()
  expect(log).not.toContain(token)
  expect(log).not.toContain('14155550102')
  expect(log).not.toContain('424242')
})
