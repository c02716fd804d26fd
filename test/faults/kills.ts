import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import type { RunningServer } from '../helpers/binary.ts'
import { logIn, type TestApp } from '../helpers/webhook-client.ts'
import { checkFile, checkRequests, checkSums, countUnheard } from './check.ts'
import type { Family, Trial } from './family.ts'
import { createLedger, type Ledger } from './ledger.ts'
import { startLoad } from './load.ts'
import { createManagement, type Management } from './management.ts'
import { makeHome, startAt, type Home } from './server.ts'

const applications = 8
const connections = 64
/** After that many kills the next installation begins: the checks of a large database take longer than its load. */
const killsPerHome = 50
const checkAllEvery = 10
const restartMedianMsMax = 1_000

type Round = { home: Home; apps: TestApp[]; ledger: Ledger; management: Management }

type Totals = { kills: number; acknowledged: number; unheard: number; changes: number; startsMs: number[] }

export const kills: Family = {
  name: 'kills',
  about: 'kill -9 under load, 50 to 300 ms after some moment of it',
  counts: { kills: { full: 100, short: 12 }, acknowledged: { full: 100_000, short: 3_000 } },
  async run(trial) {
    const kills = trial.count('kills')
    const perKill = trial.count('acknowledged') / Math.max(1, kills)
    const totals: Totals = { kills: 0, acknowledged: 0, unheard: 0, changes: 0, startsMs: [] }
    const broken: string[] = []
    let total: Record<string, number> = {}
    while (totals.kills < kills) {
      const first = totals.kills
      const ledger = createLedger()
      const until = Math.min(kills, first + killsPerHome)
      broken.push(...(await killOver(trial, ledger, totals, until, perKill)))
      total = add(total, ledger.count)
      totals.acknowledged += ledger.count.acknowledged
      if (until < kills) process.stdout.write(`   ${until} kills, ${totals.acknowledged} acknowledged\n`)
    }
    const sorted = totals.startsMs.toSorted((a, b) => a - b)
    const medianMs = Math.round(sorted[sorted.length >> 1] ?? 0)
    if (medianMs > trial.allowMs(restartMedianMsMax))
      broken.push(`a restart took ${medianMs} ms, in the median`)
    trial.report({
      tried: `${totals.kills} kills, ${connections} connections`,
      promised:
        'nothing acknowledged is lost, nobody is verified twice, attempts never fall, restart in a second',
      figures: {
        ...total,
        'console changes': totals.changes,
        'stored but never answered': totals.unheard,
        'restart p50 ms': medianMs,
        'restart max ms': Math.round(sorted.at(-1) ?? 0),
      },
      broken,
    })
  },
}

/** One installation and its kills. @returns what was broken */
async function killOver(trial: Trial, ledger: Ledger, totals: Totals, until: number, perKill: number) {
  const home = makeHome(trial, `home-${totals.kills}`)
  let server = await startAt(home)
  let round: Round
  try {
    const client = await logIn(server.url)
    const apps: TestApp[] = []
    for (let i = 0; i < applications; i++) apps.push(await client.createApplication())
    const management = createManagement(client.token, await client.createApplication('Rotated'))
    round = { home, apps, ledger, management }
    for (; totals.kills < until; totals.kills++) {
      await loadAndKill(trial, round, server, perKill)
      const before = performance.now()
      server = await startAt(home)
      totals.startsMs.push(performance.now() - before)
      ledger.broken.push(...(await checkAfterKill(round, server, totals.kills % checkAllEvery === 0)))
      if (ledger.broken.length > 100) break
    }
    await loadAndStop(trial, round, server)
  } finally {
    await server.stop()
  }
  const database = new Database(join(home.dataDir, 'otpd.db'), { readonly: true })
  ledger.broken.push(...checkFile(database, 'integrity_check'), ...checkAll(round, database))
  totals.unheard += countUnheard(database, ledger)
  database.close()
  totals.changes += Object.values(round.management.count).reduce((sum, one) => sum + one, 0)
  return ledger.broken
}

async function loadAndKill(trial: Trial, round: Round, server: RunningServer, perKill: number) {
  const { ledger, apps, management } = round
  const { random } = trial
  // Some kills come at once and some late, so that on average as much is acknowledged as was asked for.
  const wanted = ledger.count.acknowledged + random() * 2 * perKill
  const load = startLoad({ url: server.url, apps, ledger, random, connections })
  const changes = management.run(server.url, () => false)
  const patience = performance.now() + 30_000
  while (ledger.count.acknowledged < wanted && performance.now() < patience) await Bun.sleep(5)
  await Bun.sleep(50 + random() * 250)
  await server.stop('SIGKILL')
  await Promise.all([load.ended, changes])
}

/** Settles what the last kill left open. */
async function loadAndStop(trial: Trial, { ledger, apps }: Round, server: RunningServer) {
  const load = startLoad({ url: server.url, apps, ledger, random: trial.random, connections: 8 })
  const patience = performance.now() + 10_000
  while (ledger.unsure.length > 0 && performance.now() < patience) await Bun.sleep(10)
  await load.stop()
}

/** Beside the server that has just started. */
async function checkAfterKill(round: Round, server: RunningServer, all: boolean): Promise<string[]> {
  const { ledger, management, home } = round
  const database = new Database(join(home.dataDir, 'otpd.db'), { readonly: true })
  database.run('PRAGMA busy_timeout = 5000')
  try {
    const broken = [...checkFile(database, 'quick_check'), ...management.check(database)]
    if (all) broken.push(...checkAll(round, database))
    else broken.push(...checkRequests(database, ledger.takeTouched()))
    if (server.log().includes('damaged')) broken.push('the server calls the database damaged')
    return [...broken, ...(await management.checkKeys(server.url))]
  } finally {
    database.close()
  }
}

const checkAll = ({ ledger, management }: Round, database: Database) => [
  ...checkRequests(database, ledger.requests.values()),
  ...management.check(database),
  ...checkSums(database),
]

const add = (a: Record<string, number>, b: Record<string, number>) =>
  Object.fromEntries(Object.entries(b).map(([name, value]) => [name, value + (a[name] ?? 0)]))
