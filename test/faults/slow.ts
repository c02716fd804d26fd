import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import type { RunningServer } from '../helpers/binary.ts'
import { logIn, type TestApp } from '../helpers/webhook-client.ts'
import { watchHealth } from './calls.ts'
import { checkFile, checkRequests, checkSums } from './check.ts'
import type { Family, Trial } from './family.ts'
import { createLedger, type Ledger } from './ledger.ts'
import { startLoad } from './load.ts'
import { makeHome, startAt, type Home } from './server.ts'
import { buildShim, createShim, errno, type Shim } from './shim.ts'

const slownesses = [
  { delayMs: 1, connections: 64 },
  { delayMs: 50, connections: 256 },
]
/** From the first sync that fails to the end of the process. */
const endsMsMax = 1_000

type Subject = { home: Home; shim: Shim; server: RunningServer; apps: TestApp[]; ledger: Ledger }

export const slow: Family = {
  name: 'slow',
  about: 'a disk that takes long to sync, and one that fails to',
  counts: { seconds: { full: 10, short: 1 }, failures: { full: 20, short: 2 } },
  async run(trial) {
    const library = buildShim(trial.folder)
    for (const { delayMs, connections } of slownesses) {
      const subject = await makeSubject(trial, library, `slow-${delayMs}`)
      await trySlow(trial, subject, delayMs, connections)
    }
    await tryFailures(trial, library)
  },
}

async function makeSubject(trial: Trial, library: string, name: string): Promise<Subject> {
  const home = makeHome(trial, name)
  const shim = createShim(library, trial.folder, home.dataDir)
  const server = await startAt(home, shim.env())
  try {
    const client = await logIn(server.url)
    const apps = [await client.createApplication(), await client.createApplication()]
    return { home, shim, server, apps, ledger: createLedger() }
  } catch (error) {
    await server.stop('SIGKILL')
    throw error
  }
}

async function trySlow(trial: Trial, subject: Subject, delayMs: number, connections: number) {
  const { server, shim, apps, ledger } = subject
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
  const refused = [...ledger.others].map(([kind, count]) => `${count} answers were ${kind}`)
  const unheard = ledger.count.unanswered > 0 ? [`${ledger.count.unanswered} calls had no answer`] : []
  const failed = health.failed > 0 ? [`${health.failed} of ${health.asked} questions for health failed`] : []
  trial.report({
    tried: `each sync takes ${delayMs} ms more, ${connections} connections`,
    promised: 'every call is answered, none refused, nothing acknowledged is lost',
    figures: {
      acknowledged: ledger.count.acknowledged,
      'a second': Math.round(ledger.count.acknowledged / seconds),
      'health p99 ms': Math.round(health.p99Ms),
    },
    broken: [...ledger.broken, ...refused, ...unheard, ...failed, ...(await lookAfter(subject))],
  })
}

async function tryFailures(trial: Trial, library: string) {
  const broken: string[] = []
  const endsMs: number[] = []
  let acknowledged = 0
  for (let i = 0; i < trial.count('failures'); i++) {
    const subject = await makeSubject(trial, library, `failing-${i}`)
    const { server, shim, apps, ledger } = subject
    const load = startLoad({ url: server.url, apps, ledger, random: trial.random, connections: 32 })
    await Bun.sleep(200 + trial.random() * 300)
    shim.set('syncErrno', errno.EIO)
    const failedAt = performance.now()
    const exitCode = await Promise.race([server.exited, Bun.sleep(trial.allowMs(5_000))])
    endsMs.push(performance.now() - failedAt)
    if (exitCode === undefined) broken.push('it did not end')
    if (exitCode === 0) broken.push('it ended as if all were well')
    await server.stop('SIGKILL')
    await load.ended
    shim.close()
    acknowledged += ledger.count.acknowledged
    broken.push(...ledger.broken, ...(await lookAfter(subject)))
  }
  const longestMs = Math.max(0, ...endsMs)
  if (longestMs > trial.allowMs(endsMsMax)) broken.push(`it took ${Math.round(longestMs)} ms to end`)
  trial.report({
    tried: `every sync fails with EIO, ${endsMs.length} times`,
    promised: `the server ends within ${endsMsMax} ms, and everything acknowledged is there at the next start`,
    figures: { acknowledged, 'longest ms': Math.round(longestMs) },
    broken,
  })
}

/** Starts it on a sound disk. @returns what is missing then */
async function lookAfter({ home, ledger }: Subject): Promise<string[]> {
  const server = await startAt(home)
  const database = new Database(join(home.dataDir, 'otpd.db'), { readonly: true })
  try {
    const found = [checkFile(database, 'integrity_check'), checkRequests(database, ledger.requests.values())]
    return [...found.flat(), ...checkSums(database)]
  } finally {
    database.close()
    await server.stop('SIGKILL')
  }
}
