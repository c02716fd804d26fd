import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import type { RunningServer } from '../helpers/binary.ts'
import { logIn, type TestApp } from '../helpers/webhook-client.ts'
import { checkFile, checkRequests, checkInvariants, countUnacknowledged } from './database-checks.ts'
import type { FaultFamily, Trial } from './family.ts'
import { createLedger, type Ledger } from './ledger.ts'
import { checkLists } from './list-checks.ts'
import { startLoad } from './load.ts'
import { createManagement, type Management } from './management.ts'
import { makeHome, startServerAt, type Home } from './server.ts'

const applications = 8
const connections = 64
/** Kills per installation. Then a new one begins, because checking a large database takes longer than the load. */
const killsPerHome = 50
const checkAllEvery = 10
const restartMedianMsMax = 1_000

type KillRun = { home: Home; token: string; apps: TestApp[]; ledger: Ledger; management: Management }

type Totals = {
  kills: number
  acknowledged: number
  unacknowledged: number
  changes: number
  startsMs: number[]
}

export const kills: FaultFamily = {
  name: 'kills',
  description: 'kill -9 under load, 50 to 300 ms after a random moment',
  counts: { kills: { full: 100, short: 12 }, acknowledged: { full: 100_000, short: 3_000 } },
  async run(trial) {
    const kills = trial.count('kills')
    const perKill = trial.count('acknowledged') / Math.max(1, kills)
    const totals: Totals = { kills: 0, acknowledged: 0, unacknowledged: 0, changes: 0, startsMs: [] }
    const violations: string[] = []
    let total: Record<string, number> = {}
    while (totals.kills < kills) {
      const killsBefore = totals.kills
      const ledger = createLedger()
      const killsUntil = Math.min(kills, killsBefore + killsPerHome)
      violations.push(...(await runKills(trial, ledger, totals, killsUntil, perKill)))
      total = addCounts(total, ledger.count)
      totals.acknowledged += ledger.count.acknowledged
      if (killsUntil < kills)
        process.stdout.write(`   ${killsUntil} kills, ${totals.acknowledged} acknowledged\n`)
    }
    const sorted = totals.startsMs.toSorted((a, b) => a - b)
    const medianMs = Math.round(sorted[sorted.length >> 1] ?? 0)
    if (medianMs > trial.allowMs(restartMedianMsMax))
      violations.push(`the median restart took ${medianMs} ms`)
    trial.report({
      scenario: `${totals.kills} kills, ${connections} connections`,
      guarantee:
        'nothing acknowledged is lost, no request is verified twice, attempts never decrease, restart in a second',
      figures: {
        ...total,
        'console changes': totals.changes,
        'stored but never answered': totals.unacknowledged,
        'restart p50 ms': medianMs,
        'restart max ms': Math.round(sorted.at(-1) ?? 0),
      },
      violations,
    })
  },
}

/** Kills one installation repeatedly. @returns the violations */
async function runKills(trial: Trial, ledger: Ledger, totals: Totals, killsUntil: number, perKill: number) {
  const home = makeHome(trial, `home-${totals.kills}`)
  let server = await startServerAt(home)
  let run: KillRun
  try {
    const client = await logIn(server.url)
    const apps: TestApp[] = []
    for (let i = 0; i < applications; i++) apps.push(await client.createApplication())
    const management = createManagement(client.token, await client.createApplication('Rotated'))
    run = { home, token: client.token, apps, ledger, management }
    for (; totals.kills < killsUntil; totals.kills++) {
      await loadAndKill(trial, run, server, perKill)
      const before = performance.now()
      server = await startServerAt(home)
      totals.startsMs.push(performance.now() - before)
      ledger.violations.push(...(await checkAfterKill(run, server, totals.kills % checkAllEvery === 0)))
      if (ledger.violations.length > 100) break
    }
    await loadAndStop(trial, run, server)
  } finally {
    await server.stop()
  }
  const database = new Database(join(home.dataDir, 'otpd.db'), { readonly: true })
  ledger.violations.push(...checkFile(database, 'integrity_check'), ...checkAll(run, database))
  totals.unacknowledged += countUnacknowledged(database, ledger)
  database.close()
  totals.changes += Object.values(run.management.count).reduce((sum, one) => sum + one, 0)
  return ledger.violations
}

async function loadAndKill(trial: Trial, run: KillRun, server: RunningServer, perKill: number) {
  const { ledger, apps, management } = run
  const { random } = trial
  // Uniform from 0 to twice the target, so that the average number of acknowledgements per kill is the target.
  const target = ledger.count.acknowledged + random() * 2 * perKill
  const load = startLoad({ url: server.url, apps, ledger, random, connections })
  const changes = management.run(server.url, () => false)
  const deadline = performance.now() + 30_000
  while (ledger.count.acknowledged < target && performance.now() < deadline) await Bun.sleep(5)
  await Bun.sleep(50 + random() * 250)
  await server.stop('SIGKILL')
  await Promise.all([load.ended, changes])
}

/** Resolves the outcomes that the last kill left unknown. */
async function loadAndStop(trial: Trial, { ledger, apps }: KillRun, server: RunningServer) {
  const load = startLoad({ url: server.url, apps, ledger, random: trial.random, connections: 8 })
  const deadline = performance.now() + 10_000
  while (ledger.unconfirmed.length > 0 && performance.now() < deadline) await Bun.sleep(10)
  await load.stop()
}

/** Checks the database while the server that has just started runs. */
async function checkAfterKill(
  run: KillRun,
  server: RunningServer,
  checksEverything: boolean,
): Promise<string[]> {
  const { ledger, management, home } = run
  const database = new Database(join(home.dataDir, 'otpd.db'), { readonly: true })
  database.run('PRAGMA busy_timeout = 5000')
  try {
    const violations = [...checkFile(database, 'quick_check'), ...management.check(database)]
    if (checksEverything)
      violations.push(...checkAll(run, database), ...(await checkLists(server.url, run.token, database)))
    else violations.push(...checkRequests(database, ledger.takeTouched()))
    if (server.log().includes('damaged')) violations.push('the server reports a damaged database')
    return [...violations, ...(await management.checkKeys(server.url))]
  } finally {
    database.close()
  }
}

const checkAll = ({ ledger, management }: KillRun, database: Database) => [
  ...checkRequests(database, ledger.requests.values()),
  ...management.check(database),
  ...checkInvariants(database),
]

const addCounts = (a: Record<string, number>, b: Record<string, number>) =>
  Object.fromEntries(Object.entries(b).map(([name, value]) => [name, value + (a[name] ?? 0)]))
