import { Database } from 'bun:sqlite'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { logIn, type TestApp } from '../helpers/webhook-client.ts'
import { checkFile, checkInvariants, checkRequests } from './database-checks.ts'
import { buildShim, createShim, killProcess } from './disk-shim.ts'
import type { FaultFamily, Trial } from './family.ts'
import { spreadEvenly } from './io.ts'
import { createLedger } from './ledger.ts'
import { checkLists } from './list-checks.ts'
import { startLoad } from './load.ts'
import { copyHome, makeHome, startServerAt, type Home } from './server.ts'

/** Requests before the load, so that indexes that are filled in bulk, every 16,384 rows, are filled during it. */
const historyRequests = 16_384 - 150
const historyBatch = 64
const acknowledgedPerRun = 400
const connections = 8
const loadMsMax = 10_000

type Template = { home: Home; apps: TestApp[]; token: string }

export const writes: FaultFamily = {
  name: 'writes',
  description: 'kill -9 before each write, sync and truncation of a load, while lists are indexed in bulk',
  counts: { writes: { full: 100, short: 4 } },
  async run(trial) {
    const library = buildShim(trial.folder)
    const template = await makeTemplate(trial)
    const measured = await runAttempt(trial, template, library, 0)
    const positions = spreadEvenly(measured.calls, trial.count('writes'))
    const violations = [...measured.violations]
    const figures = { 'not reached': 0, acknowledged: measured.acknowledged, 'slowest start ms': 0 }
    for (const position of positions) {
      const attempt = await runAttempt(trial, template, library, position)
      violations.push(...attempt.violations.map((fault) => `call ${position}: ${fault}`))
      figures.acknowledged += attempt.acknowledged
      figures['slowest start ms'] = Math.max(figures['slowest start ms'], attempt.startMs)
      if (!attempt.isReached) figures['not reached']++
    }
    trial.report({
      scenario: `kill -9 before ${positions.length} of the ${measured.calls} calls of a start with load`,
      guarantee: 'nothing acknowledged is lost, tables and lists agree',
      figures,
      violations,
    })
  },
}

/** Creates the home that each attempt copies, with sends of two applications. */
async function makeTemplate(trial: Trial): Promise<Template> {
  const home = makeHome(trial, 'template')
  const server = await startServerAt(home)
  try {
    const client = await logIn(server.url)
    const apps = [await client.createApplication(), await client.createApplication()]
    for (let index = 0; index < historyRequests; index += historyBatch) {
      const sends = Array.from({ length: Math.min(historyBatch, historyRequests - index) }, (_, offset) =>
        fetch(`${server.url}/v1/otp/send`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...apps[offset % 2]?.headers },
          body: JSON.stringify({ phone: `+1212${2_000_000 + index + offset}` }),
        }),
      )
      for (const response of await Promise.all(sends)) {
        await response.arrayBuffer()
        if (response.status !== 201) throw new Error(`a send was refused: ${response.status}`)
      }
    }
    return { home, apps, token: client.token }
  } finally {
    await server.stop()
  }
}

/** Runs a server that is killed at one call, and checks its data with the next one. */
async function runAttempt(trial: Trial, template: Template, library: string, killAt: number) {
  const { apps, token } = template
  const folder = join(trial.folder, `attempt-${killAt}`)
  const home = copyHome(template.home, folder)
  const shim = createShim(library, folder, home.dataDir)
  shim.set('failErrno', killProcess)
  shim.set('failAt', killAt)
  const ledger = createLedger()
  const server = await startServerAt(home, shim.env()).catch(() => undefined)
  if (server) {
    let hasEnded = false
    void server.exited.then(() => (hasEnded = true))
    const load = startLoad({ url: server.url, apps, ledger, random: trial.random, connections })
    const deadline = performance.now() + loadMsMax
    const shouldContinue = () =>
      !hasEnded && ledger.count.acknowledged < acknowledgedPerRun && performance.now() < deadline
    while (shouldContinue()) await Bun.sleep(5)
    await load.stop()
    await server.stop('SIGKILL')
  }
  const isReached = shim.get('failedCall') !== 0
  const calls = shim.get('calls')
  shim.close()
  const startedAt = performance.now()
  const next = await startServerAt(home)
  const startMs = Math.round(performance.now() - startedAt)
  const database = new Database(join(home.dataDir, 'otpd.db'), { readonly: true })
  try {
    const violations = [
      ...ledger.violations,
      ...checkFile(database, 'integrity_check'),
      ...checkRequests(database, ledger.requests.values()),
      ...checkInvariants(database),
      ...(await checkLists(next.url, token, database)),
    ]
    return { violations, calls, isReached, startMs, acknowledged: ledger.count.acknowledged }
  } finally {
    database.close()
    await next.stop('SIGKILL')
    rmSync(folder, { recursive: true })
  }
}
