import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startServer, type RunningServer } from '../helpers/binary.ts'
import { startFaultyServer } from '../helpers/provider-faults.ts'
import { credentialHeaders } from '../helpers/service.ts'
import { hasOpenssl, makeCertificate } from '../helpers/webhook-receiver.ts'
import {
  findLogLines,
  authToken,
  buildReceipt,
  startGateway,
  createTwilioSettings,
  type Gateway,
  type SmsMessage,
} from './gateway.ts'

/** The compiled server, its own configuration file, real providers' servers on this machine, and the eight seconds. */

const email = 'ada@example.com'
const password = 'correct horse battery'
const cleanups: Array<() => unknown> = []
const home = mkdtempSync(join(tmpdir(), 'otpd-faults-'))
const configFile = join(home, 'otpd.toml')
let server: RunningServer
let headers: Record<string, string>
let otherHeaders: Record<string, string>

type FaultyProvider = { url: string; messages: SmsMessage[] }
/** Each fault has phones of its own; whatever its provider does not take is offered to the spare. */
const faults = new Map<string, FaultyProvider>()
const phonePrefix = (name: string) => `+316550${String([...faults.keys()].indexOf(name)).padStart(2, '0')}`
let phones = 0
const nextPhone = (name: string) => `${phonePrefix(name)}${String(++phones).padStart(3, '0')}`
let spare: Gateway

function gateway(): Gateway {
  const newGateway = startGateway()
  cleanups.push(newGateway.stop)
  return newGateway
}
const addGateway = (name: string, behave: (faultyGateway: Gateway) => void) => {
  const newGateway = gateway()
  behave(newGateway)
  faults.set(name, newGateway)
}

function writeConfig() {
  const providers = [...faults].map(([name, { url }]) => createTwilioSettings(name, url))
  const tables = [...providers, createTwilioSettings('spare', spare.url)].map(
    ({ name, values }) =>
      `[[providers]]\nname = "${name}"\nkind = "twilio"\naccountSid = "${values['accountSid']}"\n` +
      `authTokenEnv = "OTPD_SECRET_TWILIO"\nfrom = "${values['from']}"\nbaseUrl = "${values['baseUrl']}"\n`,
  )
  const routes = [...faults.keys()].map(
    (name) =>
      `[[routes]]\nchannel = "sms"\nprefixes = ["${phonePrefix(name)}"]\nproviders = ["${name}", "spare"]\n`,
  )
  const last = '[[routes]]\nchannel = "sms"\nproviders = ["spare"]\n'
  writeFileSync(configFile, [...tables, ...routes, last].join('\n'), { mode: 0o600 })
}

const env = () => ({
  OTPD_CONFIG: configFile,
  OTPD_DATA_DIR: join(home, 'data'),
  OTPD_SECRET_TWILIO: authToken,
  OTPD_SEND_PER_MINUTE: '0',
  OTPD_VERIFY_PER_MINUTE: '0',
  // Tells of each call that it was answered: what else it tells of that call stands before.
  OTPD_LOG_LEVEL: 'debug',
})

const reloaded = '"msg":"delivery reloaded"'

/** Has the server read its configuration again, and waits until it has. */
async function reload() {
  const times = server.log().split(reloaded).length
  process.kill(server.pid, 'SIGHUP')
  await server.waitForLog(reloaded, times)
}

async function start(extra: Record<string, string> = {}) {
  return startServer({ home, env: { ...env(), ...extra } })
}

