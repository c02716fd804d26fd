import { chmodSync, chownSync, cpSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { binaryPath } from '../helpers/binary.ts'
import { logIn, sendOtp } from '../helpers/webhook-client.ts'
import { newPhone, violationUnless } from './calls.ts'
import type { FaultFamily, Trial } from './family.ts'
import { refusalCases, type Refusal } from './refusal-cases.ts'
import { makeHome, startServerAt, type Home } from './server.ts'

/** Result of one start. */
type StartResult = { exitCode: number | null; ms: number; stderr: string }

const startMsMax = 2_000
const nobodyId = 65_534

export const refusals: FaultFamily = {
  name: 'refusals',
  description: 'starts that must be refused',
  counts: { cuts: { full: 20, short: 2 } },
  async run(trial) {
    const template = await makeTemplate(trial)
    const repeats = trial.count('cuts')
    for (const refusal of refusalCases) {
      const times = refusal.scenario.includes('random') ? repeats : 1
      const violations: string[] = []
      const starts: StartResult[] = []
      for (let i = 0; i < times; i++) {
        const attempt = await tryRefusal(trial, template, refusal)
        starts.push(attempt.start)
        violations.push(...attempt.violations)
      }
      trial.report({
        scenario: refusal.scenario + (times > 1 ? `, ${times} times` : ''),
        guarantee: 'exit code 9 within 2 s, the reason and a remedy, no file touched',
        figures: { longestMs: Math.max(...starts.map(({ ms }) => ms)), said: firstStderrLine(starts.at(-1)) },
        violations,
      })
    }
  },
}

/** Creates a data directory that was in use and cleanly closed. */
async function makeTemplate(trial: Trial): Promise<Home> {
  const serverHome = makeHome(trial, 'template')
  const server = await startServerAt(serverHome)
  const app = await (await logIn(server.url)).createApplication()
  for (let i = 0; i < 50; i++) await sendOtp(server.url, app, newPhone())
  await server.stop()
  return serverHome
}

let homes = 0

async function tryRefusal(trial: Trial, template: Home, refusal: Refusal) {
  const serverHome = makeHome(trial, `refused-${homes++}`)
  cpSync(template.dataDir, serverHome.dataDir, { recursive: true })
  serverHome.env['OTPD_LISTEN'] = '127.0.0.1:0'
  if (refusal.as === 'nobody') giveToNobody(trial.folder, serverHome.home)
  const cleanup = await refusal.corrupt(serverHome, trial)
  const before = fingerprint(serverHome.home)
  const start = await startOnce(serverHome, refusal)
  const after = fingerprint(serverHome.home)
  await cleanup?.()
  const changed = [...new Set([...before.keys(), ...after.keys()])].filter(
    (path) => before.get(path) !== after.get(path) && !(cleanup && /-(wal|shm)$|\.lock/.test(path)),
  )
  return {
    start,
    violations: [
      ...violationUnless(
        start.exitCode === 9,
        `it ended with ${start.exitCode ?? 'a timeout'}: ${start.stderr.slice(0, 300)}`,
      ),
      ...violationUnless(start.ms <= trial.allowMs(startMsMax), `it took ${start.ms} ms`),
      ...violationUnless(changed.length === 0, `it changed ${changed.join(', ')}`),
      ...violationUnless(start.stderr.trim().split('\n').length >= 2, `no remedy: ${start.stderr}`),
      ...violationUnless(!/\n\s+at /.test(start.stderr), `a stack trace: ${start.stderr.slice(0, 300)}`),
    ],
  }
}

/** Gives a home to an unprivileged user, and makes the folders above it accessible. */
function giveToNobody(folder: string, home: string): void {
  chmodSync(folder, 0o711)
  const chownTree = (path: string) => {
    chownSync(path, nobodyId, nobodyId)
    if (statSync(path).isDirectory()) for (const name of readdirSync(path)) chownTree(join(path, name))
  }
  chownTree(home)
}

async function startOnce(serverHome: Home, { as, args = [] }: Refusal): Promise<StartResult> {
  const identity = ['setpriv', `--reuid=${nobodyId}`, `--regid=${nobodyId}`, '--clear-groups']
  const prefix = as === 'nobody' && process.getuid?.() === 0 ? identity : []
  const startedAt = performance.now()
  const child = Bun.spawn([...prefix, binaryPath, 'serve', '--config', serverHome.config, ...args], {
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: serverHome.home,
      OTPD_DATA_DIR: serverHome.dataDir,
      ...serverHome.env,
    },
    cwd: serverHome.home,
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

/** Maps every file below the folder to its content and permissions. */
function fingerprint(folder: string): Map<string, string> {
  const fingerprints = new Map<string, string>()
  const visit = (path: string, name: string) => {
    const { mode } = statSync(path)
    if (!statSync(path).isDirectory()) {
      fingerprints.set(name, `${mode} ${Bun.CryptoHasher.hash('sha256', readFileSync(path), 'hex')}`)
      return
    }
    for (const entry of readdirSync(path)) visit(join(path, entry), name === '' ? entry : `${name}/${entry}`)
  }
  if (existsSync(folder)) visit(folder, '')
  return fingerprints
}

const firstStderrLine = (start: StartResult | undefined) =>
  `"${
    start?.stderr
      .trim()
      .split('\n')[0]
      ?.replace(/\/tmp\/\S*\//, '…/') ?? ''
  }"`
