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
import { send, violationUnless, verify, waitUntil } from './calls.ts'
import type { FaultFamily, Trial } from './family.ts'
import { findLost } from './full.ts'
import { makeHome, startServerAt, type Home } from './server.ts'

const pageBytes = 4096

export const damage: FaultFamily = {
  name: 'damage',
  description: 'garbage in the write-ahead log, and a database page damaged by the disk',
  counts: { damages: { full: 10, short: 1 } },
  async run(trial) {
    const times = trial.count('damages')
    await repeatDamage(trial, times, {
      scenario: 'a write-ahead log of random bytes next to a cleanly closed database',
      guarantee: 'the server starts with everything that was acknowledged',
      signal: 'SIGTERM',
      corrupt: (serverHome) =>
        writeFileSync(walPath(serverHome), randomBytes(trial, 64 * 1024), { mode: 0o600 }),
    })
    await repeatDamage(trial, times, {
      scenario: 'random bytes at the end of the write-ahead log of a killed server',
      guarantee: 'the server starts with everything that was acknowledged',
      signal: 'SIGKILL',
      corrupt: (serverHome) =>
        appendFileSync(walPath(serverHome), randomBytes(trial, 1 + Math.floor(trial.random() * 64 * 1024))),
    })
    await repeatDamage(trial, times, {
      scenario: 'random bytes in the shared-memory index of the write-ahead log of a killed server',
      guarantee: 'the server starts with everything that was acknowledged',
      signal: 'SIGKILL',
      corrupt: (serverHome) =>
        writeFileSync(`${databasePath(serverHome)}-shm`, randomBytes(trial, 32 * 1024), { mode: 0o600 }),
    })
    // A start reads requests anyway, but reads the event log only when it checks for damage.
    for (const table of ['otp_requests', 'events']) {
      for (let i = 0; i < times; i++) await corruptPage(trial, table, i)
    }
  },
}

const databasePath = ({ dataDir }: Home) => join(dataDir, 'otpd.db')
const walPath = (serverHome: Home) => `${databasePath(serverHome)}-wal`
const randomBytes = ({ random }: Trial, bytes: number) =>
  Buffer.from(Array.from({ length: bytes }, () => Math.floor(random() * 256)))

type Damage = {
  scenario: string
  guarantee: string
  signal: 'SIGTERM' | 'SIGKILL'
  corrupt(serverHome: Home): void
}

let homes = 0

/** Creates a home with acknowledged requests whose server has stopped. */
async function createUsedHome(trial: Trial, signal: Damage['signal'], sends: number) {
  const serverHome = makeHome(trial, `used-${homes++}`)
  const server = await startServerAt(serverHome)
  const app = await (await logIn(server.url)).createApplication()
  const responses = await Promise.all(Array.from({ length: sends }, () => send(server.url, app)))
  await server.stop(signal)
  const acknowledged = responses
    .filter(({ status }) => status === 201)
    .map(({ data: { requestId, code } }) => ({ requestId, code }))
  return { serverHome, app, acknowledged }
}

async function repeatDamage(
  trial: Trial,
  times: number,
  { scenario, guarantee, signal, corrupt }: Damage,
): Promise<void> {
  const violations: string[] = []
  let acknowledgedCount = 0
  let logBytes = 0
  for (let i = 0; i < times; i++) {
    const { serverHome, app, acknowledged } = await createUsedHome(trial, signal, 50)
    acknowledgedCount += acknowledged.length
    logBytes += existsSync(walPath(serverHome)) ? statSync(walPath(serverHome)).size : 0
    corrupt(serverHome)
    try {
      const server = await startServerAt(serverHome)
      const [first] = acknowledged
      const verified = await verify(server.url, app, first?.requestId, first?.code)
      await server.stop()
      violations.push(
        ...(await findLost(serverHome, acknowledged)),
        ...violationUnless(verified.status === 200, `verifying an earlier code was ${verified.status}`),
      )
    } catch (error) {
      violations.push(String(error).slice(0, 300))
    }
  }
  trial.report({
    scenario: `${scenario}, ${times} times`,
    guarantee,
    figures: {
      acknowledged: acknowledgedCount,
      'log KB': Math.round(logBytes / 1024),
      lost: violations.length,
    },
    violations,
  })
}

/** Overwrites a page of the file directly, after an unclean stop. */
async function corruptPage(trial: Trial, table: string, number: number): Promise<void> {
  const { serverHome } = await createUsedHome(trial, 'SIGTERM', 200)
  forgetStop(serverHome)
  const page = choosePage(trial, serverHome, table)
  const file = openSync(databasePath(serverHome), 'r+')
  writeSync(file, randomBytes(trial, 2_000), 0, 2_000, (page - 1) * pageBytes + 100)
  closeSync(file)
  writeFileSync(walPath(serverHome), randomBytes(trial, pageBytes), { mode: 0o600 })
  const fileBefore = readFileSync(databasePath(serverHome))

  let output = ''
  try {
    const server = await startServerAt(serverHome)
    await waitUntil(trial.allowMs(5_000), () => /damaged|could not be checked|is whole/.test(server.log()))
    output = server.log()
    await server.stop()
  } catch (error) {
    output = String(error)
  }
  const isReported = /damaged|could not be checked/.test(output) && !output.includes('is whole')
  const pageAfter = readFileSync(databasePath(serverHome)).subarray((page - 1) * pageBytes, page * pageBytes)
  trial.report({
    scenario: `page ${page} of the database, in ${table}, is overwritten after an unclean stop (${number + 1})`,
    guarantee: 'the start is refused, or the log reports that the database is damaged',
    figures: { told: isReported ? 'yes' : 'no' },
    violations: [
      ...violationUnless(isReported, `the damage is not reported: ${output.slice(-300)}`),
      ...violationUnless(
        pageAfter.equals(fileBefore.subarray((page - 1) * pageBytes, page * pageBytes)),
        'otpd overwrote the damaged page',
      ),
    ],
  })
}

/** Makes a clean stop one that was not: a server that is killed does not record it. */
function forgetStop(serverHome: Home): void {
  const connection = new Database(databasePath(serverHome))
  connection.run(`delete from meta where name = 'clean_stop'`)
  connection.close()
}

/** Chooses a random leaf page of a table, which holds rows. */
function choosePage({ random }: Trial, serverHome: Home, table: string): number {
  const bytes = readFileSync(databasePath(serverHome))
  const connection = new Database(databasePath(serverHome), { readonly: true })
  const root = connection
    .query<{ rootpage: number }, [string]>('select rootpage from sqlite_schema where name = ?')
    .get(table)?.rootpage
  connection.close()
  const children: number[] = []
  const start = ((root ?? 1) - 1) * pageBytes
  // An interior page has a header of 12 bytes and an array of cells that begin with the page number of a child.
  const cells = bytes.readUInt16BE(start + 3)
  for (let cell = 0; cell < cells; cell++) {
    children.push(bytes.readUInt32BE(start + bytes.readUInt16BE(start + 12 + cell * 2)))
  }
  return children[Math.floor(random() * children.length)] ?? root ?? 1
}
