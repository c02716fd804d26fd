import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startServer } from '../../src/server.ts'
import { dataFiles } from '../../src/store/data-dir.ts'
import { configOf, loadEnv } from '../helpers/config.ts'
import { collectLog } from '../helpers/log.ts'
import { startReceiver, type WebhookReceiver } from '../helpers/webhook-receiver.ts'

// Nothing else that is written down looks like these.
const password = 'correct hOrSe bAtTeRy sTaPlE'
const newPassword = 'another hOrSe bAtTeRy sTaPlE'
const wrongPassword = 'wrong hOrSe bAtTeRy sTaPlE'
const phones = ['+14155552671', '+447911123456', '+4915112345678']

let folder: string
let receiver: WebhookReceiver
/** Every secret that was ever given out or taken, by what it is. */
const secrets = new Map<string, string>()
const webhookSecrets = new Set<string>()
const codes = new Set<string>()
const refusals: Array<{ status: number; text: string }> = []
let calls = 0
let logText = ''
let files: Array<{ path: string; bytes: Buffer }> = []

const listFiles = (path: string): string[] =>
  readdirSync(path, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? listFiles(join(path, entry.name)) : [join(path, entry.name)],
  )

type Answer = { status: number; json: { data: Record<string, string> } & Record<string, string> }

