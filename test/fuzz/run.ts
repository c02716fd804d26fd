import { statfsSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { jwt } from './jwt.ts'
import { describeError, seconds, type FuzzOptions, type Part } from './part.ts'
import { properties } from './property-runs.ts'
import { races } from './race-rounds.ts'
import { raw } from './raw.ts'
import { schema } from './schema.ts'
import { secrets } from './secrets.ts'
import { tenants } from './tenants.ts'

const usage = `npm run fuzz -- [--only PART,…] [--runs N] [--cases N] [--rounds N] [--seed N] [--short]

  --only    of schema, properties, raw, jwt, tenants, secrets, races; otherwise all
  --runs    of each property and of each corpus that is mutated (2000)
  --cases   of Schemathesis for each operation (50)
  --rounds  of each race (100)
  --seed    repeats an earlier run
  --short   in a minute or two
`

const parts: Part[] = [schema, properties, raw, jwt, tenants, secrets, races]
const print = (line: string) => void process.stdout.write(`${line}\n`)

/** Nothing here is about what survives a power cut, and without a disk it is ten times as fast. */
function preferMemory() {
  try {
    const { bavail, bsize } = statfsSync('/dev/shm')
    if (process.env['TMPDIR'] === undefined && bavail * bsize > 2 ** 31) process.env['TMPDIR'] = '/dev/shm'
  } catch {
    // Not on every system.
  }
}

function readOptions(): { options: FuzzOptions; chosen: Part[] } | undefined {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', default: parts.map(({ name }) => name).join() },
      runs: { type: 'string' },
      cases: { type: 'string' },
      rounds: { type: 'string' },
      seed: { type: 'string' },
      short: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  const number = (text: string | undefined, otherwise: number) => {
    if (text === undefined) return otherwise
    if (!/^\d{1,9}$/.test(text)) throw new TypeError(`${text} is not a number.`)
    return Number(text)
  }
  const { short } = values
  const names = values.only.split(',')
  const unknown = names.find((name) => !parts.some((part) => part.name === name))
  if (unknown !== undefined) throw new TypeError(`There is no part ${unknown}.`)
  if (values.help) return undefined
  return {
    chosen: parts.filter(({ name }) => names.includes(name)),
    options: {
      runs: number(values.runs, short ? 200 : 2_000),
      cases: number(values.cases, short ? 5 : 50),
      rounds: number(values.rounds, short ? 5 : 100),
      seed: number(values.seed, Date.now() % 1_000_000_000),
    },
  }
}

async function main(): Promise<number> {
  const read = readOptions()
  if (!read) {
    print(usage)
    return 0
  }
  const { options, chosen } = read
  preferMemory()
  print(`seed ${options.seed}`)
  const started = performance.now()
  let findings = 0
  for (const { name, title, obstacle, run } of chosen) {
    print(`\n== ${name}: ${title}`)
    const missing = obstacle?.()
    if (missing !== undefined) {
      print(`left out: ${missing}`)
      continue
    }
    const found = await run(options, print).catch((error: unknown) => [describeError(error)])
    for (const finding of found) print(`\n!! ${finding}\n`)
    findings += found.length
  }
  print(
    `\n${findings === 0 ? 'nothing found' : `${findings} findings`}, seed ${options.seed}, ${seconds(started)}`,
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
