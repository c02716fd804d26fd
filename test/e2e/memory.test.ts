import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startServer, type RunningServer } from '../helpers/binary.ts'

// A server keeps admissions and checked credentials in memory: neither a kill nor a command of another process may make
// it wrong.

const env = { OTPD_SEND_PER_MINUTE: '3' }
const email = 'ada@example.com'
let home = ''
let server: RunningServer | undefined
afterEach(async () => {
  await server?.stop('SIGKILL')
  rmSync(home, { recursive: true, force: true })
})

async function start(): Promise<RunningServer> {
  server = await startServer({ home, env })
  return server
}

async function createApplication({ otpd, setupToken }: RunningServer) {
  const setup = ['login', '--setup-token', setupToken(), '--email', email, '--password-stdin']
  await otpd(setup, { input: 'correct horse battery' })
  await otpd(['project', 'create', 'shop'])
  const file = join(home, 'app.env')
  await otpd(['app', 'create', 'web', '--project', 'shop', '--env', 'test', '--env-file', file])
  const read = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(readFileSync(file, 'utf8'))?.[1] ?? ''
  const list: { data: { id: string }[] } = JSON.parse((await otpd(['app', 'list', '--json'])).stdout)
  return {
    id: list.data[0]?.id ?? '',
    headers: {
      'content-type': 'application/json',
      'x-client-id': read('OTPD_CLIENT_ID'),
      'x-client-secret': read('OTPD_CLIENT_SECRET'),
      'x-api-key': read('OTPD_API_KEY'),
    },
  }
}

let phones = 0
async function send({ url }: RunningServer, headers: Record<string, string>) {
  const body = JSON.stringify({ phone: `+1415${2_000_000 + phones++}` })
  return (await fetch(`${url}/v1/otp/send`, { method: 'POST', headers, body })).status
}

test('a rate limit holds after kill -9, and a command of another process resets it at once', async () => {
  home = mkdtempSync(join(tmpdir(), 'otpd-memory-'))
  const first = await start()
  const { id, headers } = await createApplication(first)
  const statuses = [await send(first, headers), await send(first, headers), await send(first, headers)]
  expect(statuses).toEqual([201, 201, 201])
  expect(await send(first, headers)).toBe(429)
  await first.stop('SIGKILL')

  const second = await start()
  expect(await send(second, headers)).toBe(429)
  expect((await second.otpd(['admin', 'unlock', id, '--data-dir', second.dataDir])).exitCode).toBe(0)
  expect(await send(second, headers)).toBe(201)
})

test('credentials are refused as soon as a command of another process has disabled the account', async () => {
  home = mkdtempSync(join(tmpdir(), 'otpd-memory-'))
  const running = await start()
  const { otpd, dataDir } = running
  const { headers } = await createApplication(running)
  expect(await send(running, headers)).toBe(201)
  const setStatus = (status: string) => otpd(['admin', status, email, '--yes', '--data-dir', dataDir])
  expect((await setStatus('disable')).exitCode).toBe(0)
  expect(await send(running, headers)).toBe(403)
  expect((await otpd(['admin', 'enable', email, '--data-dir', dataDir])).exitCode).toBe(0)
  expect(await send(running, headers)).toBe(201)
})
