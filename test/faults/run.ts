import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type FaultFamily, type Finding } from './family.ts'
import { seededRandom } from '../helpers/seeded-random.ts'
import { carriers } from './carriers.ts'
import { clocks } from './clocks.ts'
import { cuts } from './cuts.ts'
import { damage } from './damage.ts'
import { descriptors } from './descriptors.ts'
import { full } from './full.ts'
import { io } from './io.ts'
import { issuers } from './issuers.ts'
import { kills } from './kills.ts'
import { limits } from './limits.ts'
import { locked } from './locked.ts'
import { migrations } from './migrations.ts'
import { nodeAlerts } from './nodes/alerts.ts'
import { contracts } from './nodes/contracts.ts'
import { nodeKills } from './nodes/kills.ts'
import { mix } from './nodes/mix.ts'
import { nodeStreams } from './nodes/streams.ts'
import { restarts } from './nodes/restarts.ts'
import { partitions } from './nodes/partitions.ts'
import { serverLimits } from './nodes/server-limits.ts'
import { poolers } from './nodes/poolers.ts'
import { failovers } from './nodes/failovers.ts'
import { pauses } from './nodes/pauses.ts'
import { operators } from './operators.ts'
import { providers } from './providers.ts'
import { receivers } from './receivers.ts'
import { refusals } from './refusals.ts'
import { slow } from './slow.ts'
import { soak } from './soak.ts'
import { stops } from './stops.ts'
import { webhooks } from './webhooks.ts'
import { writes } from './writes.ts'

// Injects faults into the compiled binary and checks its guarantees: `npm run faults -- [--only kills,cuts] [--short]
// [--seed N] [--kills N] …`. Exits with 1 if a guarantee was violated. Needs Linux and gcc.

const families: FaultFamily[] = [
  kills,
  cuts,
  io,
  writes,
  limits,
  operators,
  slow,
  refusals,
  damage,
  full,
  locked,
  providers,
  carriers,
  receivers,
  stops,
  descriptors,
  clocks,
  issuers,
  migrations,
  webhooks,
  contracts,
  pauses,
  nodeKills,
  restarts,
  mix,
  nodeStreams,
  partitions,
  serverLimits,
  failovers,
  poolers,
  nodeAlerts,
  soak,
]

const print = (line: string) => process.stdout.write(`${line}\n`)

const countNames = [...new Set(families.flatMap(({ counts }) => Object.keys(counts ?? {})))]
const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    short: { type: 'boolean', default: false },
    seed: { type: 'string' },
    help: { type: 'boolean', default: false },
    ...Object.fromEntries(countNames.map((name) => [name, { type: 'string' }] as const)),
  },
})

function selectFamilies(only: string | undefined): FaultFamily[] {
  const defaults = families.filter(({ takesLong }) => values.short || !takesLong)
  const names = only?.split(',') ?? defaults.map(({ name }) => name)
  return names.flatMap((name) => {
    // `nodes` selects `nodes-kills` and the others.
    const selected = families.filter((family) => family.name === name || family.name.startsWith(`${name}-`))
    if (selected.length === 0)
      throw new Error(
        `Unknown family ${name}. Choose from ${families.map((family) => family.name).join(', ')}.`,
      )
    return selected
  })
}

/** Reads a whole number from the command line. Returns `fallback` if the option is missing. */
function wholeNumber(option: string, fallback: number): number {
  const text: unknown = Object.entries(values).find(([name]) => name === option)?.[1]
  if (text === undefined) return fallback
  const number = Number(text)
  if (!Number.isSafeInteger(number) || number < 0) throw new Error(`--${option} must be a whole number`)
  return number
}

/** Runs the families. Returns whether every guarantee held. */
async function runAll(chosen: FaultFamily[]): Promise<boolean> {
  const seed = wholeNumber('seed', Date.now() % 1_000_000)
  print(`seed ${seed}${values.short ? '; time limits are ten times as long' : ''}`)
  const violated: Array<{ family: string; finding: Finding }> = []
  for (const family of chosen) {
    const startedAt = performance.now()
    for (const finding of await runFamily(family, seed)) violated.push({ family: family.name, finding })
    print(`   ${((performance.now() - startedAt) / 1000).toFixed(1)} s`)
  }
  print(violated.length === 0 ? '\nevery guarantee held' : `\nviolated guarantees, seed ${seed}`)
  // Once more, where they are found in a long output.
  for (const { family, finding } of violated) {
    print(`\n== ${family}`)
    printFinding(finding)
  }
  return violated.length === 0
}

/** Runs a family. Returns the findings whose guarantee was violated. */
async function runFamily(family: FaultFamily, seed: number): Promise<Finding[]> {
  print(`\n== ${family.name}: ${family.description}`)
  const folder = mkdtempSync(join(tmpdir(), `otpd-${family.name}-`))
  const violated: Finding[] = []
  const report = (finding: Finding) => {
    if (finding.violations.length > 0) violated.push(finding)
    printFinding(finding)
  }
  const count = (name: string) => {
    const { full, short } = family.counts?.[name] ?? { full: 0, short: 0 }
    return wholeNumber(name, values.short ? short : full)
  }
  try {
    const { short } = values
    const allowMs = (ms: number) => (short ? 10 : 1) * ms
    await family.run({ seed, random: seededRandom(seed), count, short, allowMs, folder, report })
  } catch (error) {
    report({ scenario: 'the whole family', guarantee: 'it completes', violations: [String(error)] })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return violated
}

const violationsShown = 10

function printFinding({ scenario: tried, guarantee: promised, figures = {}, violations }: Finding) {
  print(` - tried:    ${tried}\n   promised: ${promised}`)
  const numbers = Object.entries(figures).map(([name, value]) => `${name} ${value}`)
  if (numbers.length > 0) print(`   seen:     ${numbers.join(', ')}`)
  print(`   lost:     ${violations.length === 0 ? 'nothing' : violations.length}`)
  for (const one of violations.slice(0, violationsShown)) print(`     ! ${one}`)
}

if (values.help) {
  for (const { name, description: about, counts = {} } of families) {
    print(`${name.padEnd(12)} ${about}`)
    for (const [option, { full, short }] of Object.entries(counts)) {
      print(`${''.padEnd(12)}   --${option} N (${full}; short ${short})`)
    }
  }
} else if (process.platform !== 'linux' || Bun.which('gcc') === null) {
  print('skipped: the faults need Linux and gcc')
} else {
  // Also if a family that failed has left a server open.
  process.exit((await runAll(selectFamilies(values.only))) ? 0 : 1)
}
