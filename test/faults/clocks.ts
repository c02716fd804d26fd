import { logIn, type TestApp, type WebhookClient } from '../helpers/webhook-client.ts'
import { callApi, send, violationUnless, verify, waitUntil, type CallResult } from './calls.ts'
import type { FaultFamily, Trial } from './family.ts'
import { makeHome, startServerAt, type Home } from './server.ts'
import { createProcessClock, type ProcessClock } from '../helpers/process-clock.ts'

const hourMs = 3_600_000
const steps = { '2 hours ahead': 2, '2 hours back': -2, '1 day ahead': 24, '1 day back': -24 } as const

const sendsPerMinute = 5
const ttlMs = 300_000

export const clocks: FaultFamily = {
  name: 'clocks',
  description: 'the time of day jumps, while the server runs and while it is stopped',
  async run(trial) {
    const running = Object.entries(steps).map(async ([description, hours]) => {
      const wallClock = createProcessClock(trial.folder)
      await stepWhileRunning(trial, wallClock, description, hours * hourMs)
      wallClock.close()
    })
    // These trials wait most of the time, so they run concurrently.
    for (const [description, hours] of Object.entries(steps)) {
      const wallClock = createProcessClock(trial.folder)
      await stepOverRestart(trial, wallClock, description, hours * hourMs)
      wallClock.close()
    }
    await Promise.all(running)
  },
}

type Receiver = { url: string; status: number; timestamps: number[]; stop(): void }

/** Starts a receiver that records the timestamp of each webhook, in milliseconds. */
function startReceiver(): Receiver {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      receiver.timestamps.push(Number(request.headers.get('webhook-timestamp')) * 1000)
      return new Response('', { status: receiver.status })
    },
  })
  const receiver: Receiver = {
    url: `http://127.0.0.1:${server.port}/`,
    status: 200,
    timestamps: [],
    stop: () => void server.stop(true),
  }
  return receiver
}

const start = (serverHome: Home, wallClock: ProcessClock) =>
  startServerAt(serverHome, { ...wallClock.env, OTPD_SEND_PER_MINUTE: String(sendsPerMinute) })

/** Sends until the rate limit is reached, all at once. */
async function sendAll(url: string, app: TestApp): Promise<CallResult[]> {
  const responses = await Promise.all(Array.from({ length: sendsPerMinute + 1 }, () => send(url, app)))
  return responses.toSorted((a, b) => a.status - b.status)
}

const isLimitReached = (responses: readonly CallResult[]) =>
  responses.filter(({ status }) => status === 201).length === sendsPerMinute &&
  responses.at(-1)?.status === 429

const retryAfter = ({ headers }: CallResult) => Number(headers.get('retry-after'))

async function readTtlMs(url: string, { data }: CallResult): Promise<number> {
  const health = await callApi('GET', `${url}/v1/health`)
  return Date.parse(String(data['expiresAt'])) - Date.parse(String(health.data['time']))
}