async function call<T>(
  method: string,
  path: string,
  body?: object,
  extraHeaders: Record<string, string> = {},
) {
  const response = await fetch(`${server.url}${path}`, {
    method,
    headers: { ...headers, ...extraHeaders, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  })
  // What the test expects there; anything else fails it.
  const apiResponse: { data: T; error: { code: string; reason: string; metadata: { requestId: string } } } =
    JSON.parse(await response.text())
  return { ...apiResponse, status: response.status, traceId: response.headers.get('x-request-id') ?? '' }
}

/** What the caller got, how many messages the phone got and by whom, and what the log says. */
async function send(name: string) {
  const to = nextPhone(name)
  const startedAt = performance.now()
  const { status, data, error } = await call<{ requestId: string }>('POST', '/v1/otp/send', { phone: to })
  const tookMs = performance.now() - startedAt
  const requestId = status === 201 ? data.requestId : error.metadata.requestId
  const otpRequest = await call<{ status: string; deliveryStatus: string; provider: string | null }>(
    'GET',
    `/v1/otp/${requestId}`,
  )
  await server.waitForLog(otpRequest.traceId)
  const faultyMessages = faults.get(name)?.messages.filter((text) => text.to === to) ?? []
  const spareMessages = spare.messages.filter((text) => text.to === to)
  return {
    to,
    requestId,
    status,
    reason: error?.reason,
    tookMs,
    otpRequest: otpRequest.data,
    faultyMessages,
    spareMessages,
    log: findLogLines(server.log(), requestId),
  }
}

const verify = (requestId: string, text: SmsMessage | undefined) =>
  call('POST', '/v1/otp/verify', { requestId, code: text?.code ?? '' })

beforeAll(async () => {
  spare = gateway()
  addGateway('number', (one) => one.refuseAll(400, 21211))
  addGateway('account', (one) => one.refuseAll(401, 20003))
  addGateway('hangs', (one) =>
    one.setHandler((received) => {
      one.acceptMessage(received)
      return new Promise(() => {})
    }),
  )
  addGateway('slow', (one) =>
    one.setHandler(async (received) => {
      await Bun.sleep(2_000)
      return one.createdResponse(one.acceptMessage(received))
    }),
  )
  addGateway('fails', (one) => one.refuseAll(500, 20500))
  addGateway('busy', (one) => one.refuseAll(429, 20429, { 'retry-after': '300' }))
  const unreadServer = await startFaultyServer((socket) => socket.destroy())
  const cutResponseServer = await startFaultyServer((socket) =>
    socket.once('data', () => socket.end('HTTP/1.1 201 Created\r\ncontent-length: 200\r\n\r\n{"sid')),
  )
  const resetServer = await startFaultyServer((socket) => socket.once('data', () => socket.resetAndDestroy()))
  cleanups.push(unreadServer.stop, cutResponseServer.stop, resetServer.stop)
  faults.set('unread', { url: unreadServer.url, messages: [] })
  faults.set('silent', { url: resetServer.url, messages: [] })
  faults.set('halfway', { url: cutResponseServer.url, messages: [] })
  faults.set('nowhere', { url: 'https://nobody.invalid', messages: [] })
  if (hasOpenssl) {
    const { key, cert } = makeCertificate('other.example.com')
    const secure = createServer({ key, cert }, (_, response) => response.end())
    await new Promise<void>((resolve) => secure.listen(0, '127.0.0.1', resolve))
    cleanups.push(() => secure.close())
    writeFileSync(join(home, 'ca.pem'), cert)
    const address = secure.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    faults.set('impostor', { url: `https://localhost:${port}`, messages: [] })
  }
  addGateway('early', (one) =>
    one.setHandler(async (received) => {
      const text = one.acceptMessage(received)
      const { url, ...receipt } = buildReceipt(text, 'delivered')
      expect((await fetch(url, receipt)).status).toBe(200)
      return one.createdResponse(text)
    }),
  )
  writeConfig()
  server = await start(hasOpenssl ? { NODE_EXTRA_CA_CERTS: join(home, 'ca.pem') } : {})
  const { otpd } = server
  await otpd(['login', '--setup-token', server.setupToken(), '--email', email, '--password-stdin'], {
    input: password,
  })
  await otpd(['project', 'create', 'shop'])
  const create = async (name: string) => {
    const newGateway = await otpd(['app', 'create', name, '--project', 'shop', '--env', 'live', '--json'])
    return credentialHeaders(JSON.parse(newGateway.stdout).data)
  }
  headers = await create('web')
  otherHeaders = await create('other')
}, 300_000)

afterAll(async () => {
  await server.stop()
  for (const cleanup of cleanups) await cleanup()
  rmSync(home, { recursive: true, force: true })
})

describe('a provider that', () => {
  test('refuses the number: the caller is told, and the phone gets nothing', async () => {
    const { status, reason, otpRequest, spareMessages, log } = await send('number')
    expect([status, reason, otpRequest.status, otpRequest.deliveryStatus]).toEqual([
      502,
      'INVALID_NUMBER',
      'failed',
      'undelivered',
    ])
    expect(spareMessages).toEqual([])
    expect(log).toEqual(['message refused number invalid_number 21211'])
  })

  test.each([
    ['account', 'auth_failed 20003'],
    ['fails', 'provider_down 20500'],
    ['busy', 'throttled 20429'],
    // The second where there is no resolver.
    ['nowhere', 'provider_down (ENOTFOUND|EAI_AGAIN)'],
    ...(hasOpenssl ? [['impostor', 'provider_down ERR_TLS_CERT_ALTNAME_INVALID'] as const] : []),
  ])('refuses the message (%s): the next one takes it at once', async (name, why) => {
    const { status, requestId, otpRequest, spareMessages, log } = await send(name)
    expect([status, otpRequest.deliveryStatus, otpRequest.provider]).toEqual([201, 'sent', 'spare'])
    expect(spareMessages).toHaveLength(1)
    const refused = expect.stringMatching(new RegExp(`^message refused ${name} ${why}$`))
    expect(log).toEqual([refused, 'message accepted spare'])
    expect((await verify(requestId, spareMessages[0])).status).toBe(200)
  })

  test('asks for a pause gets it', async () => {
    await send('busy')
    const { spareMessages, log } = await send('busy')
    expect([spareMessages.length, log]).toEqual([1, ['message accepted spare']])
  })

  test('answers slowly is waited for', async () => {
    const { status, otpRequest, tookMs, faultyMessages, spareMessages, log } = await send('slow')
    expect([status, otpRequest.deliveryStatus, faultyMessages.length, spareMessages.length]).toEqual([
      201,
      'sent',
      1,
      0,
    ])
    expect(tookMs).toBeGreaterThan(1_900)
    expect(log).toEqual(['message accepted slow'])
  })

  test('hangs keeps its callers for eight seconds and no other application, and messages go to nobody else', async () => {
    const other = async () => {
      const phone = `+33612${String(++phones).padStart(6, '0')}`
      const { status } = await call('POST', '/v1/otp/send', { phone }, otherHeaders)
      expect(status).toBe(201)
    }
    let answered = 0
    const hanging = Array.from({ length: 50 }, () => send('hangs').finally(() => answered++))
    while ((faults.get('hangs')?.messages.length ?? 0) < 50) await other()
    for (let count = 0; count < 20; count++) await other()
    // All of the other application's, while every one of these still waits.
    expect(answered).toBe(0)
    for (const {
      status,
      requestId,
      tookMs,
      otpRequest,
      faultyMessages,
      spareMessages,
      log,
    } of await Promise.all(hanging)) {
      expect(tookMs).toBeGreaterThan(7_900)
      expect([status, otpRequest.status, otpRequest.deliveryStatus]).toEqual([201, 'pending', 'unknown'])
      expect([faultyMessages.length, spareMessages.length]).toEqual([1, 0])
      expect(log).toEqual(['message uncertain hangs uncertain ABORTED'])
      expect((await verify(requestId, faultyMessages[0])).status).toBe(200)
    }
  }, 300_000)

  test.each([
    ['unread', /^message uncertain unread uncertain \w+$/],
    ['silent', /^message uncertain silent uncertain ECONNRESET$/],
    ['halfway', /^message uncertain halfway uncertain \w+$/],
  ])('closes the connection (%s) may have the message: nobody else gets it', async (name, why) => {
    const { status, otpRequest, spareMessages, log } = await send(name)
    expect([status, otpRequest.status, otpRequest.deliveryStatus]).toEqual([201, 'pending', 'unknown'])
    expect(spareMessages).toEqual([])
    expect(log).toEqual([expect.stringMatching(why)])
  })

  test('sends the receipt before its answer: it counts', async () => {
    const { status, otpRequest, faultyMessages, spareMessages } = await send('early')
    expect([status, otpRequest.deliveryStatus, otpRequest.provider]).toEqual([201, 'delivered', 'early'])
    expect([faultyMessages.length, spareMessages.length]).toEqual([1, 0])
  })
})

describe('where nobody takes a message', () => {
  test('it is sent as soon as somebody does, with the code of its request', async () => {
    spare.refuseAll(503, 20503)
    const { status, requestId, otpRequest, to } = await send('fails')
    expect([status, otpRequest.status, otpRequest.deliveryStatus, otpRequest.provider]).toEqual([
      201,
      'pending',
      'queued',
      null,
    ])
    spare.acceptAll()
    await server.waitForLog(`"msg":"message accepted","requestId":"${requestId}"`)
    const got = spare.messages.filter((text) => text.to === to)
    expect(got).toHaveLength(1)
    const log = findLogLines(server.log(), requestId)
    // On a machine that is busy it may have been tried in between.
    expect([...log.slice(0, 3), log.at(-1)]).toEqual([
      'message refused fails provider_down 20500',
      'message refused spare provider_down 20503',
      'message refused fails provider_down 20500',
      'message accepted spare',
    ])
    expect((await verify(requestId, got[0])).status).toBe(200)
  }, 300_000)
})

describe('the configuration', () => {
  test('is read anew on SIGHUP, and kept where the new one has faults', async () => {
    await reload()
    const good = await Bun.file(configFile).text()
    writeFileSync(configFile, `${good}\n[[routes]]\nchannel = "pigeon"\nproviders = ["nobody"]\n`)
    process.kill(server.pid, 'SIGHUP')
    await server.waitForLog('There is no provider nobody.')
    await server.waitForLog('The route has no channel.')
    expect((await send('slow')).otpRequest.provider).toBe('slow')
    writeFileSync(configFile, good)
  })

  test('is listed, and each provider tried with a real message', async () => {
    const run = { env: env() }
    const listed = await server.otpd(['provider', 'list', '--json'], run)
    expect(JSON.parse(listed.stdout).data).toContainEqual(
      expect.objectContaining({ name: 'spare', kind: 'twilio', channels: ['sms'] }),
    )
    const busy = expect.objectContaining({
      name: 'busy',
      resting: expect.objectContaining({ failure: 'throttled' }),
    })
    expect(JSON.parse(listed.stdout).data).toContainEqual(busy)
    const good = await server.otpd(['provider', 'test', 'spare', '+33698765432', '--json'], run)
    expect([good.exitCode, JSON.parse(good.stdout).data.outcome]).toEqual([0, 'accepted'])
    expect(spare.messages.at(-1)?.to).toBe('+33698765432')
    const bad = await server.otpd(['provider', 'test', 'account', '+33698765432', '--json'], run)
    expect([bad.exitCode, JSON.parse(bad.stdout).data.failure.class]).toEqual([8, 'auth_failed'])
    expect((await server.otpd(['provider', 'test', 'nobody', '+33698765432'], run)).exitCode).toBe(5)
    expect(listed.stdout + good.stdout + bad.stderr).not.toContain(authToken)
  })
})

describe('a server that is killed', () => {
  /** Sends, kills the server once the provider has been reached, and starts it with one that works. */
  async function kill(provider: { url: string }, reached: Promise<unknown>, key: Record<string, string>) {
    faults.set('early', { ...provider, messages: [] })
    writeConfig()
    await reload()
    const to = nextPhone('early')
    const lost = call('POST', '/v1/otp/send', { phone: to }, key).catch(() => 'no answer')
    await reached
    process.kill(server.pid, 'SIGKILL')
    await server.exited
    expect(await lost).toBe('no answer')

    const restartedGateway = gateway()
    faults.set('early', restartedGateway)
    writeConfig()
    server = await start()
    await server.waitForLog('"msg":"message accepted"')
    const retryResponse = await call<{ requestId: string }>('POST', '/v1/otp/send', { phone: to }, key)
    expect([retryResponse.status, restartedGateway.messages.map((text) => text.to)]).toEqual([201, [to]])
    expect((await verify(retryResponse.data.requestId, restartedGateway.messages[0])).status).toBe(200)
    return restartedGateway.messages
  }

  test('between the commit and the sending sends the message when it is back', async () => {
    const reached = Promise.withResolvers<void>()
    // Takes the connection and never answers the TLS handshake: nothing of the message has left.
    const unresponsiveServer = await startFaultyServer(() => reached.resolve())
    cleanups.push(unresponsiveServer.stop)
    const url = `https://127.0.0.1:${unresponsiveServer.port}`
    await kill({ url }, reached.promise, { 'idempotency-key': 'before' })
  }, 300_000)

  test('after the provider took the message sends it again, with the same code', async () => {
    const reached = Promise.withResolvers<void>()
    const acceptingGateway = gateway()
    acceptingGateway.setHandler((received) => {
      acceptingGateway.acceptMessage(received)
      reached.resolve()
      return new Promise(() => {})
    })
    const texts = await kill(acceptingGateway, reached.promise, { 'idempotency-key': 'after' })
    expect(texts.map(({ code }) => code)).toEqual(acceptingGateway.messages.map(({ code }) => code))
  }, 300_000)
})
