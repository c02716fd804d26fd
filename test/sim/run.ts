import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { hasOpenssl } from '../helpers/webhook-receiver.ts'
import { simulateAlertDay } from './alert-day.ts'
import { makePlan, makeShopPlan, type Plan } from './plan.ts'
import { shrink } from './shrink.ts'
import { simulate, type SimulationResult } from './simulate.ts'

const usage = `npm run sim -- [--seed N] [--until T] [--seconds S] [--trace FILE] [--repeat N] [--shop DAYS] [--alerts]

Runs the whole server on simulated time, network and disk. A seed decides everything, so it repeats a finding exactly.

  --seed     the plan to run; without it, those of failed-seeds.txt, the day of --alerts, and then new plans from a random
             seed that is printed
  --until    length of a plan in simulated seconds, such as 38.2s; default: 60 s
  --seconds  how long to run new plans, in real seconds; default: 120
  --trace    writes what happened, one line each
  --repeat   runs a seed that often, and compares the traces
  --shop     days of a small shop, with 100 calls an hour and hardly a fault; its seed is 1 by default
  --alerts   28 hours with every fault that one node can have, and a restart every 95 minutes
  --plain    leaves a failing plan as it is: shrinking runs it up to a hundred times
`

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    until: { type: 'string', default: '60' },
    seconds: { type: 'string', default: '120' },
    trace: { type: 'string' },
    repeat: { type: 'string', default: '1' },
    shop: { type: 'string' },
    alerts: { type: 'boolean', default: false },
    plain: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const print = (text: string) => writeSync(1, `${text}\n`)
const realNow = process.hrtime.bigint
const elapsedSeconds = (from: bigint) => Number(realNow() - from) / 1e9

if (values.help) {
  print(usage)
  process.exit(0)
}

const untilMs =
  values.shop === undefined ? Number.parseFloat(values.until) * 1000 : Number(values.shop) * 86_400_000
const seedGiven = values.seed ?? (values.shop === undefined ? undefined : '1')
const planOf = (seed: number) => (values.shop === undefined ? makePlan : makeShopPlan)(seed, untilMs)
let simulatedMs = 0
let plans = 0

async function run(plan: Plan): Promise<SimulationResult> {
  const file = values.trace === undefined ? undefined : openSync(values.trace, 'w')
  const result = await simulate(plan, file === undefined ? undefined : (line) => void writeSync(file, line))
  if (file !== undefined) closeSync(file)
  simulatedMs += result.simulatedMs
  plans++
  // Closes the databases of killed servers: their deleted files filled the memory in a long run.
  Bun.gc(true)
  return result
}

const describe = ({ hash, requests, restarts, simulatedMs: ms }: SimulationResult) =>
  `${requests} requests, ${restarts} restarts, ${Math.round(ms / 1000)} s, trace ${hash.slice(0, 16)}`

/** Runs the plan of a seed. @returns whether all rules held */
async function runSeed(seed: number): Promise<boolean> {
  const plan = planOf(seed)
  const result = await run(plan)
  if (result.violations.length === 0) {
    if (seedGiven !== undefined) print(`seed ${seed}: every rule held (${describe(result)})`)
    return true
  }
  const [first] = result.violations
  print(`seed ${seed}: ${first?.rule}: ${first?.detail}`)
  const length = values.shop === undefined ? `--until ${untilMs / 1000}s` : `--shop ${values.shop}`
  print(`repeat it: npm run sim -- --seed ${seed} ${length} --trace FILE`)
  if (!values.plain && values.shop === undefined && first) {
    const smaller = await shrink(plan, first.rule, (candidate) => run(candidate))
    print(`the same rule fails after ${smaller.steps.length} of ${plan.steps.length} steps:`)
    for (const step of smaller.steps) print(`  ${JSON.stringify(step)}`)
  }
  return false
}

/** Runs the day of alerts. @returns whether each began and ended once */
async function runAlertDay(): Promise<boolean> {
  const file = values.trace === undefined ? undefined : openSync(values.trace, 'w')
  const day = await simulateAlertDay(file === undefined ? undefined : (line) => void writeSync(file, line))
  if (file !== undefined) closeSync(file)
  simulatedMs += day.simulatedMs
  plans++
  for (const fault of day.faults) print(fault)
  if (day.faults.length === 0)
    print(`each alert began and ended once: ${day.told.join(', ')}; ${day.restarts} restarts`)
  return day.faults.length === 0
}

/** Runs a seed several times. @returns whether all traces are equal, and all rules held */
async function compareRuns(seed: number, times: number): Promise<boolean> {
  const hashes = new Set<string>()
  for (let time = 0; time < times; time++) {
    const { hash, violations } = await run(planOf(seed))
    hashes.add(hash)
    const [first] = violations
    if (first) print(`seed ${seed}: ${first.rule}: ${first.detail}`)
    if (first) return false
  }
  print(`seed ${seed}: ${times} runs, ${hashes.size === 1 ? 'equal traces' : 'traces differ'}`)
  return hashes.size === 1
}

const startedAt = realNow()
const cpuAtStart = process.cpuUsage()
let isHeld = true
const repeat = Number(values.repeat)
if (values.alerts) {
  isHeld = await runAlertDay()
} else if (seedGiven !== undefined) {
  const seed = Number(seedGiven)
  isHeld = repeat > 1 ? await compareRuns(seed, repeat) : await runSeed(seed)
} else {
  const failed = readFileSync(join(import.meta.dir, 'failed-seeds.txt'), 'utf8').matchAll(/^(\d+)\s/gm)
  for (const [, seed] of failed) isHeld = (await runSeed(Number(seed))) && isHeld
  if (hasOpenssl) isHeld = (await runAlertDay()) && isHeld
  else print('left out the day of alerts: this machine lacks openssl')
  const first = Number(realNow() % 1_000_000_000n)
  print(`new plans from seed ${first}`)
  const newAt = realNow()
  for (let seed = first; isHeld && elapsedSeconds(newAt) < Number(values.seconds); seed++)
    isHeld = repeat > 1 ? await compareRuns(seed, repeat) : await runSeed(seed)
}
const { user, system } = process.cpuUsage(cpuAtStart)
const cpuHours = (user + system) / 3.6e9
const years = simulatedMs / (365 * 86_400_000)
print(
  `${plans} plans, ${Math.round(simulatedMs / 60_000)} simulated minutes in ${Math.round(elapsedSeconds(startedAt))} s; ` +
    `${(years / cpuHours).toFixed(3)} simulated years in an hour of CPU`,
)
process.exit(isHeld ? 0 : 1)
