import {
  appendFileSync,
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { Database } from 'bun:sqlite'
import { logIn } from '../helpers/webhook-client.ts'
import { send, unless, verify, within } from './calls.ts'
import type { Family, Trial } from './family.ts'
import { findLost } from './full.ts'
import { makeHome, startAt, type Home } from './server.ts'

const pageBytes = 4096

export const damage: Family = {
  name: 'damage',
  about: 'garbage in the write-ahead log, and a page of the database that a disk has spoilt',
  counts: { damages: { full: 10, short: 1 } },
  async run(trial) {
    const times = trial.count('damages')
    await repeat(trial, times, {
      tried: 'a write-ahead log of random bytes beside a database that was closed',
      promised: 'the server starts, and has all that was acknowledged',
      end: 'SIGTERM',
      harm: (at) => writeFileSync(log(at), noise(trial, 64 * 1024), { mode: 0o600 }),
    })
    await repeat(trial, times, {
      tried: 'random bytes behind the write-ahead log of a server that was killed',
      promised: 'the server starts, and has all that was acknowledged',
      end: 'SIGKILL',
      harm: (at) => appendFileSync(log(at), noise(trial, 1 + Math.floor(trial.random() * 64 * 1024))),
    })
    await repeat(trial, times, {
      tried: 'no shared memory beside the write-ahead log of a server that was killed, but noise',
      promised: 'the server starts, and has all that was acknowledged',
      end: 'SIGKILL',
      harm: (at) => writeFileSync(`${database(at)}-shm`, noise(trial, 32 * 1024), { mode: 0o600 }),
    })
    // A start reads the requests; of the log it sees nothing, unless it looks for damage.
    for (const table of ['otp_requests', 'events']) {
      for (let i = 0; i < times; i++) await spoilPage(trial, table, i)
    }
  },
}

const database = ({ dataDir }: Home) => join(dataDir, 'otpd.db')
const log = (at: Home) => `${database(at)}-wal`
const noise = ({ random }: Trial, bytes: number) =>
  Buffer.from(Array.from({ length: bytes }, () => Math.floor(random() * 256)))

type Damage = {
  tried: string
  promised: string
  end: 'SIGTERM' | 'SIGKILL'
  harm(at: Home): void
}

let homes = 0

/** A home with acknowledged requests, whose server has ended. */
async function leave(trial: Trial, end: Damage['end'], sends: number) {
  const at = makeHome(trial, `used-${homes++}`)
  const server = await startAt(at)
  const app = await (await logIn(server.url)).createApplication()
  const answers = await Promise.all(Array.from({ length: sends }, () => send(server.url, app)))
  await server.stop(end)
  const acknowledged = answers
    .filter(({ status }) => status === 201)
    .map(({ data: { requestId, code } }) => ({ requestId, code }))
  return { at, app, acknowledged }
}

async function repeat(trial: Trial, times: number, { tried, promised, end, harm }: Damage): Promise<void> {
  const broken: string[] = []
  let all = 0
  let logBytes = 0
  for (let i = 0; i < times; i++) {
    const { at, app, acknowledged } = await leave(trial, end, 50)
    all += acknowledged.length
    logBytes += existsSync(log(at)) ? statSync(log(at)).size : 0
    harm(at)
    try {
      const server = await startAt(at)
      const [first] = acknowledged
      const verified = await verify(server.url, app, first?.requestId, first?.code)
      await server.stop()
      broken.push(
        ...(await findLost(at, acknowledged)),
        ...unless(verified.status === 200, `a code of before was ${verified.status}`),
      )
    } catch (error) {
      broken.push(String(error).slice(0, 300))
    }
  }
  trial.report({
    tried: `${tried}, ${times} times`,
    promised,
    figures: { acknowledged: all, 'log KB': Math.round(logBytes / 1024), lost: broken.length },
    broken,
  })
}

/** Behind the back of SQLite, after a stop that was not clean. */
async function spoilPage(trial: Trial, table: string, number: number): Promise<void> {
  const { at } = await leave(trial, 'SIGTERM', 200)
  const page = choosePage(trial, at, table)
  const file = openSync(database(at), 'r+')
  writeSync(file, noise(trial, 2_000), 0, 2_000, (page - 1) * pageBytes + 100)
  closeSync(file)
  writeFileSync(log(at), noise(trial, pageBytes), { mode: 0o600 })
  const before = readFileSync(database(at))

  let said = ''
  try {
    const server = await startAt(at)
    await within(trial.allowMs(5_000), () => /damaged|could not be checked|is whole/.test(server.log()))
    said = server.log()
    await server.stop()
  } catch (error) {
    said = String(error)
  }
  const told = /damaged|could not be checked/.test(said) && !said.includes('is whole')
  const kept = readFileSync(database(at)).subarray((page - 1) * pageBytes, page * pageBytes)
  trial.report({
    tried: `page ${page} of the database, in ${table}, is overwritten, and the last stop was not clean (${number + 1})`,
    promised: 'the start is refused, or the log says that the database is damaged; the damage is not hidden',
    figures: { told: told ? 'yes' : 'no' },
    broken: [
      ...unless(told, `it says nothing: ${said.slice(-300)}`),
      ...unless(
        kept.equals(before.subarray((page - 1) * pageBytes, page * pageBytes)),
        'the page was written over',
      ),
    ],
  })
}

/** A leaf of a table, where rows lie. */
function choosePage({ random }: Trial, at: Home, table: string): number {
  const bytes = readFileSync(database(at))
  const connection = new Database(database(at), { readonly: true })
  const root = connection
    .query<{ rootpage: number }, [string]>('select rootpage from sqlite_schema where name = ?')
    .get(table)?.rootpage
  connection.close()
  const children: number[] = []
  const start = ((root ?? 1) - 1) * pageBytes
  // Interior pages have a header of 12 bytes and an array of cells, each beginning with the number of a child.
  const cells = bytes.readUInt16BE(start + 3)
  for (let cell = 0; cell < cells; cell++) {
    children.push(bytes.readUInt32BE(start + bytes.readUInt16BE(start + 12 + cell * 2)))
  }
  return children[Math.floor(random() * children.length)] ?? root ?? 1
}
