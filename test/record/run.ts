import { createHash } from 'node:crypto'
import { closeSync, openSync, writeSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { openTestPostgres, openTestSqlite } from '../helpers/databases.ts'
import { record } from './record.ts'

const usage = `npm run record -- [--out FILE] [--calls N] [--seed N] [--postgres URL]

Writes what this build answers, sends and stores for scripted calls. The records of two builds that behave alike are
the same, byte for byte: record both, and compare the files or the hashes that are printed.

  --out       one JSON object per line; without it only the hash is printed
  --calls     default 5000
  --seed      default 1
  --postgres  on a database of this server, instead of SQLite
`

const { values } = parseArgs({
  options: {
    out: { type: 'string' },
    calls: { type: 'string', default: '5000' },
    seed: { type: 'string', default: '1' },
    postgres: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  process.stdout.write(usage)
  process.exit(0)
}

const options = { calls: Number(values.calls), seed: Number(values.seed) }
await using cleanups = new AsyncDisposableStack()
const opened = await (values.postgres === undefined ? openTestSqlite() : openTestPostgres(values.postgres))
cleanups.defer(() => opened.dispose())
const file = values.out === undefined ? undefined : openSync(values.out, 'w')
const hash = createHash('sha256')
let lines = 0
let calls = 0
const progressCalls = 500
await record(opened.database, options, (line) => {
  lines++
  hash.update(`${line}\n`)
  if (file !== undefined) writeSync(file, `${line}\n`)
  if (line.startsWith('{"number":') && ++calls % progressCalls === 0)
    process.stderr.write(`${calls} of ${options.calls} calls\n`)
})
if (file !== undefined) closeSync(file)
process.stdout.write(`${hash.digest('hex')}  ${lines} lines, ${options.calls} calls, seed ${options.seed}\n`)
