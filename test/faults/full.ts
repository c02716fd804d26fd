import { mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Database } from 'bun:sqlite'
import { logIn, type TestApp } from '../helpers/webhook-client.ts'
import { countStatuses, send, unless, verify, watchHealth, within, type Answer } from './calls.ts'
import type { Family, Trial } from './family.ts'
import { makeHome, startAt, type Home } from './server.ts'
import { buildShim, createShim, errno } from './shim.ts'

const healsMsMax = 5_000
const callsWhileFull = 200

/** A disk that can be filled and freed. */
type Disk = { fill(): void; free(): void; remove(): void; env: Record<string, string> }

export const full: Family = {
  name: 'full',
  about: 'a disk without space, and with space again',
  counts: { fillings: { full: 10, short: 1 } },
  async run(trial) {
    const library = buildShim(trial.folder)
    for (let i = 0; i < trial.count('fillings'); i++) {
      const at = makeHome(trial, `refused-writes-${i}`)
      const shim = createShim(library, trial.folder, at.dataDir)
      await tryDisk(trial, at, 'every write fails with ENOSPC', {
        env: shim.env(),
        fill: () => shim.set('writeErrno', errno.ENOSPC),
        free: () => shim.set('writeErrno', 0),
        remove: shim.close,
      })
    }
    if (process.getuid?.() !== 0) {
      process.stdout.write(' - skipped: only root makes a small disk of memory\n')
      return
    }
    for (let i = 0; i < trial.count('fillings'); i++) {
      const at = makeHome(trial, `small-disk-${i}`)
      await tryDisk(trial, at, 'a disk of 8 MB that is full to the last byte', makeSmallDisk(at))
    }
  },
}

function makeSmallDisk({ dataDir }: Home): Disk {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const { exitCode } = Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'size=8m,mode=0700', 'none', dataDir])
  if (exitCode !== 0) throw new Error('the small disk could not be mounted')
  const ballast = join(dataDir, 'ballast')
  return {
    env: {},
    fill() {
      const { bavail, bsize } = statfsSync(dataDir)
      writeFileSync(ballast, Buffer.alloc(bavail * bsize), { mode: 0o600 })
    },
    free: () => rmSync(ballast),
    remove: () => void Bun.spawnSync(['umount', '--lazy', dataDir]),
  }
}

type Sent = { requestId: unknown; code: unknown }
const sentOf = ({ data: { requestId, code } }: Answer): Sent => ({ requestId, code })

async function tryDisk(trial: Trial, at: Home, tried: string, disk: Disk): Promise<void> {
  try {
    let server = await startAt(at, disk.env)
    const client = await logIn(server.url)
    const app = await client.createApplication()
    const before = await sendMany(server.url, app, 20)
    const stopWatch = watchHealth(server.url)

    disk.fill()
    // What still fits into the log's pages that are there already may be stored, and is then promised.
    const whileFull = await Promise.all(
      Array.from({ length: callsWhileFull }, async () => await send(server.url, app)),
    )
    const stored = whileFull.filter(({ status }) => status === 201)
    const firstSent = before[0]
    const wrongly = await verify(server.url, app, firstSent?.requestId, firstSent?.code)
    const readMs = performance.now()
    const reads = await client.call<unknown[]>('GET', '/v1/otp').then(
      (rows) => rows.length,
      () => -1,
    )
    const readTookMs = Math.round(performance.now() - readMs)
    const ready = await fetch(`${server.url}/v1/health/ready`)

    const freedAt = performance.now()
    disk.free()
    const healed = await within(
      trial.allowMs(healsMsMax),
      async () => (await send(server.url, app)).status === 201,
    )
    const healedMs = Math.round(performance.now() - freedAt)
    const health = await stopWatch()
    const stillRuns = await Promise.race([server.exited, Promise.resolve(null)])
    await server.stop('SIGKILL')
    server = await startAt(at)
    const acknowledged = [...before, ...stored.map(sentOf)]
    const lost = await findLost(at, acknowledged)
    const verified = await verify(server.url, app, before[1]?.requestId, before[1]?.code)
    await server.stop()

    const others = whileFull.filter(({ status }) => status !== 201 && status !== 503)
    const unhelpful = whileFull.filter(({ status, headers }) => status === 503 && !headers.get('retry-after'))
    trial.report({
      tried: `${tried}: ${callsWhileFull} sends at once, then space again, then kill -9`,
      promised:
        'what is not stored is 503 with Retry-After, reads and health answer, healed within 5 s, nothing lost',
      figures: {
        answered: countStatuses(whileFull),
        'verify while full': wrongly.status,
        'ready while full': ready.status,
        'read ms': readTookMs,
        'health p99 ms': health.p99Ms,
        'healed after ms': healedMs,
        acknowledged: acknowledged.length,
        lost: lost.length,
      },
      broken: [
        ...unless(others.length === 0, `answers that are neither: ${countStatuses(others)}`),
        ...unless(stored.length < callsWhileFull, 'the disk was not full: nothing was refused'),
        ...unless(unhelpful.length === 0, `${unhelpful.length} times 503 without Retry-After`),
        ...unless(wrongly.status === 503 || wrongly.status === 200, `a verification was ${wrongly.status}`),
        ...unless(reads > 0, 'what is stored could not be read'),
        ...unless(ready.status === 503 || stored.length > 0, `readiness was ${ready.status}`),
        ...unless(health.failed === 0, `health failed ${health.failed} times`),
        ...unless(healed, `not healed after ${healedMs} ms`),
        ...unless(stillRuns === null, `the server ended with ${stillRuns}`),
        ...unless(lost.length === 0, `lost ${lost.slice(0, 3).join(', ')}`),
        ...unless(verified.status === 200, `afterwards a code of before was ${verified.status}`),
      ],
    })
  } finally {
    disk.remove()
  }
}

async function sendMany(url: string, app: TestApp, count: number): Promise<Sent[]> {
  const answers = await Promise.all(Array.from({ length: count }, () => send(url, app)))
  return answers.filter(({ status }) => status === 201).map(sentOf)
}

/** The requests that were acknowledged and do not stand; or what is wrong with the file. */
export async function findLost({ dataDir }: Home, acknowledged: readonly Sent[]): Promise<string[]> {
  const database = new Database(join(dataDir, 'otpd.db'), { readonly: true })
  try {
    const check = database.query<{ integrity_check: string }, []>('PRAGMA integrity_check').get()
    if (check?.integrity_check !== 'ok') return [`the integrity: ${check?.integrity_check}`]
    const rows = database.query<{ id: string }, []>('select id from otp_requests').all()
    const there = new Set(rows.map(({ id }) => id))
    return acknowledged.flatMap(({ requestId }) =>
      typeof requestId === 'string' && there.has(requestId) ? [] : [String(requestId)],
    )
  } finally {
    database.close()
  }
}
