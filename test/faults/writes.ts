import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { logIn, type TestApp } from '../helpers/webhook-client.ts'
import { checkFile, checkInvariants, checkRequests } from './database-checks.ts'
import { buildShim } from './disk-shim.ts'
import type { FaultFamily, Trial } from './family.ts'
import { killBeforeCalls, runLoad, startWithFault, type DiskFault } from './failing-disk.ts'
import { createLedger } from './ledger.ts'
import { checkLists } from './list-checks.ts'
import { makeHome, startServerAt, type Home } from './server.ts'

/** Requests before the load, so that indexes that are filled in bulk, every 16,384 rows, are filled during it. */
const historyRequests = 16_384 - 150
const historyBatch = 64
const loadMax = { acknowledged: 400, ms: 10_000 }
const connections = 8

type Template = { home: Home; apps: TestApp[]; token: string }

export const writes: FaultFamily = {
  name: 'writes',
  description: 'kill -9 before each write, sync and truncation of a load, while lists are indexed in bulk',
  counts: { writes: { full: 100, short: 4 } },
  async run(trial) {
    const library = buildShim(trial.folder)
    const template = await makeTemplate(trial)
    const { attempts, calls, violations } = await killBeforeCalls(library, trial.count('writes'), (fault) =>
      runAttempt(trial, template, fault),
    )
    const kills = attempts.slice(1)
    const figures = {
      'not reached': kills.filter(({ isReached }) => !isReached).length,
      acknowledged: attempts.reduce((sum, { acknowledged }) => sum + acknowledged, 0),
      'slowest start ms': Math.max(...kills.map(({ startMs }) => startMs)),
    }
    trial.report({
      scenario: `kill -9 before ${kills.length} of the ${calls} calls of a start with load`,
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
async function runAttempt(trial: Trial, { home: from, apps, token }: Template, fault: DiskFault) {
  const { home, server, ...attempt } = await startWithFault(trial, from, fault)
  const ledger = createLedger()
  if (typeof server !== 'string') {
    await runLoad(server, { apps, ledger, random: trial.random, connections }, loadMax)
    await server.stop('SIGKILL')
  }
  const isReached = attempt.isReached()
  const calls = attempt.end()
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
    attempt.remove()
  }
}
