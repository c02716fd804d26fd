import { logIn, type TestApp, type WebhookClient } from '../helpers/webhook-client.ts'
import { ask, send, unless, verify, within, type Answer } from './calls.ts'
import type { Family, Trial } from './family.ts'
import { makeHome, startAt, type Home } from './server.ts'
import { buildShim } from './shim.ts'
import { createWall, type Wall } from './wall.ts'

const hourMs = 3_600_000
const steps = { '2 hours ahead': 2, '2 hours back': -2, '1 day ahead': 24, '1 day back': -24 } as const

const sendsPerMinute = 5
const ttlMs = 300_000

export const clocks: Family = {
  name: 'clocks',
  about: 'the time of day jumps, while the server runs and while it does not',
  async run(trial) {
    const library = buildShim(trial.folder, 'wall')
    const running = Object.entries(steps).map(async ([words, hours]) => {
      const wall = createWall(library, trial.folder)
      await stepWhileRunning(trial, wall, words, hours * hourMs)
      wall.close()
    })
    // Those wait most of the time.
    for (const [words, hours] of Object.entries(steps)) {
      const wall = createWall(library, trial.folder)
      await stepOverRestart(trial, wall, words, hours * hourMs)
      wall.close()
    }
    await Promise.all(running)
  },
}

type Receiver = { url: string; answer: number; stamps: number[]; stop(): void }

/** Keeps the time that each webhook says it was sent at, in milliseconds. */
function startReceiver(): Receiver {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      receiver.stamps.push(Number(request.headers.get('webhook-timestamp')) * 1000)
      return new Response('', { status: receiver.answer })
    },
  })
  const receiver: Receiver = {
    url: `http://127.0.0.1:${server.port}/`,
    answer: 200,
    stamps: [],
    stop: () => void server.stop(true),
  }
  return receiver
}

const start = (at: Home, wall: Wall) =>
  startAt(at, { ...wall.env, OTPD_SEND_PER_MINUTE: String(sendsPerMinute) })

/** As many sends as are admitted, at once. */
async function sendAll(url: string, app: TestApp): Promise<Answer[]> {
  const answers = await Promise.all(Array.from({ length: sendsPerMinute + 1 }, () => send(url, app)))
  return answers.toSorted((a, b) => a.status - b.status)
}

const isFull = (answers: readonly Answer[]) =>
  answers.filter(({ status }) => status === 201).length === sendsPerMinute && answers.at(-1)?.status === 429

const retryAfter = ({ headers }: Answer) => Number(headers.get('retry-after'))

async function ttlOf(url: string, { data }: Answer): Promise<number> {
  const health = await ask('GET', `${url}/v1/health`)
  return Date.parse(String(data['expiresAt'])) - Date.parse(String(health.data['time']))
}

async function stepWhileRunning(trial: Trial, wall: Wall, words: string, stepMs: number): Promise<void> {
  const receiver = startReceiver()
  const server = await start(makeHome(trial, `running-${stepMs}`), wall)
  try {
    const client = await logIn(server.url)
    const app = await client.createApplication()
    const fresh = await client.createApplication('Fresh')
    await client.createEndpoint(fresh, receiver.url)
    const firstAt = performance.now()
    const before = await sendAll(server.url, app)

    wall.set(stepMs)
    const stepped = await send(server.url, app)
    const code = before[0]?.data ?? {}
    const verified = await verify(server.url, app, code['requestId'], code['code'])
    const next = await send(server.url, fresh)
    const ttl = await ttlOf(server.url, next)
    const seen = await isServed(client)
    const arrived = await within(trial.allowMs(5_000), () => receiver.stamps.length > 0)
    const stampOff = Math.abs((receiver.stamps[0] ?? 0) - wall.now())
    const told = await within(trial.allowMs(15_000), () => server.log().includes('the system clock was set'))
    let heldMs: number | undefined
    if (!trial.short) {
      await within(90_000, async () => (await send(server.url, app)).status === 201)
      heldMs = Math.round(performance.now() - firstAt)
    }
    trial.report({
      tried: `the time of day is set ${words} while the server runs`,
      promised:
        'limits neither free nor hold, codes live on, nobody is thrown out, signatures have the new time, the log says so',
      figures: {
        'after the limit': stepped.status,
        'Retry-After': retryAfter(stepped),
        'code of before': verified.status,
        'new code lives s': Math.round(ttl / 1000),
        'signature off ms': stampOff,
        ...(heldMs !== undefined && { 'limit held ms': heldMs }),
      },
      broken: [
        ...unless(isFull(before), `before: ${before.map(({ status }) => status).join(' ')}`),
        ...unless(stepped.status === 429, `the limit let a send through: ${stepped.status}`),
        ...unless(retryAfter(stepped) > 0 && retryAfter(stepped) <= 60, `Retry-After ${retryAfter(stepped)}`),
        ...unless(verified.status === 200, `the code of before was ${verified.status}`),
        ...unless(ttl > ttlMs - trial.allowMs(5_000) && ttl <= ttlMs, `a new code lives ${ttl} ms`),
        ...unless(seen, 'the session of before is no longer served'),
        ...unless(arrived && stampOff < trial.allowMs(10_000), `the signature's time is ${stampOff} ms off`),
        ...unless(told, 'the log says nothing'),
        ...unless(
          heldMs === undefined || (heldMs >= 60_000 && heldMs < 65_000),
          `the limit held ${heldMs} ms`,
        ),
      ],
    })
  } finally {
    await server.stop()
    receiver.stop()
  }
}

