import { mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Database } from 'bun:sqlite'
import { logIn, type TestApp } from '../helpers/webhook-client.ts'
import {
  countStatuses,
  send,
  violationUnless,
  verify,
  watchHealth,
  waitUntil,
  type CallResult,
} from './calls.ts'
import type { FaultFamily, Trial } from './family.ts'
import { makeHome, startServerAt, type Home } from './server.ts'
import { buildShim, createShim, errno } from './disk-shim.ts'

const healsMsMax = 5_000
const callsWhileFull = 200

/** Disk that can be filled up and freed. */
type Disk = { fill(): void; free(): void; remove(): void; env: Record<string, string> }

export const full: FaultFamily = {
  name: 'full',
  description: 'a full disk, and free space again',
  counts: { fillings: { full: 10, short: 1 } },
  async run(trial) {
    const library = buildShim(trial.folder)
    for (let i = 0; i < trial.count('fillings'); i++) {
      const serverHome = makeHome(trial, `refused-writes-${i}`)
      const shim = createShim(library, trial.folder, serverHome.dataDir)
      await tryDisk(trial, serverHome, 'every write fails with ENOSPC', {
        env: shim.env(),
        fill: () => shim.set('writeErrno', errno.ENOSPC),
        free: () => shim.set('writeErrno', 0),
        remove: shim.close,
      })
    }
    if (process.getuid?.() !== 0) {
      process.stdout.write(' - skipped: only root can mount a small tmpfs\n')
      return
    }
    for (let i = 0; i < trial.count('fillings'); i++) {
      const serverHome = makeHome(trial, `small-disk-${i}`)
      await tryDisk(
        trial,
        serverHome,
        'a disk of 8 MB that is full to the last byte',
        makeSmallDisk(serverHome),
      )
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
const toSent = ({ data: { requestId, code } }: CallResult): Sent => ({ requestId, code })

async function tryDisk(trial: Trial, serverHome: Home, scenario: string, disk: Disk): Promise<void> {
  try {
    let server = await startServerAt(serverHome, disk.env)
    const client = await logIn(server.url)
    const app = await client.createApplication()
    const sentBefore = await sendMany(server.url, app, 20)
    const stopWatch = watchHealth(server.url)

    disk.fill()
    // Sends that fit into existing pages of the write-ahead log may succeed, and must then survive.
    const whileFull = await Promise.all(
      Array.from({ length: callsWhileFull }, async () => await send(server.url, app)),
    )
    const accepted = whileFull.filter(({ status }) => status === 201)
    const firstSent = sentBefore[0]
    const verifyWhileFull = await verify(server.url, app, firstSent?.requestId, firstSent?.code)
    const readStartedAt = performance.now()
    const reads = await client.call<unknown[]>('GET', '/v1/otp').then(
      (rows) => rows.length,
      () => -1,
    )
    const readTookMs = Math.round(performance.now() - readStartedAt)
    const ready = await fetch(`${server.url}/v1/health/ready`)

    const freedAt = performance.now()
    disk.free()
    const isHealed = await waitUntil(
      trial.allowMs(healsMsMax),
      async () => (await send(server.url, app)).status === 201,
    )
    const healedMs = Math.round(performance.now() - freedAt)
    const health = await stopWatch()
    const exitedEarly = await Promise.race([server.exited, Promise.resolve(null)])
    await server.stop('SIGKILL')
    server = await startServerAt(serverHome)
    const acknowledged = [...sentBefore, ...accepted.map(toSent)]
    const lost = await findLost(serverHome, acknowledged)
    const verified = await verify(server.url, app, sentBefore[1]?.requestId, sentBefore[1]?.code)
    await server.stop()

    const unexpected = whileFull.filter(({ status }) => status !== 201 && status !== 503)
    const withoutRetryAfter = whileFull.filter(
      ({ status, headers }) => status === 503 && !headers.get('retry-after'),
    )
    trial.report({
      scenario: `${scenario}: ${callsWhileFull} sends at once, then space again, then kill -9`,
      guarantee:
        'writes that fail are 503 with Retry-After, reads and health work, recovery within 5 s, nothing lost',
      figures: {
        answered: countStatuses(whileFull),
        'verify while full': verifyWhileFull.status,
        'ready while full': ready.status,
        'read ms': readTookMs,
        'health p99 ms': health.p99Ms,
        'healed after ms': healedMs,
        acknowledged: acknowledged.length,
        lost: lost.length,
      },
      violations: [
        ...violationUnless(unexpected.length === 0, `unexpected responses: ${countStatuses(unexpected)}`),
        ...violationUnless(accepted.length < callsWhileFull, 'the disk was not full: nothing was refused'),
        ...violationUnless(
          withoutRetryAfter.length === 0,
          `${withoutRetryAfter.length} times 503 without Retry-After`,
        ),
        ...violationUnless(
          verifyWhileFull.status === 503 || verifyWhileFull.status === 200,
          `a verification was ${verifyWhileFull.status}`,
        ),
        ...violationUnless(reads > 0, 'reads failed'),
        ...violationUnless(ready.status === 503 || accepted.length > 0, `readiness was ${ready.status}`),
        ...violationUnless(health.failed === 0, `health failed ${health.failed} times`),
        ...violationUnless(isHealed, `not recovered after ${healedMs} ms`),
        ...violationUnless(exitedEarly === null, `the server ended with ${exitedEarly}`),
        ...violationUnless(lost.length === 0, `lost ${lost.slice(0, 3).join(', ')}`),
        ...violationUnless(
          verified.status === 200,
          `afterwards verifying an earlier code was ${verified.status}`,
        ),
      ],
    })
  } finally {
    disk.remove()
  }
}

async function sendMany(url: string, app: TestApp, count: number): Promise<Sent[]> {
  const responses = await Promise.all(Array.from({ length: count }, () => send(url, app)))
  return responses.filter(({ status }) => status === 201).map(toSent)
}

/** Lists acknowledged requests that are missing, or what is wrong with the file. */
export async function findLost({ dataDir }: Home, acknowledged: readonly Sent[]): Promise<string[]> {
  const database = new Database(join(dataDir, 'otpd.db'), { readonly: true })
  try {
    const check = database.query<{ integrity_check: string }, []>('PRAGMA integrity_check').get()
    if (check?.integrity_check !== 'ok') return [`the integrity: ${check?.integrity_check}`]
    const rows = database.query<{ id: string }, []>('select id from otp_requests').all()
    const storedIds = new Set(rows.map(({ id }) => id))
    return acknowledged.flatMap(({ requestId }) =>
      typeof requestId === 'string' && storedIds.has(requestId) ? [] : [String(requestId)],
    )
  } finally {
    database.close()
  }
}