/** A life from the first start to the last stop, with all that can go wrong in between. */
async function live() {
  receiver = await startReceiver()
  const log = collectLog('json', 'debug')
  const config = configOf(
    loadEnv({
      OTPD_DATA_DIR: folder,
      OTPD_LISTEN: '127.0.0.1:0',
      OTPD_LOG_LEVEL: 'debug',
      OTPD_WEBHOOK_ALLOW: '127.0.0.1',
      OTPD_SEND_PER_MINUTE: '0',
      OTPD_VERIFY_PER_MINUTE: '0',
    }),
  )
  const server = await startServer(config, { log: log.log, version: '0.0.0-test' })

  async function call(
    method: string,
    path: string,
    headers: Record<string, string>,
    body?: string | object,
  ): Promise<Answer> {
    calls += 1
    const isForm = body instanceof URLSearchParams
    const response = await fetch(server.url + path, {
      method,
      headers: { ...(body !== undefined && !isForm && { 'content-type': 'application/json' }), ...headers },
      ...(body !== undefined && { body: isForm || typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    if (response.status >= 400) refusals.push({ status: response.status, text })
    return { status: response.status, json: JSON.parse(text) }
  }

  const grant = async (name: string, form: Record<string, string>) => {
    const { json } = await call('POST', '/v1/auth/token', {}, new URLSearchParams(form))
    for (const kind of ['id_token', 'refresh_token']) {
      const token = json[kind]
      if (token !== undefined) secrets.set(`${kind} of ${name}`, token)
    }
    return json
  }

  const keep = (name: string, value: string | undefined) => {
    if (value === undefined) throw new Error(`${name} was not given out`)
    secrets.set(name, value)
    if (value.startsWith('whsec_')) webhookSecrets.add(value)
    return value
  }

  // The account, in every way.
  const setupToken = keep('setup token', server.setupToken?.token)
  for (const one of [password, newPassword, wrongPassword]) secrets.set(one, one)
  await grant('the first login', {
    grant_type: 'urn:otpd:setup-token',
    setup_token: setupToken,
    email: 'ada@example.com',
    password,
    name: 'Ada',
  })
  await grant('the setup token again', {
    grant_type: 'urn:otpd:setup-token',
    setup_token: setupToken,
    email: 'eve@example.com',
    password,
  })
  await grant('a wrong password', {
    grant_type: 'password',
    username: 'ada@example.com',
    password: wrongPassword,
  })
  const login = await grant('a login', { grant_type: 'password', username: 'ada@example.com', password })
  const refreshed = await grant('a refresh', {
    grant_type: 'refresh_token',
    refresh_token: login['refresh_token'] ?? '',
  })
  await call('POST', '/v1/auth/revoke', {}, new URLSearchParams({ token: refreshed['refresh_token'] ?? '' }))
  await grant('a revoked session', {
    grant_type: 'refresh_token',
    refresh_token: refreshed['refresh_token'] ?? '',
  })
  const bearer = { authorization: `Bearer ${login['id_token']}` }

  // Two applications, one project, every rotation.
  const project = await call('POST', '/v1/projects', bearer, { name: 'Shop' })
  const credentialsOf = async (environment: string) => {
    const { json } = await call(
      'POST',
      '/v1/applications',
      { ...bearer, 'idempotency-key': environment },
      {
        name: 'Web',
        projectId: project.json.data['id'],
        environment,
      },
    )
    await call(
      'POST',
      '/v1/applications',
      { ...bearer, 'idempotency-key': environment },
      {
        name: 'Web',
        projectId: project.json.data['id'],
        environment,
      },
    )
    for (const kind of ['clientSecret', 'apiKey', 'webhookSecret'])
      keep(`${environment} ${kind}`, json.data[kind])
    return json.data
  }
  const rotated = async (id: string | undefined, type: string) => {
    const { json } = await call('POST', `/v1/applications/${id}/rotate/${type}`, bearer)
    return keep(`rotated ${type} of ${id}`, json.data['value'])
  }
  const test = await credentialsOf('test')
  const live = await credentialsOf('live')
  await call('GET', `/v1/applications/${live['id']}/webhook-secret`, bearer)
  const headers = {
    'x-client-id': live['clientId'] ?? '',
    'x-client-secret': await rotated(live['id'], 'secret'),
    'x-api-key': await rotated(live['id'], 'api'),
  }
  await rotated(live['id'], 'webhook_secret')
  const webhook = await call('POST', '/v1/webhooks', bearer, {
    appId: live['id'],
    url: `${receiver.url}/hook?token=qUeRyToKeN`,
    events: ['*'],
  })
  await call('POST', `/v1/webhooks/${webhook.json.data['id']}/test`, bearer)

  // Codes: sent, repeated, resent, wrong, right, canceled.
  for (const phone of phones) {
    const sent = await call(
      'POST',
      '/v1/otp/send',
      { ...headers, 'idempotency-key': phone },
      { phone, metadata: { note: 'hello' } },
    )
    await call(
      'POST',
      '/v1/otp/send',
      { ...headers, 'idempotency-key': phone },
      { phone, metadata: { note: 'hello' } },
    )
    await call('POST', '/v1/otp/send', { ...headers, 'idempotency-key': phone }, { phone, locale: 'de' })
    const { requestId } = sent.json.data
    const inbox: unknown = (await call('GET', '/v1/inbox', bearer)).json.data
    const [newest] = Array.isArray(inbox) ? inbox : []
    codes.add(String(newest.code))
    await call('POST', '/v1/otp/resend', headers, { requestId })
    await call('POST', '/v1/otp/verify', headers, {
      requestId,
      code: newest.code === '000000' ? '000001' : '000000',
    })
    await call('POST', '/v1/otp/verify', headers, { requestId, code: newest.code })
    await call('POST', '/v1/otp/verify', headers, { requestId, code: newest.code })
    await call('GET', `/v1/users/${encodeURIComponent(phone)}`, { 'x-api-key': headers['x-api-key'] })
    await call('GET', `/v1/users/${phone.slice(1)}`, bearer)
    const other = await call('POST', '/v1/otp/send', headers, { phone })
    await call('POST', '/v1/otp/cancel', headers, { requestId: other.json.data['requestId'] })
  }
  const testHeaders = {
    'x-client-id': test['clientId'] ?? '',
    'x-client-secret': test['clientSecret'] ?? '',
    'x-api-key': test['apiKey'] ?? '',
  }
  const sentInTest = await call('POST', '/v1/otp/send', testHeaders, { phone: phones[0] })
  codes.add(sentInTest.json.data['code'] ?? '')

  // Every secret where it does not belong.
  for (const secret of [...secrets.values(), ...codes, ...phones]) {
    const there = encodeURIComponent(secret)
    await call('GET', `/v1/projects/${there}`, bearer)
    await call('GET', `/v1/${there}`, {})
    await call('GET', `/v1/projects?cursor=${there}`, bearer)
    await call('GET', `/v1/projects?${there}=1`, bearer)
    await call('GET', `/v1/otp?appId=${there}&x=${there}`, bearer)
    await call('PUT', `/v1/users/${there}?x=${there}`, {})
    await call('GET', '/v1/projects', { authorization: `Bearer ${secret}` })
    await call('GET', '/v1/projects', { authorization: secret })
    await call('POST', '/v1/otp/send', { ...headers, 'x-api-key': secret }, { phone: secret })
    await call('POST', '/v1/otp/send', headers, { phone: secret, [secret]: secret })
    await call('POST', '/v1/otp/send', headers, `{"phone":"${secret}"`)
    await call('POST', '/v1/otp/verify', headers, { requestId: secret, code: secret })
    await call(
      'POST',
      '/v1/projects',
      { ...bearer, 'idempotency-key': `"${secret}` },
      { name: ['x', secret] },
    )
    await call('POST', '/v1/auth/token', {}, new URLSearchParams({ grant_type: secret, [secret]: secret }))
    await call('POST', '/v1/webhooks', bearer, {
      appId: secret,
      url: `https://${there}@x.example/`,
      events: [secret],
    })
  }
  await call('POST', '/v1/auth/password', bearer, { currentPassword: wrongPassword, newPassword })
  await call('POST', '/v1/auth/password', bearer, { currentPassword: password, newPassword })

  await server.stop()
  logText = await log.text()
  secrets.set('master key', readFileSync(dataFiles(folder).masterKey, 'utf8').trim())
  const { masterKey, setupToken: spent } = dataFiles(folder)
  files = listFiles(folder)
    .filter((path) => path !== masterKey && path !== spent)
    .map((path) => ({ path, bytes: readFileSync(path) }))
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'otpd-secrets-'))
  await live()
}, 60_000)
afterAll(() => {
  receiver.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** A code on its own, not six digits of a longer number. */
const holdsCode = (text: string, code: string) =>
  new RegExp(`(?<![0-9A-Za-z])${code}(?![0-9A-Za-z])`).test(text)

/** The forms in which something could be written down. */
const formsOf = (secret: string) => [
  secret,
  encodeURIComponent(secret),
  Buffer.from(secret).toString('base64').replace(/=+$/, '').slice(0, -1),
  // Of a credential, what follows its prefix.
  secret.replace(/^(ph_(live|test)_\w+_|whsec_|st_|rt_)/, ''),
]

test('there was a life to look at', () => {
  expect(secrets.size).toBeGreaterThanOrEqual(18)
  expect(codes.size).toBeGreaterThanOrEqual(3)
  expect(refusals.length).toBeGreaterThan(300)
  expect(receiver.received.length).toBeGreaterThan(0)
  expect(files.map(({ path }) => path)).toContain(dataFiles(folder).database)
  expect(files.reduce((sum, { bytes }) => sum + bytes.length, 0)).toBeGreaterThan(50_000)
})

describe('no secret stands', () => {
  test('in the log, at its most talkative', () => {
    const lines = logText
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines.filter(({ msg }) => msg === 'request')).toHaveLength(calls)
    expect(lines.filter(({ level }) => level === 'error')).toEqual([])
    const found = [...secrets].filter(([, secret]) => formsOf(secret).some((form) => logText.includes(form)))
    expect(found.map(([name]) => name)).toEqual([])
    expect([...codes].filter((code) => holdsCode(logText, code))).toEqual([])
    expect(logText).not.toContain('qUeRyToKeN')
  })

  test('in the answer to a call that was refused', () => {
    const everything = refusals.map(({ text }) => text).join('\n')
    const found = [...secrets].filter(([, secret]) =>
      formsOf(secret).some((form) => everything.includes(form)),
    )
    expect(found.map(([name]) => name)).toEqual([])
    expect([...codes].filter((code) => holdsCode(everything, code))).toEqual([])
    expect(phones.filter((phone) => everything.includes(phone.slice(1)))).toEqual([])
  })

  test('in a file, but for the key and the spent setup token in their own, and the secret that signs webhooks', () => {
    for (const { path, bytes } of files) {
      const text = bytes.toString('latin1')
      const found = [...secrets].filter(
        ([, secret]) => !webhookSecrets.has(secret) && formsOf(secret).some((form) => text.includes(form)),
      )
      expect({ path, found: found.map(([name]) => name) }).toEqual({ path, found: [] })
      expect([...codes].filter((code) => holdsCode(text, code))).toEqual([])
    }
    // Whoever may not enter the directory reads none of them.
    expect(statSync(folder).mode & 0o077).toBe(0)
    const database = files.map(({ bytes }) => bytes.toString('latin1')).join('')
    expect([...webhookSecrets].some((secret) => database.includes(secret))).toBe(true)
  })
})

test('no phone number stands in the log', () => {
  for (const phone of phones) {
    expect(logText).not.toContain(phone.slice(1))
    expect(logText).not.toContain(phone.slice(-8))
  }
})
