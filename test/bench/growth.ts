import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { fill, makeTemplate, type FilledDatabase } from './growth/databases.ts'
import {
  measureBackup,
  measureKillUnderLoad,
  measurePurge,
  measureStarts,
  type Measurements,
} from './growth/measurements.ts'
import { measureRound, openServer, type Samples, type BenchServer } from './growth/measure.ts'
import { callsTable, factsTable, type SizeResult } from './growth/table.ts'
import { memoryMegabytes, moveToLoadCore } from './machine.ts'

// `npm run bench:growth [-- OPTIONS]`: measures the cost of a long history. Fills a database of each size, runs a server
// on each at the same time, and calls them in turn.

const usage = `npm run bench:growth -- [options]

  --sizes N,...    OTP requests, default 10000,1000000; 10000000 needs 15 GB and an hour
  --rounds N       default 5
  --seconds N      of load for each call in each round, default 1
  --binary FILE    what is measured, default dist/otpd
  --keep           leaves the databases for the next run in ${join(tmpdir(), 'otpd-growth')}
`

const { values } = parseArgs({
  options: {
    sizes: { type: 'string', default: '10000,1000000' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '1' },
    binary: { type: 'string', default: resolve(import.meta.dir, '../../dist/otpd') },
    keep: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
const print = (text: string) => process.stdout.write(`${text}\n\n`)
const logProgress = (text: string) => process.stderr.write(`${text}\n`)
if (values.help) {
  process.stdout.write(usage)
  process.exit(0)
}
const { binary } = values
const rounds = Array.from({ length: Number(values.rounds) }, (_, index) => index + 1)

async function fillAll(root: string): Promise<FilledDatabase[]> {
  const model = join(root, 'model')
  if (!existsSync(join(model, 'model.json'))) await makeTemplate(binary, model)
  const filled: FilledDatabase[] = []
  for (const size of values.sizes.split(',')) {
    logProgress(`filling ${size}`)
    filled.push(await fill(binary, model, join(root, size), Number(size)))
  }
  return filled
}

/** Measures all sizes in turn, round after round. */
async function measureRepeatedly<T>(
  label: string,
  all: readonly T[],
  measureOnce: (server: T) => Promise<Measurements>,
): Promise<Measurements[][]> {
  const facts = all.map((): Measurements[] => [])
  for (const round of rounds) {
    logProgress(`${label} ${round} of ${rounds.length}`)
    for (const [index, one] of all.entries()) facts[index]?.push(await measureOnce(one))
  }
  return facts
}

async function callAll(servers: readonly BenchServer[]): Promise<Samples[][]> {
  const samples = servers.map((): Samples[] => [])
  // Round 0 warms up.
  for (const round of [0, ...rounds]) {
    logProgress(`calls ${round} of ${rounds.length}`)
    const measured = await measureRound(servers, Number(values.seconds))
    if (round > 0) for (const [index, one] of measured.entries()) samples[index]?.push(one)
  }
  return samples
}

async function run(root: string): Promise<SizeResult[]> {
  const filled = await fillAll(root)
  const disk = filled.map((one) => ({ 'disk for a request, bytes': one.bytes / one.requests }))
  const starts = await measureRepeatedly('starts', filled, (one) => measureStarts(binary, one))
  const servers: BenchServer[] = []
  try {
    for (const one of filled) servers.push(await openServer([binary], one))
    const calls = await callAll(servers)
    print(
      callsTable(filled.map(({ requests }, index) => ({ requests, rounds: calls[index] ?? [], facts: [] }))),
    )
    const memory = servers.map(({ otpd }) => ({ 'memory after the load, MB': memoryMegabytes(otpd.pid) }))
    const backups = await measureRepeatedly('backups', servers, (one) => measureBackup(binary, one))
    const kills: Measurements[] = []
    for (const server of servers) kills.push(await measureKillUnderLoad(binary, server))
    const purges = await measureRepeatedly('purges', filled, measurePurge)
    return filled.map(({ requests }, index) => ({
      requests,
      rounds: calls[index] ?? [],
      facts: [
        disk.slice(index, index + 1),
        starts[index],
        kills.slice(index, index + 1),
        memory.slice(index, index + 1),
        backups[index],
        purges[index],
      ].flatMap((all): Measurements[] => all ?? []),
    }))
  } finally {
    for (const { otpd } of servers) await otpd.stop()
  }
}

moveToLoadCore()
const root = join(tmpdir(), 'otpd-growth')
mkdirSync(root, { recursive: true })
process.on('exit', () => {
  if (!values.keep) rmSync(root, { recursive: true, force: true })
})
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1))

const sizes = await run(root)
print(factsTable(sizes))
process.exit(0)