const isServed = (client: WebhookClient) =>
  client.call('GET', '/v1/developer/me').then(
    () => true,
    () => false,
  )

async function stepOverRestart(trial: Trial, wall: Wall, words: string, stepMs: number): Promise<void> {
  const receiver = startReceiver()
  const at = makeHome(trial, `restarted-${stepMs}`)
  const isBack = stepMs < 0
  let server = await start(at, wall)
  try {
    const client = await logIn(server.url)
    const app = await client.createApplication()
    receiver.answer = 503
    await client.createEndpoint(app, receiver.url, ['otp.verified'])
    const before = await sendAll(server.url, app)
    const [first, second] = before.map(({ data }) => data)
    await verify(server.url, app, first?.['requestId'], first?.['code'])
    const tried = await within(trial.allowMs(5_000), () => receiver.stamps.length > 0)
    await server.stop()

    wall.set(stepMs)
    receiver.answer = 200
    const startedAt = performance.now()
    server = await start(at, wall)
    const stepped = await send(server.url, app)
    const found = await ask('GET', `${server.url}/v1/otp/${String(second?.['requestId'])}`, {
      headers: app.headers,
    })
    const ttl = await ttlOf(server.url, found)
    const verified = await verify(server.url, app, second?.['requestId'], second?.['code'])
    const again = await within(trial.allowMs(15_000), () => receiver.stamps.length > 1)
    const againMs = Math.round(performance.now() - startedAt)
    const login = await logIn(server.url).then(isServed, () => false)
    trial.report({
      tried: `the time of day is set ${words} while the server does not run`,
      promised: isBack
        ? 'limits hold for their minute, codes for their five, retries come when they were due; the log says so'
        : 'as after so long a pause: limits are free, codes are over, retries come at once',
      figures: {
        'after the limit': stepped.status,
        'Retry-After': retryAfter(stepped),
        'code of before': verified.status,
        'it lives s': Math.round(ttl / 1000),
        'retry after ms': again ? againMs : 'never',
      },
      broken: [
        ...unless(isFull(before) && tried, 'the limit was not reached, or nothing to retry'),
        ...unless(stepped.status === (isBack ? 429 : 201), `the next send was ${stepped.status}`),
        ...unless(
          !isBack || (retryAfter(stepped) > 0 && retryAfter(stepped) <= 60),
          `Retry-After ${retryAfter(stepped)}`,
        ),
        ...unless(verified.status === (isBack ? 200 : 410), `the code of before was ${verified.status}`),
        ...unless(!isBack || (ttl > 0 && ttl <= ttlMs), `the code of before lives ${ttl} ms`),
        ...unless(again, 'the retry did not come within 15 s'),
        ...unless(login, 'nobody can log in'),
        ...unless(!isBack || server.log().includes('was set back'), 'the log says nothing'),
      ],
    })
  } finally {
    await server.stop()
    receiver.stop()
  }
}
