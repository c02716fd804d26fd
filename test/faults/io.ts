import { Database } from 'bun:sqlite'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { logIn, type TestApp } from '../helpers/webhook-client.ts'
import { checkFile, checkRequests, checkInvariants } from './database-checks.ts'
import { encodeRequest, openConnection } from './connection.ts'
import type { FaultFamily, Trial } from './family.ts'
import { createLedger } from './ledger.ts'
import { startLoad } from './load.ts'
import { copyHome, makeHome, startServerAt, type Home } from './server.ts'
import { buildShim, createShim, errno } from './disk-shim.ts'

const acknowledgedPerRun = 100
const connections = 2
const loadMsMax = 5_000
const recoversMsMax = 5_000
const concurrency = 2

type Outcome = 'recovered' | 'ended by itself' | 'did not start' | 'not reached'
type Template = { home: Home; apps: TestApp[] }
type Attempt = { outcome: Outcome; calls: number; acknowledged: number; violations: string[] }

const errors = Object.entries(errno)

export const io: FaultFamily = {
  name: 'io',
  description: 'each write, sync, truncation and deletion of a run fails once',
  counts: { calls: { full: 100, short: 5 } },
  async run(trial) {
    const library = buildShim(trial.folder)
    for (const fresh of [false, true]) {
      const template = await makeTemplate(trial, fresh)
      const measured = await runAttempt(trial, template, library, 0, 0, 'measure')
      const positions = spreadEvenly(measured.calls, trial.count('calls'))
      for (const [name, number] of errors) {
        const outcomes = new Map<Outcome, number>()
        const violations: string[] = []
        let acknowledged = 0
        const pendingPositions = [...positions]
        const work = async () => {
          for (
            let position = pendingPositions.shift();
            position !== undefined;
            position = pendingPositions.shift()
          ) {
            const result = await runAttempt(
              trial,
              template,
              library,
              position,
              number,
              `${name}-${fresh}-${position}`,
            )
            outcomes.set(result.outcome, (outcomes.get(result.outcome) ?? 0) + 1)
            violations.push(...result.violations.map((fault) => `call ${position}: ${fault}`))
            acknowledged += result.acknowledged
          }
        }
        await Promise.all(Array.from({ length: concurrency }, work))
        trial.report({
          scenario: `${name} from ${positions.length} of the ${measured.calls} calls of ${fresh ? 'a first start' : 'a start with load'}`,
          guarantee: 'the server recovers or ends, the next start serves, nothing acknowledged is lost',
          figures: { acknowledged, ...Object.fromEntries(outcomes) },
          violations,
        })
      }
    }
  },
}

/** Spreads positions evenly over the calls, the first and the last included. */
export function spreadEvenly(calls: number, countMax: number): number[] {
  const count = Math.min(calls, countMax)
  return Array.from({ length: count }, (_, i) => 1 + Math.floor((i * (calls - 1)) / Math.max(1, count - 1)))
}

/** Creates the home that each attempt copies. @param fresh leaves it empty, for faults during a first start */
async function makeTemplate(trial: Trial, fresh: boolean): Promise<Template> {
  const home = makeHome(trial, fresh ? 'fresh' : 'used')
  if (fresh) return { home, apps: [] }
  const server = await startServerAt(home)
  try {
    const client = await logIn(server.url)
    return { home, apps: [await client.createApplication(), await client.createApplication()] }
  } finally {
    // SIGKILL leaves a write-ahead log to recover.
    await server.stop('SIGKILL')
  }
}

/** Runs a server with one fault, then starts it again without. */
async function runAttempt(
  trial: Trial,
  template: Template,
  library: string,
  failAt: number,
  failErrno: number,
  name: string,
): Promise<Attempt> {
  const folder = join(trial.folder, `attempt-${name}`)
  const home = copyHome(template.home, folder)
  const shim = createShim(library, folder, home.dataDir)
  shim.set('failErrno', failErrno)
  shim.set('failAt', failAt)
  const { apps } = template
  const ledger = createLedger()
  const { violations } = ledger
  let outcome: Outcome = 'did not start'
  const server = await startServerAt(home, shim.env()).catch((error: unknown) => String(error))
  if (typeof server === 'string') {
    if (server.includes('bug in otpd')) violations.push(`no reason is given: ${server}`)
  } else {
    let ended = false
    void server.exited.then(() => (ended = true))
    const load = startLoad({
      url: server.url,
      apps,
      ledger,
      random: trial.random,
      connections: apps.length && connections,
    })
    const deadline = performance.now() + loadMsMax
    const shouldContinue = () =>
      !ended && ledger.count.acknowledged < acknowledgedPerRun && performance.now() < deadline
    while (apps.length > 0 && shouldContinue()) await Bun.sleep(5)
    await load.stop()
    if (!(await canServe(trial, server.url, apps[0], () => ended)) && !ended)
      violations.push('it neither serves nor ends')
    if (shim.get('failedCall') === 0) outcome = 'not reached'
    else outcome = ended ? 'ended by itself' : 'recovered'
    const exitCode = await server.stop('SIGKILL')
    if (ended && exitCode === 0) violations.push('it exited with 0 despite the failure')
  }
  const calls = shim.get('calls')
  shim.close()
  violations.push(...(await restartAndCheck(trial, home, apps, ledger.requests.values())))
  rmSync(folder, { recursive: true })
  return { outcome, calls, acknowledged: ledger.count.acknowledged, violations }
}

/** Starts the server without a fault and checks its data. @returns what is wrong */
async function restartAndCheck(
  trial: Trial,
  home: Home,
  apps: TestApp[],
  requests: Parameters<typeof checkRequests>[1],
) {
  const server = await startServerAt(home).catch((error: unknown) => String(error))
  if (typeof server === 'string') return [`it does not start again: ${server}`]
  try {
    if (!(await canServe(trial, server.url, apps[0]))) return ['it does not serve after its next start']
    const database = new Database(join(home.dataDir, 'otpd.db'), { readonly: true })
    const checks = [
      checkFile(database, 'integrity_check'),
      checkRequests(database, requests),
      checkInvariants(database),
    ]
    database.close()
    return checks.flat()
  } finally {
    await server.stop('SIGKILL')
  }
}

/** Returns whether a code can be sent or, without an application, whether the readiness probe succeeds. */
async function canServe(
  trial: Trial,
  url: string,
  app: TestApp | undefined,
  hasEnded = () => false,
): Promise<boolean> {
  const call = app
    ? encodeRequest('POST', '/v1/otp/send', app.headers, { phone: '+14155550123' })
    : encodeRequest('GET', '/v1/health/ready', {})
  const deadline = performance.now() + trial.allowMs(recoversMsMax)
  while (performance.now() < deadline && !hasEnded()) {
    const connection = await openConnection(url).catch(() => undefined)
    const response = await connection?.send(call)
    connection?.close()
    if (response && response.status < 300) return true
    await Bun.sleep(50)
  }
  return false
}