async function stepWhileRunning(
  trial: Trial,
  wallClock: ProcessClock,
  description: string,
  stepMs: number,
): Promise<void> {
  const receiver = startReceiver()
  const server = await start(makeHome(trial, `running-${stepMs}`), wallClock)
  try {
    const client = await logIn(server.url)
    const app = await client.createApplication()
    const fresh = await client.createApplication('Fresh')
    await client.createEndpoint(fresh, receiver.url)
    const firstSentAt = performance.now()
    const sentBefore = await sendAll(server.url, app)

    wallClock.setTimeOfDay(stepMs)
    const stepped = await send(server.url, app)
    const code = sentBefore[0]?.data ?? {}
    const verified = await verify(server.url, app, code['requestId'], code['code'])
    const sentByOther = await send(server.url, fresh)
    const ttl = await readTtlMs(server.url, sentByOther)
    const isStillServed = await isServed(client)
    const arrived = await waitUntil(trial.allowMs(5_000), () => receiver.timestamps.length > 0)
    const timestampErrorMs = Math.abs((receiver.timestamps[0] ?? 0) - wallClock.now())
    const isLogged = await waitUntil(trial.allowMs(15_000), () =>
      server.log().includes('the system clock was set'),
    )
    let heldMs: number | undefined
    if (!trial.short) {
      await waitUntil(90_000, async () => (await send(server.url, app)).status === 201)
      heldMs = Math.round(performance.now() - firstSentAt)
    }
    trial.report({
      scenario: `the time of day is set ${description} while the server runs`,
      guarantee:
        'rate limits and codes keep their remaining time, sessions stay valid, signatures have the new time, the log reports it',
      figures: {
        'after the limit': stepped.status,
        'Retry-After': retryAfter(stepped),
        'code of before': verified.status,
        'new code lives s': Math.round(ttl / 1000),
        'signature off ms': timestampErrorMs,
        ...(heldMs !== undefined && { 'limit held ms': heldMs }),
      },
      violations: [
        ...violationUnless(
          isLimitReached(sentBefore),
          `before: ${sentBefore.map(({ status }) => status).join(' ')}`,
        ),
        ...violationUnless(stepped.status === 429, `the rate limit admitted a send: ${stepped.status}`),
        ...violationUnless(
          retryAfter(stepped) > 0 && retryAfter(stepped) <= 60,
          `Retry-After ${retryAfter(stepped)}`,
        ),
        ...violationUnless(verified.status === 200, `verifying the earlier code was ${verified.status}`),
        ...violationUnless(ttl > ttlMs - trial.allowMs(5_000) && ttl <= ttlMs, `a new code lives ${ttl} ms`),
        ...violationUnless(isStillServed, 'the earlier session is no longer accepted'),
        ...violationUnless(
          arrived && timestampErrorMs < trial.allowMs(10_000),
          `the signature's time is ${timestampErrorMs} ms off`,
        ),
        ...violationUnless(isLogged, 'the log does not report it'),
        ...violationUnless(
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

async function stepOverRestart(
  trial: Trial,
  wallClock: ProcessClock,
  description: string,
  stepMs: number,
): Promise<void> {
  const receiver = startReceiver()
  const serverHome = makeHome(trial, `restarted-${stepMs}`)
  const isBack = stepMs < 0
  let server = await start(serverHome, wallClock)
  try {
    const client = await logIn(server.url)
    const app = await client.createApplication()
    receiver.status = 503
    await client.createEndpoint(app, receiver.url, ['otp.verified'])
    const sentBefore = await sendAll(server.url, app)
    const [first, second] = sentBefore.map(({ data }) => data)
    await verify(server.url, app, first?.['requestId'], first?.['code'])
    const isAttempted = await waitUntil(trial.allowMs(5_000), () => receiver.timestamps.length > 0)
    await server.stop()

    wallClock.setTimeOfDay(stepMs)
    receiver.status = 200
    const startedAt = performance.now()
    server = await start(serverHome, wallClock)
    const stepped = await send(server.url, app)
    const found = await callApi('GET', `${server.url}/v1/otp/${String(second?.['requestId'])}`, {
      headers: app.headers,
    })
    const ttl = await readTtlMs(server.url, found)
    const verified = await verify(server.url, app, second?.['requestId'], second?.['code'])
    const isRetried = await waitUntil(trial.allowMs(15_000), () => receiver.timestamps.length > 1)
    const retriedAfterMs = Math.round(performance.now() - startedAt)
    const login = await logIn(server.url).then(isServed, () => false)
    trial.report({
      scenario: `the time of day is set ${description} while the server is stopped`,
      guarantee: isBack
        ? 'rate limits last one minute, codes five, retries arrive when they were due; the log reports it'
        : 'as after a pause of that length: rate limits are free, codes have expired, retries arrive at once',
      figures: {
        'after the limit': stepped.status,
        'Retry-After': retryAfter(stepped),
        'code of before': verified.status,
        'it lives s': Math.round(ttl / 1000),
        'retry after ms': isRetried ? retriedAfterMs : 'never',
      },
      violations: [
        ...violationUnless(
          isLimitReached(sentBefore) && isAttempted,
          'the rate limit was not reached, or there was nothing to retry',
        ),
        ...violationUnless(stepped.status === (isBack ? 429 : 201), `the next send was ${stepped.status}`),
        ...violationUnless(
          !isBack || (retryAfter(stepped) > 0 && retryAfter(stepped) <= 60),
          `Retry-After ${retryAfter(stepped)}`,
        ),
        ...violationUnless(
          verified.status === (isBack ? 200 : 410),
          `verifying the earlier code was ${verified.status}`,
        ),
        ...violationUnless(!isBack || (ttl > 0 && ttl <= ttlMs), `the earlier code lives ${ttl} ms`),
        ...violationUnless(isRetried, 'the retry did not arrive within 15 s'),
        ...violationUnless(login, 'logging in fails'),
        ...violationUnless(!isBack || server.log().includes('was set back'), 'the log does not report it'),
      ],
    })
  } finally {
    await server.stop()
    receiver.stop()
  }
}
