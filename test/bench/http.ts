import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { encodeRequest, run, type Load } from './load.ts'

// Sends and verifications of the compiled binary over HTTP beside a bare Bun server, in one run. Where there are two
// cores the servers have one and the load the other.

const binary = resolve(import.meta.dir, '../../dist/otpd')
const connections = 64
const applications = 200
const perRound = 20_000
const rounds = Number(process.argv[2] ?? 5)

const pinned = Bun.which('taskset') !== null && navigator.hardwareConcurrency > 1
const onCore = (core: number, command: string[]) =>
  pinned ? ['taskset', '-c', String(core), ...command] : command

type Server = { port: number; pid: number; stop(): Promise<void> }

async function firstLine(child: Bun.Subprocess<'ignore', 'pipe', 'inherit'>): Promise<string> {
  let text = ''
  for await (const chunk of child.stdout) {
    text += Buffer.from(chunk).toString()
    if (text.includes('\n')) break
  }
  return text
}

function start(command: string[], env: Record<string, string> = {}) {
  const child = Bun.spawn(onCore(0, command), {
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const stop = async () => {
    child.kill()
    await child.exited
  }
  return { child, stop }
}

async function startBare(): Promise<Server> {
  const { child, stop } = start([process.execPath, join(import.meta.dir, 'bare.ts')])
  return { port: Number(await firstLine(child)), pid: child.pid, stop }
}

async function startOtpd(folder: string): Promise<Server> {
  const password = join(folder, 'password')
  writeFileSync(password, 'correct horse battery', { mode: 0o600 })
  const config = join(folder, 'otpd.toml')
  writeFileSync(
    config,
    '[plans.free]\nprojects = 10\napplications = 1000\nsendPerMinute = 0\nverifyPerMinute = 0\n',
  )
  const { child, stop } = start([binary, 'serve', '--config', config, '--log-format', 'json'], {
    HOME: folder,
    OTPD_DATA_DIR: join(folder, 'data'),
    OTPD_LISTEN: '127.0.0.1:0',
    OTPD_ADMIN_EMAIL: 'ada@example.com',
    OTPD_ADMIN_PASSWORD_FILE: password,
    OTPD_PHONE_SEND_BUDGET: 'monitor',
  })
  const ready: { url: string } = JSON.parse(await firstLine(child))
  return { port: Number(new URL(ready.url).port), pid: child.pid, stop }
}

async function call<T>(port: number, path: string, init: RequestInit): Promise<T> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, init)
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  // Of a server of ours, whose answers have the shape that the caller names.
  return (await response.json()) as T
}

/** Test applications: their answers carry the code, so that it can be verified. */
async function createApplications(port: number): Promise<Record<string, string>[]> {
  const form = { grant_type: 'password', username: 'ada@example.com', password: 'correct horse battery' }
  const tokens = await call<{ id_token: string }>(port, '/v1/auth/token', {
    method: 'POST',
    body: new URLSearchParams(form),
  })
  const headers = { authorization: `Bearer ${tokens.id_token}`, 'content-type': 'application/json' }
  const create = <T>(path: string, body: object) =>
    call<{ data: T }>(port, path, { method: 'POST', headers, body: JSON.stringify(body) })
  const project = await create<{ id: string }>('/v1/projects', { name: 'bench' })
  const made: Record<string, string>[] = []
  for (let i = 0; i < applications; i++) {
    const { data } = await create<{ clientId: string; clientSecret: string; apiKey: string }>(
      '/v1/applications',
      { name: `bench ${i}`, projectId: project.data.id, environment: 'test' },
    )
    made.push({
      'x-client-id': data.clientId,
      'x-client-secret': data.clientSecret,
      'x-api-key': data.apiKey,
    })
  }
  return made
}

const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
const results: Record<string, Load[]> = { bare: [], send: [], verify: [] }
const keep = (name: keyof typeof results, load: Load, status: number) => {
  if (load.statuses[status] !== perRound) throw new Error(`${name}: ${JSON.stringify(load.statuses)}`)
  results[name]?.push(load)
}

const folder = mkdtempSync(join(tmpdir(), 'otpd-bench-'))
const bare = await startBare()
const otpd = await startOtpd(folder)
try {
  const credentials = await createApplications(otpd.port)
  const headersOf = (index: number) => credentials[index % applications] ?? {}
  let phone = 0
  for (let round = 0; round <= rounds; round++) {
    const sends = Array.from({ length: perRound }, (_, index) =>
      encodeRequest('/v1/otp/send', headersOf(index), { phone: `+1415${2_000_000 + phone++}` }),
    )
    const plain = await run(bare.port, sends, connections)
    const verifies: Uint8Array[] = []
    const sent = await run(otpd.port, sends, connections, (text, index) => {
      const { data }: { data: { requestId: string; code: string } } = JSON.parse(text)
      verifies.push(
        encodeRequest('/v1/otp/verify', headersOf(index), { requestId: data.requestId, code: data.code }),
      )
    })
    const verified = await run(otpd.port, verifies, connections)
    // The first round warms everything up.
    if (round === 0) continue
    keep('bare', plain, 200)
    keep('send', sent, 201)
    keep('verify', verified, 200)
  }
  const memory = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${otpd.pid}/status`, 'utf8'))?.[1]
  const print = (line: string) => process.stdout.write(`${line}\n`)
  print(`${rounds} rounds of ${perRound} requests, ${connections} connections, medians\n`)
  print('| case | requests/s | share of bare Bun | p50 ms | p99 ms |\n|---|---|---|---|---|')
  for (const [name, loads] of Object.entries(results)) {
    const rate = median(loads.map((load) => load.requestsPerSecond))
    const share = median(
      loads.map((load, i) => load.requestsPerSecond / (results['bare']?.[i]?.requestsPerSecond ?? NaN)),
    )
    const p50 = median(loads.map((load) => load.p50Ms))
    const p99 = median(loads.map((load) => load.p99Ms))
    print(`| ${name} | ${rate.toFixed(0)} | ${share.toFixed(2)} | ${p50.toFixed(1)} | ${p99.toFixed(1)} |`)
  }
  print(`\nmemory of otpd: ${Math.round(Number(memory) / 1024)} MB`)
} finally {
  await otpd.stop()
  await bare.stop()
  rmSync(folder, { recursive: true, force: true })
}
