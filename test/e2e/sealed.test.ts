import { afterAll, beforeAll, expect, test } from 'bun:test'
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startServer, type RunningServer } from '../helpers/binary.ts'
import { findTraces } from '../helpers/traces.ts'
import { logIn, makeServerHome, type TestApp, type WebhookClient } from '../helpers/webhook-client.ts'
import { startReceiver, type WebhookReceiver } from '../helpers/webhook-receiver.ts'

// A whole life on the compiled binary, whose files are searched for everything that it was told in confidence.

const phones = ['+14155550171', '+447911123456', '+4915112345678', '+33612345678']
const erasedPhone = '+31612345678'
const clientIps = ['203.0.113.171', '2001:db8:1234:5678::9abc']
const metadata = { order: 'order-of-metadata-4711', note: 'straße der metadaten' }
const headerValue = 'Bearer credential-of-the-receiver'
const changedHeaderValue = 'Bearer changed-credential'

let server: RunningServer
let client: WebhookClient
let receiver: WebhookReceiver
let secrets: string[]
const sendPerMinute = 20
const homeOptions = makeServerHome({ sendPerMinute })
const folder = mkdtempSync(join(tmpdir(), 'otpd-sealed-'))

beforeAll(async () => {
  // Repeats what it receives, as many receivers do, so that the response is personal data too.
  receiver = await startReceiver(({ body }) => new Response(body))
  server = await startServer(homeOptions)
  client = await logIn(server.url)
})
afterAll(async () => {
  await server.stop()
  await receiver.stop()
  rmSync(homeOptions.home, { recursive: true, force: true })
  rmSync(folder, { recursive: true, force: true })
})

async function post<T>(app: TestApp, path: string, body: object, headers = {}) {
  const response = await fetch(`${server.url}/v1/otp/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...app.headers, ...headers },
    body: JSON.stringify(body),
  })
  const { data } = (await response.json()) as { data: T }
  return { status: response.status, data }
}

/** Reads the code of a message that stayed in the inbox. */
async function readCode(requestId: string): Promise<string> {
  const messages = await client.call<Array<{ requestId: string; code: string }>>('GET', '/v1/inbox')
  return messages.find((message) => message.requestId === requestId)?.code ?? ''
}

async function live() {
  const app = await client.createApplication('Shop', 'live')
  const testing = await client.createApplication('Test', 'test')
  const secretPath = `/v1/applications/${app.id}/rotate/webhook_secret`
  const { value: rotatedSecret } = await client.call<{ value: string }>('POST', secretPath)
  const { id } = await client.createEndpoint(app, receiver.url, ['*'], {
    headers: { Authorization: headerValue },
  })
  await client.call('PATCH', `/v1/webhooks/${id}`, { headers: { 'x-changed': changedHeaderValue } })
  for (const [index, phone] of phones.entries()) {
    const as = index === 3 ? testing : app
    const body = { phone, metadata, clientIp: clientIps[index % 2] }
    const { data } = await post<{ requestId: string }>(as, 'send', body, {
      'idempotency-key': `key-${index}`,
    })
    const replayed = await post<{ requestId: string }>(as, 'send', body, {
      'idempotency-key': `key-${index}`,
    })
    expect(replayed.data.requestId).toBe(data.requestId)
    await post(as, 'verify', { requestId: data.requestId, code: '000000' })
    if (index === 1) await post(as, 'cancel', { requestId: data.requestId })
    if (index !== 0) continue
    const code = await readCode(data.requestId)
    expect((await post(as, 'verify', { requestId: data.requestId, code })).status).toBe(200)
  }
  await post(app, 'send', { phone: erasedPhone, metadata, clientIp: clientIps[0] })
  await receiver.waitForCount(6)
  const erased = await server.otpd(['admin', 'erase', erasedPhone, '--yes', '--data-dir', server.dataDir])
  expect(erased.exitCode).toBe(0)
  // Leaves its writes in the write-ahead log.
  await post(app, 'send', { phone: phones[2], metadata, clientIp: clientIps[1] })
  const webhookSecrets = [app.webhookSecret, testing.webhookSecret, rotatedSecret]
  const values = [...phones, erasedPhone, ...clientIps, ...Object.values(metadata), headerValue]
  return [...values, changedHeaderValue, ...webhookSecrets].flatMap((value) => [
    value,
    ...(/^(\+|whsec_|Bearer )/.test(value) ? [value.replace(/^(\+|whsec_|Bearer )/, '')] : []),
  ])
}

const files = () => {
  const database = join(server.dataDir, 'otpd.db')
  return [database, `${database}-wal`].filter(existsSync)
}

test('a life leaves no phone, address, metadata, secret or header in the files or a backup', async () => {
  secrets = await live()
  const file = join(folder, 'backup.db')
  expect((await server.otpd(['backup', file, '--data-dir', server.dataDir])).exitCode).toBe(0)
  for (const path of [...files(), file]) expect([path, findTraces(path, secrets)]).toEqual([path, []])
  // The search finds what is there: ids are not secret.
  const [{ id = '' } = {}] = await client.call<Array<{ id?: string }>>('GET', '/v1/webhooks')
  expect(findTraces(file, [id])).toEqual([id])
})

test('the API still answers all of it', async () => {
  const [requests, log] = await Promise.all(
    ['/v1/otp', '/v1/logs?limit=200'].map((path) =>
      client.call<Array<{ phone: string | null }>>('GET', path),
    ),
  )
  for (const rows of [requests, log]) {
    const listed = new Set(rows?.map(({ phone }) => phone))
    for (const phone of [...phones, 'erased']) expect(listed).toContain(phone)
  }
  const delivered = receiver.received.map(({ body }) => body).join()
  for (const phone of phones.slice(0, 3)) expect(delivered).toContain(phone)
  expect(delivered).toContain(metadata.note)
  expect(receiver.received.at(-1)?.headers).toMatchObject({
    authorization: headerValue,
    'x-changed': changedHeaderValue,
  })
})

test('doctor finds nothing plain, and names a value that was changed', async () => {
  const copy = join(folder, 'copy')
  // The log entry of a refused send has no request if the phone never had one.
  const app = await client.createApplication('Refused', 'live')
  const statuses: number[] = []
  for (let number = 0; number <= sendPerMinute; number++)
    statuses.push((await post(app, 'send', { phone: `+14155550${200 + number}` })).status)
  expect(statuses.slice(-2)).toEqual([201, 429])
  await server.stop()
  const doctor = async (dataDir: string) =>
    (await server.otpd(['doctor', '--json', '--data-dir', dataDir, '--server', 'http://127.0.0.1:1'])).stdout
  expect(await doctor(server.dataDir)).toContain('all stored data is encrypted with the newest key')
  const { Database } = await import('bun:sqlite')
  const database = join(server.dataDir, 'otpd.db')
  copyFileSync(database, copy)
  const connection = new Database(database)
  connection.run(`update otp_requests set phone = substr(phone, 1, 10) || 'AAAA' || substr(phone, 15)`)
  connection.close()
  expect(await doctor(server.dataDir)).toContain('stored values cannot be decrypted: otp_requests.phone otp_')
  copyFileSync(copy, database)
  server = await startServer(homeOptions)
})
