import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Sabotage } from './in-file.ts'
import { sabotages } from './sabotages.ts'

const usage = `npm run sabotage -- [--only TEXT] [--sim SECONDS] [--sim-only]

Makes each change of sabotages.ts alone in a copy of the sources, and tells which check notices it, and when: its unit
tests, or else the simulator with new plans.

  --only      changes whose name or file has the text
  --sim       real seconds of simulation if the unit tests notice nothing; default: 120
  --sim-only  leaves the unit tests out
`

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    sim: { type: 'string', default: '120' },
    'sim-only': { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
const print = (text: string) => writeSync(1, `${text}\n`)

if (values.help) {
  print(usage)
  process.exit(0)
}

const root = join(import.meta.dir, '../..')
const chosen = sabotages.filter(({ name, file }) => `${name} ${file}`.includes(values.only))
const copy = mkdtempSync(join(tmpdir(), 'otpd-sabotage-'))
process.on('exit', () => rmSync(copy, { recursive: true, force: true }))
for (const name of [
  'src',
  'cli',
  'test',
  'migrations',
  'package.json',
  'tsconfig.json',
  '.packaging',
  '.github',
  'README.md',
])
  cpSync(join(root, name), join(copy, name), { recursive: true })
symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))

/** Runs a check in the copy. @returns whether it failed, and the seconds that it took */
async function check(args: readonly string[], timeoutSeconds: number) {
  const startedAt = performance.now()
  const child = Bun.spawn([process.execPath, ...args], {
    cwd: copy,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
    timeout: timeoutSeconds * 1000,
  })
  const [output, errors] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  return {
    hasFailed: child.exitCode !== 0,
    output: output + errors,
    seconds: (performance.now() - startedAt) / 1000,
  }
}

const runTests = (tests: readonly string[]) =>
  check(['test', '--bail=1', '--timeout', '60000', ...tests.map((one) => `./${one}`)], 300)

/** Makes one change, and tells which check notices it. */
async function tryOne({ file, from, to, tests }: Sabotage): Promise<string> {
  const path = join(copy, file)
  const source = readFileSync(path, 'utf8')
  if (source.split(from).length !== 2) return 'out of date: its text is not there once'
  writeFileSync(
    path,
    source.replace(from, () => to),
  )
  try {
    let seconds = 0
    if (!values['sim-only']) {
      const unit = await runTests(tests)
      if (unit.hasFailed) return `found by unit tests in ${unit.seconds.toFixed(0)} s`
      ;({ seconds } = unit)
    }
    const limit = Number(values.sim)
    if (limit === 0) return 'not found'
    const sim = await check(['test/sim/run.ts', '--plain', '--seconds', String(limit)], limit + 300)
    const [, rule = ''] = /^seed \d+: ([^:]+):/m.exec(sim.output) ?? []
    return sim.hasFailed
      ? `found by the simulator in ${(seconds + sim.seconds).toFixed(0)} s: ${rule}`
      : 'not found'
  } finally {
    writeFileSync(path, source)
  }
}

if (!values['sim-only']) {
  const all = [...new Set(chosen.flatMap(({ tests }) => tests))]
  const unchanged = await runTests(all)
  if (unchanged.hasFailed) {
    print(`the tests fail without a change:\n${unchanged.output.slice(-3_000)}`)
    process.exit(1)
  }
}
const counts = new Map<string, number>()
for (const sabotage of chosen) {
  const result = await tryOne(sabotage)
  const kind = result.split(/ in |: /)[0] ?? result
  counts.set(kind, (counts.get(kind) ?? 0) + 1)
  print(`${sabotage.file}: ${sabotage.name}: ${result}`)
}
print([...counts].map(([kind, count]) => `${count} ${kind}`).join(', '))
process.exit(counts.size === 1 && counts.has('found by unit tests') ? 0 : 1)
