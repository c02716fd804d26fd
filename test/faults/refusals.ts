import { chmodSync, chownSync, cpSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { binaryPath } from '../helpers/binary.ts'
import { logIn, sendOtp } from '../helpers/webhook-client.ts'
import { newPhone, unless } from './calls.ts'
import type { Family, Trial } from './family.ts'
import { cases, type Refusal } from './refusal-cases.ts'
import { makeHome, startAt, type Home } from './server.ts'

/** What one start came to. */
type Start = { exitCode: number | null; ms: number; stderr: string }

const startMsMax = 2_000
const nobody = 65_534

export const refusals: Family = {
  name: 'refusals',
  about: 'starts that must be refused',
  counts: { cuts: { full: 20, short: 2 } },
  async run(trial) {
    const template = await makeTemplate(trial)
    const repeats = trial.count('cuts')
    for (const refusal of cases) {
      const times = refusal.tried.includes('random') ? repeats : 1
      const broken: string[] = []
      const starts: Start[] = []
      for (let i = 0; i < times; i++) {
        const tried = await tryOne(trial, template, refusal)
        starts.push(tried.start)
        broken.push(...tried.broken)
      }
      trial.report({
        tried: refusal.tried + (times > 1 ? `, ${times} times` : ''),
        promised: 'exit code 9 within 2 s, the reason and a remedy, no file touched',
        figures: { longestMs: Math.max(...starts.map(({ ms }) => ms)), said: said(starts.at(-1)) },
        broken,
      })
    }
  },
}

/** A data directory that was in use and was left in peace. */
async function makeTemplate(trial: Trial): Promise<Home> {
  const at = makeHome(trial, 'template')
  const server = await startAt(at)
  const app = await (await logIn(server.url)).createApplication()
  for (let i = 0; i < 50; i++) await sendOtp(server.url, app, newPhone())
  await server.stop()
  return at
}

let homes = 0

async function tryOne(trial: Trial, template: Home, refusal: Refusal) {
  const at = makeHome(trial, `refused-${homes++}`)
  cpSync(template.dataDir, at.dataDir, { recursive: true })
  at.env['OTPD_LISTEN'] = '127.0.0.1:0'
  if (refusal.as === 'nobody') giveAway(trial.folder, at.home)
  const end = await refusal.harm(at, trial)
  const before = fingerprint(at.home)
  const start = await startOnce(at, refusal)
  const after = fingerprint(at.home)
  await end?.()
  const changed = [...new Set([...before.keys(), ...after.keys()])].filter(
    (path) => before.get(path) !== after.get(path) && !(end && /-(wal|shm)$|\.lock/.test(path)),
  )
  return {
    start,
    broken: [
      ...unless(
        start.exitCode === 9,
        `it ended with ${start.exitCode ?? 'a timeout'}: ${start.stderr.slice(0, 300)}`,
      ),
      ...unless(start.ms <= trial.allowMs(startMsMax), `it took ${start.ms} ms`),
      ...unless(changed.length === 0, `it changed ${changed.join(', ')}`),
      ...unless(start.stderr.trim().split('\n').length >= 2, `no remedy: ${start.stderr}`),
      ...unless(!/\n\s+at /.test(start.stderr), `a stack trace: ${start.stderr.slice(0, 300)}`),
    ],
  }
}

/** To a user without rights, with the way to it open. */
function giveAway(folder: string, home: string): void {
  chmodSync(folder, 0o711)
  const give = (path: string) => {
    chownSync(path, nobody, nobody)
    if (statSync(path).isDirectory()) for (const name of readdirSync(path)) give(join(path, name))
  }
  give(home)
}

async function startOnce(at: Home, { as, args = [] }: Refusal): Promise<Start> {
  const identity = ['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups']
  const prefix = as === 'nobody' && process.getuid?.() === 0 ? identity : []
  const startedAt = performance.now()
  const child = Bun.spawn([...prefix, binaryPath, 'serve', '--config', at.config, ...args], {
    env: { PATH: process.env['PATH'] ?? '', HOME: at.home, OTPD_DATA_DIR: at.dataDir, ...at.env },
    cwd: at.home,
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const timer = setTimeout(() => child.kill('SIGKILL'), 60_000)
  const [stderr, exitCode] = await Promise.all([child.stderr.text(), child.exited])
  clearTimeout(timer)
  return {
    exitCode: child.signalCode === 'SIGKILL' ? null : exitCode,
    ms: Math.round(performance.now() - startedAt),
    stderr,
  }
}

/** Of every file below: its content, rights included. */
function fingerprint(folder: string): Map<string, string> {
  const found = new Map<string, string>()
  const walk = (path: string, name: string) => {
    const { mode } = statSync(path)
    if (!statSync(path).isDirectory()) {
      found.set(name, `${mode} ${Bun.CryptoHasher.hash('sha256', readFileSync(path), 'hex')}`)
      return
    }
    for (const entry of readdirSync(path)) walk(join(path, entry), name === '' ? entry : `${name}/${entry}`)
  }
  if (existsSync(folder)) walk(folder, '')
  return found
}

const said = (start: Start | undefined) =>
  `"${
    start?.stderr
      .trim()
      .split('\n')[0]
      ?.replace(/\/tmp\/\S*\//, '…/') ?? ''
  }"`
