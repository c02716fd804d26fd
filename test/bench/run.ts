import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { cases, type Case } from './cases.ts'
import { goals, judge, type Round } from './goals.ts'
import { moveToLoadCore, pinned } from './machine.ts'
import type { Pace, Sample } from './service.ts'
import { figuresTable, goalsTable } from './table.ts'

// `npm run bench [-- --quick] [-- --only ROW,…]`: all figures of one table come from one run. The cases take turns in
// each round, each on a fresh server and an empty database, warmed up before the clock runs. Any answer that is not 2xx
// ends the run.

const usage = `bun test/bench/run.ts [options]

  --quick          two short rounds, to see whether anything moved
  --rounds N       default 5
  --seconds N      of load for each row and round, default 3
  --only ROW,...   some rows of the table
  --binary FILE    default dist/otpd
  --list           the names of the rows
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
const print = (line: string) => process.stdout.write(`${line}\n`)
const note = (line: string) => process.stderr.write(`${line}\n`)

const names = cases.flatMap((one) => one.rows)
const only = values.only?.split(',')
const unknown = only?.find((name) => !names.includes(name))
if (values.help || unknown !== undefined) {
  if (unknown !== undefined) note(`There is no row ${unknown}. They are ${names.join(', ')}.`)
  note(usage)
  process.exit(values.help ? 0 : 2)
}
if (values.list) {
  print(names.join('\n'))
  process.exit(0)
}

const isWanted = (row: string) => only?.includes(row) ?? true
const roundCount = Number(values.rounds ?? (values.quick ? 2 : 5))
const seconds = Number(values.seconds ?? (values.quick ? 1 : 3))
const pace: Pace = { connections: 64, seconds, warmUpSeconds: 1 }

async function runCase(one: Case, round: number): Promise<Record<string, Sample>> {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-bench-'))
  try {
    const samples = await one.run({ binary: values.binary, folder, pace }, isWanted)
    for (const [row, { requestsPerSecond }] of Object.entries(samples)) {
      note(`round ${round}: ${row} ${requestsPerSecond.toFixed(0)}/s`)
    }
    return samples
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

moveToLoadCore()
if (!pinned) note('Without taskset, or with one core, servers and load share cores: ratios mean less.')
const rounds: Round[] = []
for (let number = 1; number <= roundCount; number++) {
  const round: Record<string, Sample> = {}
  for (const one of cases) {
    if (one.rows.some(isWanted)) Object.assign(round, await runCase(one, number))
  }
  rounds.push(round)
}

const cores = pinned ? 'servers on one core, load on another' : 'servers and load on the same cores'
print(`Medians of ${roundCount} rounds of ${seconds} s, ${pace.connections} connections, ${cores}.\n`)
print(`${figuresTable(rounds, names.filter(isWanted))}\n`)
const verdicts = goals.flatMap((goal) => judge(goal, rounds) ?? [])
if (verdicts.length > 0) print(goalsTable(verdicts))
