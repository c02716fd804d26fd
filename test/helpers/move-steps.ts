import { connect } from '../../src/store/sqlite/database.ts'
import { moveToPostgres, type MoveStep } from '../../src/store/move/to-postgres.ts'
import { connectTo } from '../../src/store/postgres/connect.ts'

// Moves a SQLite file to PostgreSQL, and kills this process at the given step: file, URL, step, `restart` or nothing.
// Prints the name of each step.

const [file = '', url = '', dieAt = '', restart] = process.argv.slice(2)
let number = 0

function onStep({ step }: MoveStep) {
  process.stdout.write(`${step}\n`)
  if (number++ === Number(dieAt)) process.kill(process.pid, 'SIGKILL')
}

const source = connect(file, 1000)
const client = await connectTo(url)
const result = await moveToPostgres(source, client, {
  dryRun: false,
  restart: restart === 'restart',
  now: 0,
  target: 'db/otpd',
  onStep,
})
process.stdout.write(`${result.outcome}\n`)
await client.end()
