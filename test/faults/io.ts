import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { logIn, type TestApp } from '../helpers/webhook-client.ts'
import { checkFile, checkRequests, checkInvariants } from './database-checks.ts'
import { encodeRequest, openConnection } from './connection.ts'
import type { FaultFamily, Trial } from './family.ts'
import { createLedger } from './ledger.ts'
import { makeHome, startServerAt, type Home } from './server.ts'
import { buildShim, errno } from './disk-shim.ts'
import { runLoad, spreadEvenly, startWithFault, type DiskFault } from './failing-disk.ts'

const loadMax = { acknowledged: 100, ms: 5_000 }
const connections = 2
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
      const noFault = { library, failAt: 0, failErrno: 0 }
      const measured = await runAttempt(trial, template, noFault, `measure-${fresh}`)
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
            const fault = { library, failAt: position, failErrno: number }
            const result = await runAttempt(trial, template, fault, `${name}-${fresh}-${position}`)
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
  fault: DiskFault,
  name: string,
): Promise<Attempt> {
  const { home, server, ...attempt } = await startWithFault(trial, template.home, fault, name)
  const { apps } = template
  const ledger = createLedger()
  const { violations } = ledger
  let outcome: Outcome = 'did not start'
  if (typeof server === 'string') {
    if (server.includes('bug in otpd')) violations.push(`no reason is given: ${server}`)
  } else {
    const max = { ...loadMax, acknowledged: apps.length && loadMax.acknowledged }
    const needs = { apps, ledger, random: trial.random, connections: apps.length && connections }
    const hasEnded = await runLoad(server, needs, max)
    if (!(await canServe(trial, server.url, apps[0], hasEnded)) && !hasEnded())
      violations.push('it neither serves nor ends')
    if (!attempt.isReached()) outcome = 'not reached'
    else outcome = hasEnded() ? 'ended by itself' : 'recovered'
    const exitCode = await server.stop('SIGKILL')
    if (hasEnded() && exitCode === 0) violations.push('it exited with 0 despite the failure')
  }
  const calls = attempt.end()
  violations.push(...(await restartAndCheck(trial, home, apps, ledger.requests.values())))
  attempt.remove()
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
