import { statfsSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { jwt } from './jwt.ts'
import { describeError, formatElapsed, type FuzzOptions, type FuzzPart } from './fuzz-part.ts'
import { pumping } from './pumping.ts'
import { models, properties } from './property-runs.ts'
import { races } from './race-rounds.ts'
import { raw } from './raw.ts'
import { routes } from './routes.ts'
import { schema } from './schema.ts'
import { secrets } from './secrets.ts'
import { tenants } from './tenants.ts'
import { victim } from './victim.ts'

const usage = `npm run fuzz -- [--only PART,…] [--runs N] [--cases N] [--rounds N] [--seconds N] [--search N] [--seed N]
               [--short]

  --only    of schema, properties, models, raw, jwt, tenants, secrets, races, victim, pumping, routes;
            otherwise all
  --runs    of each property, of each model and of each corpus that is mutated (2000)
  --cases   of Schemathesis for each operation (50)
  --rounds  of each race (100)
  --seconds of the attack on a login (60)
  --search  attacks on the guard that are tried, in search of worse ones (40)
  --seed    repeats an earlier run
  --short   in a minute or two
`

const parts: FuzzPart[] = [
  schema,
  properties,
  models,
  raw,
  jwt,
  tenants,
  secrets,
  races,
  victim,
  pumping,
  routes,
]
const print = (line: string) => void process.stdout.write(`${line}\n`)

/** Moves temporary files to memory, which is ten times as fast. No part tests durability. */
function useMemoryTmpdir() {
  try {
    const { bavail, bsize } = statfsSync('/dev/shm')
    if (process.env['TMPDIR'] === undefined && bavail * bsize > 2 ** 31) process.env['TMPDIR'] = '/dev/shm'
  } catch {
    // Not every system has /dev/shm.
  }
}

function readOptions(): { options: FuzzOptions; chosen: FuzzPart[] } | undefined {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', default: parts.map(({ name }) => name).join() },
      runs: { type: 'string' },
      cases: { type: 'string' },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      search: { type: 'string' },
      seed: { type: 'string' },
      short: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  const parseCount = (text: string | undefined, fallback: number) => {
    if (text === undefined) return fallback
    if (!/^\d{1,9}$/.test(text)) throw new TypeError(`${text} is not a number.`)
    return Number(text)
  }
  const { short } = values
  const names = values.only.split(',')
  const unknownName = names.find((name) => !parts.some((part) => part.name === name))
  if (unknownName !== undefined) throw new TypeError(`Unknown part ${unknownName}.`)
  if (values.help) return undefined
  return {
    chosen: parts.filter(({ name }) => names.includes(name)),
    options: {
      runs: parseCount(values.runs, short ? 200 : 2_000),
      cases: parseCount(values.cases, short ? 5 : 50),
      rounds: parseCount(values.rounds, short ? 5 : 100),
      seconds: parseCount(values.seconds, short ? 15 : 60),
      search: parseCount(values.search, short ? 4 : 40),
      isShort: short,
      seed: parseCount(values.seed, Date.now() % 1_000_000_000),
    },
  }
}

async function main(): Promise<number> {
  const parsed = readOptions()
  if (!parsed) {
    print(usage)
    return 0
  }
  const { options, chosen } = parsed
  useMemoryTmpdir()
  print(`seed ${options.seed}`)
  const started = performance.now()
  let findings = 0
  for (const { name, title, skipReason: obstacle, run } of chosen) {
    print(`\n== ${name}: ${title}`)
    const skipReason = obstacle?.()
    if (skipReason !== undefined) {
      print(`skipped: ${skipReason}`)
      continue
    }
    const partFindings = await run(options, print).catch((error: unknown) => [describeError(error)])
    for (const finding of partFindings) print(`\n!! ${finding}\n`)
    findings += partFindings.length
  }
  print(
    `\n${findings === 0 ? 'nothing found' : `${findings} findings`}, seed ${options.seed}, ${formatElapsed(started)}`,
  )
  return findings === 0 ? 0 : 1
}

try {
  process.exitCode = await main()
} catch (error) {
  if (!(error instanceof TypeError)) throw error
  process.stderr.write(`${error.message}\n\n${usage}`)
  process.exitCode = 2
}
