import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startServer } from '../helpers/binary.ts'
import { openScreen, type Size } from '../helpers/screen.ts'
import { createProcessClock } from '../helpers/process-clock.ts'

const dayMs = 86_400_000
const days = 13

/** Codes per day: a shop that grows, with weekends. */
const sendsPerDay = [21, 24, 23, 27, 31, 18, 16, 29, 33, 35, 34, 41, 26, 37]

/** Beginnings of mobile numbers; some countries have more of them. */
const prefixes = [
  '+1212736',
  '+1212736',
  '+44740012',
  '+44740012',
  '+44740012',
  '+4915212',
  '+3361234',
  '+55119123',
]

export type Demo = Awaited<ReturnType<typeof startDemo>>

/**
 * Starts a server with two weeks of traffic of a shop: its clock is moved from day to day. A local server is its SMS
 * provider, which reads the codes; a fifth of them is never entered, and some are entered wrongly.
 */
export async function startDemo() {
  const home = mkdtempSync(join(tmpdir(), 'otpd-demo-'))
  const clock = createProcessClock(home, Date.now() - days * dayMs)
  const codes = new Map<string, string>()
  let accepted = 0
  const gateway = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      if (new URL(request.url).pathname === '/hook') return new Response()
      const { id, code }: { id: string; code: string } = JSON.parse(await request.text())
      codes.set(id, code)
      return Response.json({ id: `m${++accepted}` })
    },
  })
  const provider = (name: string) => `[[providers]]
name = "${name}"
kind = "http-template"
url = "http://127.0.0.1:${gateway.port}/${name}"
body = '{"id": "{{requestId}}", "code": "{{code}}"}'
messageIdPath = "id"
`
  const config = join(home, 'otpd.toml')
  writeFileSync(
    config,
    `${provider('main')}${provider('spare')}[[routes]]\nchannel = "sms"\nproviders = ["main", "spare"]\n`,
  )
  const env = {
    ...clock.env,
    OTPD_CONFIG: config,
    OTPD_SEND_PER_MINUTE: '0',
    OTPD_VERIFY_PER_MINUTE: '0',
    OTPD_PHONE_SEND_BUDGET: 'off',
    OTPD_GUARD_MODE: 'monitor',
    OTPD_WEBHOOK_ALLOW: '127.0.0.1',
  }
  const server = await startServer({ home, env })

  const run = async (args: string[], input?: string) => {
    const result = await server.otpd(args, { env, ...(input !== undefined && { input }) })
    if (result.exitCode !== 0) throw new Error(`otpd ${args.join(' ')}: ${result.stderr}`)
    return result.stdout
  }
  const account = ['--email', 'ada@example.com', '--password-stdin']
  await run(
    ['admin', 'create', ...account, '--name', 'Ada', '--data-dir', server.dataDir],
    'correct horse battery',
  )
  await run(['login', ...account], 'correct horse battery')
  await run(['project', 'create', 'shop'])
  const random = createRandom()
  const applications: Record<string, string>[] = []
  for (const name of ['web', 'mobile', 'checkout']) {
    const created = await run(['app', 'create', name, '--project', 'shop', '--env', 'live', '--json'])
    const { data }: { data: { clientId: string; clientSecret: string; apiKey: string } } = JSON.parse(created)
    applications.push({
      'x-client-id': data.clientId,
      'x-client-secret': data.clientSecret,
      'x-api-key': data.apiKey,
      'content-type': 'application/json',
    })
  }

  async function call(path: string, headers: Record<string, string>, body: object) {
    const response = await fetch(server.url + path, { method: 'POST', headers, body: JSON.stringify(body) })
    const { data }: { data?: { requestId: string } } = JSON.parse(await response.text())
    return data?.requestId ?? ''
  }

  const hook = ['--url', `http://127.0.0.1:${gateway.port}/hook`, '--events', 'otp.verified,otp.failed']
  await run(['webhook', 'create', '--app', 'web', ...hook])

  async function sendOne() {
    const headers = applications[[0, 0, 0, 1, 1, 2][random(6)] ?? 0] ?? {}
    const phone = `${prefixes[random(prefixes.length)]}${1000 + random(9000)}`
    const requestId = await call('/v1/otp/send', headers, { phone })
    const code = codes.get(requestId) ?? '000000'
    if (random(9) === 0) await call('/v1/otp/verify', headers, { requestId, code: '000000' })
    if (random(23) === 0)
      for (let i = 0; i < 5; i++) await call('/v1/otp/verify', headers, { requestId, code: '000001' })
    if (random(31) === 0) await call('/v1/otp/cancel', headers, { requestId })
    if (random(5) > 0) await call('/v1/otp/verify', headers, { requestId, code })
  }

  for (const [day, sends] of sendsPerDay.entries()) {
    for (let i = 0; i < sends; i++) await sendOne()
    if (day < days) clock.advance(dayMs)
  }
  // The session of two weeks ago has ended.
  await run(['login', ...account], 'correct horse battery')

  return {
    /** Sends and verifies a few more codes, as a live log shows them. */
    async sendMore(count: number) {
      for (let i = 0; i < count; i++) await sendOne()
    },
    open(size: Size, args: string[] = []) {
      return openScreen(
        [join(import.meta.dir, '../../dist/otpd'), 'console', ...args],
        {
          PATH: process.env.PATH ?? '',
          HOME: home,
          OTPD_SERVER: server.url,
          COLORTERM: '',
          TERM: 'xterm-256color',
        },
        size,
      )
    },
    async stop() {
      await server.stop()
      await gateway.stop(true)
      clock.close()
      rmSync(home, { recursive: true, force: true })
    },
  }
}

/** Creates random whole numbers below a bound, the same in each run (a linear congruential generator). */
function createRandom() {
  let state = 4711
  return (bound: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31
    return Math.floor((state / 2 ** 31) * bound)
  }
}
