import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { BenchCase } from './bench-case.ts'
import { cases } from './cases.ts'
import { goals, evaluateGoal, type Round } from './goals.ts'
import { cacheFolder, moveToLoadCore, isPinned } from './machine.ts'
import type { Sample } from './service.ts'
import { median } from './stats.ts'
import { figuresTable, goalsTable } from './table.ts'

// `npm run bench [-- OPTIONS]`: all figures of a table come from one run. The cases take turns in each round, each on a
// new server with an empty database, after a warm-up. Any response other than 2xx ends the run.

const usage = `npm run bench -- [options]

  --quick          two short rounds, to see whether anything moved
  --rounds N       default 5
  --seconds N      of load for each row in each round, default 2
  --only ROW,...   some rows of the table
  --binary FILE    what is measured, default dist/otpd
  --list           tells the rows
`

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    only: { type: 'string' },
    binary: { type: 'string', default: resolve(import.meta.dir, '../../dist/otpd') },
    list: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
const print = (text: string) => process.stdout.write(`${text}\n`)
const logProgress = (text: string) => process.stderr.write(`${text}\n`)

const titles: Record<string, string> = Object.assign({}, ...cases.map(({ rows }) => rows))
const onlyRows = values.only?.split(',')
const isWanted = (row: string) => onlyRows?.includes(row) ?? true
const unknownRow = onlyRows?.find((row) => titles[row] === undefined)
if (unknownRow !== undefined) {
  logProgress(`Unknown row ${unknownRow}. --list prints the rows.`)
  process.exit(2)
}
if (values.help || values.list) {
  print(values.help ? usage : Object.keys(titles).join('\n'))
  process.exit(0)
}
const roundCount = Number(values.rounds ?? (values.quick ? 2 : 5))
const seconds = Number(values.seconds ?? (values.quick ? 1 : 2))
// Three seconds each of sends and verifications, and again on a slow machine (`measureFlow`). Servers run for
// months; with half of the warm-up, compilation would be a sixth of the measured cost of a call.
const loadSettings = { connections: 64, seconds, warmUpSeconds: 3 }

async function runCase(benchCase: BenchCase, root: string, round: number): Promise<Record<string, Sample>> {
  const folder = mkdtempSync(join(root, 'case-'))
  try {
    const context = { binary: values.binary, folder, loadSettings, applications: 200, env: {} }
    const samples = await benchCase.run(context, isWanted)
    for (const [row, { requestsPerSecond }] of Object.entries(samples)) {
      logProgress(`round ${round} of ${roundCount}: ${row} ${requestsPerSecond.toFixed(0)}/s`)
    }
    return samples
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function runRounds(root: string): Promise<Round[]> {
  const selectedCases = cases.filter((benchCase) => Object.keys(benchCase.rows).some(isWanted))
  const ready = selectedCases.filter((benchCase) => {
    const skipReason = benchCase.prepare?.(root)
    if (skipReason !== undefined)
      logProgress(`skipped: ${Object.values(benchCase.rows).join('; ')}: ${skipReason}`)
    return skipReason === undefined
  })
  const rounds: Round[] = []
  while (rounds.length < roundCount) {
    const round: Record<string, Sample> = {}
    for (const one of ready) Object.assign(round, await runCase(one, root, rounds.length + 1))
    rounds.push(round)
  }
  return rounds
}

moveToLoadCore()
mkdirSync(cacheFolder, { recursive: true })
const root = mkdtempSync(join(cacheFolder, 'bench-'))
process.on('exit', () => rmSync(root, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1))

const rounds = await runRounds(root)
const cores = isPinned ? 'servers on one core, load on the other' : 'servers and load on the same cores'
print(`Medians of ${roundCount} rounds of ${seconds} s, ${loadSettings.connections} connections, ${cores}.\n`)
const otherCores = median(rounds.flatMap((round) => Object.values(round).map((one) => one.otherCores)))
if (otherCores > 0.2)
  print(`Other programs used ${otherCores.toFixed(1)} cores meanwhile: ratios mean less.\n`)
const selectedRows = Object.entries(titles).filter(([row]) => isWanted(row))
print(`${figuresTable(rounds, Object.fromEntries(selectedRows))}\n`)
const goalResults = goals.flatMap((goal) => evaluateGoal(goal, rounds) ?? [])
if (goalResults.length > 0) print(goalsTable(goalResults))
