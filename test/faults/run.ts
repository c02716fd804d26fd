import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { seededRandom, type Family, type Finding } from './family.ts'
import { clocks } from './clocks.ts'
import { cuts } from './cuts.ts'
import { damage } from './damage.ts'
import { descriptors } from './descriptors.ts'
import { full } from './full.ts'
import { io } from './io.ts'
import { issuers } from './issuers.ts'
import { kills } from './kills.ts'
import { locked } from './locked.ts'
import { migrations } from './migrations.ts'
import { providers } from './providers.ts'
import { receivers } from './receivers.ts'
import { refusals } from './refusals.ts'
import { slow } from './slow.ts'
import { soak } from './soak.ts'
import { stops } from './stops.ts'
import { webhooks } from './webhooks.ts'

// Faults on the compiled binary, and what is left of its promises: `npm run faults -- [--only kills,cuts] [--short]
// [--seed N] [--kills N] …`. Ends with 1 where a promise was broken. Needs Linux and gcc.

const families: Family[] = [
  kills,
  cuts,
  io,
  slow,
  refusals,
  damage,
  full,
  locked,
  providers,
  receivers,
  stops,
  descriptors,
  clocks,
  issuers,
  migrations,
  webhooks,
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

function choose(only: string | undefined): Family[] {
  const usual = families.filter(({ takesLong }) => values.short || !takesLong)
  const names = only?.split(',') ?? usual.map(({ name }) => name)
  return names.map((name) => {
    const family = families.find((one) => one.name === name)
    if (!family)
      throw new Error(`There is no ${name}. There is ${families.map((one) => one.name).join(', ')}.`)
    return family
  })
}

/** A whole number from the command line; `otherwise` where nothing was said. */
function wholeNumber(option: string, otherwise: number): number {
  const text: unknown = Object.entries(values).find(([name]) => name === option)?.[1]
  if (text === undefined) return otherwise
  const number = Number(text)
  if (!Number.isSafeInteger(number) || number < 0) throw new Error(`--${option} is a whole number`)
  return number
}

/** Returns whether every promise was kept. */
async function runAll(chosen: Family[]): Promise<boolean> {
  const seed = wholeNumber('seed', Date.now() % 1_000_000)
  print(`seed ${seed}${values.short ? '; what is promised within some time may take ten times that' : ''}`)
  const broken = new Map<string, number>()
  for (const family of chosen) {
    const startedAt = performance.now()
    broken.set(family.name, await runFamily(family, seed))
    print(`   ${((performance.now() - startedAt) / 1000).toFixed(1)} s`)
  }
  const failed = [...broken].filter(([, count]) => count > 0)
  const which = failed.map(([name, count]) => `${name} (${count})`).join(', ')
  print(failed.length === 0 ? '\nevery promise was kept' : `\nbroken promises: ${which}, seed ${seed}`)
  return failed.length === 0
}

/** Returns how many promises were broken. */
async function runFamily(family: Family, seed: number): Promise<number> {
  print(`\n== ${family.name}: ${family.about}`)
  const folder = mkdtempSync(join(tmpdir(), `otpd-${family.name}-`))
  let broken = 0
  const report = (finding: Finding) => {
    broken += finding.broken.length
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
    report({ tried: 'the whole family', promised: 'it runs to its end', broken: [String(error)] })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return broken
}

const brokenShown = 10

function printFinding({ tried, promised, figures = {}, broken }: Finding) {
  print(` - tried:    ${tried}\n   promised: ${promised}`)
  const numbers = Object.entries(figures).map(([name, value]) => `${name} ${value}`)
  if (numbers.length > 0) print(`   seen:     ${numbers.join(', ')}`)
  print(`   lost:     ${broken.length === 0 ? 'nothing' : broken.length}`)
  for (const one of broken.slice(0, brokenShown)) print(`     ! ${one}`)
}

if (values.help) {
  for (const { name, about, counts = {} } of families) {
    print(`${name.padEnd(12)} ${about}`)
    for (const [option, { full, short }] of Object.entries(counts)) {
      print(`${''.padEnd(12)}   --${option} N (${full}; short ${short})`)
    }
  }
} else if (process.platform !== 'linux' || Bun.which('gcc') === null) {
  print('skipped: the faults need Linux and gcc')
} else {
  process.exitCode = (await runAll(choose(values.only))) ? 0 : 1
}
