import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import type { RunningServer } from '../helpers/binary.ts'
import { logIn, type TestApp } from '../helpers/webhook-client.ts'
import { watchHealth } from './calls.ts'
import { checkFile, checkRequests, checkInvariants } from './database-checks.ts'
import type { FaultFamily, Trial } from './family.ts'
import { createLedger, type Ledger } from './ledger.ts'
import { startLoad } from './load.ts'
import { makeHome, startServerAt, type Home } from './server.ts'
import { buildShim, createShim, errno, type Shim } from './disk-shim.ts'

const slowDisks = [
  { delayMs: 1, connections: 64 },
  { delayMs: 50, connections: 256 },
]
/** Limit from the first failing sync to the exit of the process. */
const endsMsMax = 1_000

type ServerUnderTest = { home: Home; shim: Shim; server: RunningServer; apps: TestApp[]; ledger: Ledger }

export const slow: FaultFamily = {
  name: 'slow',
  description: 'a disk that syncs slowly, and one that fails to sync',
  counts: { seconds: { full: 10, short: 1 }, failures: { full: 20, short: 2 } },
  async run(trial) {
    const library = buildShim(trial.folder)
    for (const { delayMs, connections } of slowDisks) {
      const underTest = await startUnderTest(trial, library, `slow-${delayMs}`)
      await trySlow(trial, underTest, delayMs, connections)
    }
    await tryFailures(trial, library)
  },
}

async function startUnderTest(trial: Trial, library: string, name: string): Promise<ServerUnderTest> {
  const home = makeHome(trial, name)
  const shim = createShim(library, trial.folder, home.dataDir)
  const server = await startServerAt(home, shim.env())
  try {
    const client = await logIn(server.url)
    const apps = [await client.createApplication(), await client.createApplication()]
    return { home, shim, server, apps, ledger: createLedger() }
  } catch (error) {
    await server.stop('SIGKILL')
    throw error
  }
}

async function trySlow(trial: Trial, underTest: ServerUnderTest, delayMs: number, connections: number) {
  const { server, shim, apps, ledger } = underTest
  const stopWatch = watchHealth(server.url)
  shim.set('syncDelayUs', delayMs * 1000)
  const startedAt = performance.now()
  const load = startLoad({ url: server.url, apps, ledger, random: trial.random, connections })
  await Bun.sleep(trial.count('seconds') * 1000)
  await load.stop()
  const seconds = (performance.now() - startedAt) / 1000
  const health = await stopWatch()
  await server.stop('SIGKILL')
  shim.close()
  const refused = [...ledger.unexpectedAnswers].map(([kind, count]) => `${count} answers were ${kind}`)
  const unanswered = ledger.count.unanswered > 0 ? [`${ledger.count.unanswered} calls had no answer`] : []
  const failed = health.failed > 0 ? [`${health.failed} of ${health.requests} health checks failed`] : []
  trial.report({
    scenario: `each sync takes ${delayMs} ms more, ${connections} connections`,
    guarantee: 'every call is answered, none refused, nothing acknowledged is lost',
    figures: {
      acknowledged: ledger.count.acknowledged,
      'a second': Math.round(ledger.count.acknowledged / seconds),
      'health p99 ms': Math.round(health.p99Ms),
    },
    violations: [
      ...ledger.violations,
      ...refused,
      ...unanswered,
      ...failed,
      ...(await restartAndCheck(underTest)),
    ],
  })
}

async function tryFailures(trial: Trial, library: string) {
  const violations: string[] = []
  const endsMs: number[] = []
  let acknowledged = 0
  for (let i = 0; i < trial.count('failures'); i++) {
    const underTest = await startUnderTest(trial, library, `failing-${i}`)
    const { server, shim, apps, ledger } = underTest
    const load = startLoad({ url: server.url, apps, ledger, random: trial.random, connections: 32 })
    await Bun.sleep(200 + trial.random() * 300)
    shim.set('syncErrno', errno.EIO)
    const failedAt = performance.now()
    const exitCode = await Promise.race([server.exited, Bun.sleep(trial.allowMs(5_000))])
    endsMs.push(performance.now() - failedAt)
    if (exitCode === undefined) violations.push('it did not end')
    if (exitCode === 0) violations.push('it exited with 0 despite the failure')
    await server.stop('SIGKILL')
    await load.ended
    shim.close()
    acknowledged += ledger.count.acknowledged
    violations.push(...ledger.violations, ...(await restartAndCheck(underTest)))
  }
  const longestMs = Math.max(0, ...endsMs)
  if (longestMs > trial.allowMs(endsMsMax)) violations.push(`it took ${Math.round(longestMs)} ms to end`)
  trial.report({
    scenario: `every sync fails with EIO, ${endsMs.length} times`,
    guarantee: `the server exits within ${endsMsMax} ms, and the next start has everything that was acknowledged`,
    figures: { acknowledged, 'longest ms': Math.round(longestMs) },
    violations,
  })
}

/** Starts the server on a working disk. @returns what is missing */
async function restartAndCheck({ home, ledger }: ServerUnderTest): Promise<string[]> {
  const server = await startServerAt(home)
  const database = new Database(join(home.dataDir, 'otpd.db'), { readonly: true })
  try {
    const found = [checkFile(database, 'integrity_check'), checkRequests(database, ledger.requests.values())]
    return [...found.flat(), ...checkInvariants(database)]
  } finally {
    database.close()
    await server.stop('SIGKILL')
  }
}
