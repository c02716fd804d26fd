import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { markdownTable } from './table.ts'

// `npm run bench:lines`: how many lines of how many files of `src` one call executes, from the listener to the rows, on
// SQLite with the message in the inbox. Counted by Bun's coverage, as the difference of runs with one call more each.

const root = resolve(import.meta.dir, '../..')
/** Calls of the runs: a line belongs to a call if each of the three steps executes it once more at least. */
const counts = [3, 4, 5, 6]
const coverage = ['--coverage', '--coverage-reporter=lcov']
const kinds = ['send', 'verify', 'log page', 'webhook']

/** Runs the calls. @returns how often each line of `src` was executed, by `file:line` */
async function countLines(kind: string, count: number): Promise<Map<string, number>> {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-coverage-'))
  try {
    const run = Bun.spawn(
      [
        process.execPath,
        'test',
        ...coverage,
        `--coverage-dir=${folder}`,
        './test/bench/executed-lines/calls.ts',
      ],
      {
        cwd: root,
        env: { ...process.env, EXECUTED_LINES_KIND: kind, EXECUTED_LINES_COUNT: String(count) },
        stdout: 'pipe',
        stderr: 'pipe',
      },
    )
    const [status, output] = await Promise.all([run.exited, run.stderr.text()])
    if (status !== 0) throw new Error(output)
    return readLcov(readFileSync(join(folder, 'lcov.info'), 'utf8'))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function readLcov(text: string): Map<string, number> {
  const lines = new Map<string, number>()
  let file = ''
  for (const entry of text.split('\n')) {
    if (entry.startsWith('SF:')) file = entry.slice(3)
    const [, line, hits] = /^DA:(\d+),(\d+)/.exec(entry) ?? []
    if (line !== undefined && file.startsWith('src/')) lines.set(`${file}:${line}`, Number(hits))
  }
  return lines
}

/** Lists the lines that one call of a kind executes. */
async function linesOfCall(kind: string): Promise<string[]> {
  const runs: Array<Map<string, number>> = []
  for (const count of counts) runs.push(await countLines(kind, count))
  return [...(runs[0]?.keys() ?? [])].filter((line) =>
    runs.every((run, index) => index === 0 || (run.get(line) ?? 0) > (runs[index - 1]?.get(line) ?? 0)),
  )
}

const countFiles = (lines: readonly string[], folder = 'src/') =>
  new Set(lines.map((line) => line.split(':')[0]).filter((file) => file?.startsWith(folder))).size

const rows: string[][] = []
let sendLines: ReadonlySet<string> = new Set()
for (const kind of kinds) {
  const executed = await linesOfCall(kind)
  if (kind === 'send') sendLines = new Set(executed)
  // A webhook begins with a send; only what its delivery adds counts.
  const own = kind === 'webhook' ? executed.filter((line) => !sendLines.has(line)) : executed
  const title = kind === 'webhook' ? 'webhook, beyond its send' : kind
  rows.push([title, String(own.length), String(countFiles(own)), String(countFiles(own, 'src/store/'))])
}
process.stdout.write(`${markdownTable(['a call', 'lines', 'files', 'in src/store'], rows)}\n`)
