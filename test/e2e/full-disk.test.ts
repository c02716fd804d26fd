import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Database } from 'bun:sqlite'
import { mkdirSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startServer, type RunningServer } from '../helpers/binary.ts'
import { logIn, makeServerHome, sendOtp, type TestApp } from '../helpers/webhook-client.ts'

// A disk of 8 MB that is full but for one page, so that a probe of readiness fits and a code does not.

const pageBytes = 4096

let server: RunningServer
let dataDir: string
let app: TestApp

// Only root may mount a disk.
const isRoot = process.getuid?.() === 0

beforeAll(async () => {
  if (!isRoot) return
  const home = makeServerHome()
  dataDir = join(home.home, 'data')
  mkdirSync(dataDir, { mode: 0o700 })
  const mounted = Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'size=8m,mode=0700', 'none', dataDir])
  expect(mounted.exitCode).toBe(0)
  server = await startServer({ ...home, dataDir })
  app = await (await logIn(server.url)).createApplication()
})
afterAll(async () => {
  if (!isRoot) return
  await server.stop()
  Bun.spawnSync(['umount', dataDir])
})

const send = () => sendOtp(server.url, app, '+14155550123')
const ballast = () => join(dataDir, 'ballast')

test.skipIf(!isRoot)('a full disk is told by health and doctor, until there is room', async () => {
  expect(await send()).toBeDefined()
  const { bavail, bsize } = statfsSync(dataDir)
  writeFileSync(ballast(), Buffer.alloc(bavail * bsize - pageBytes))
  expect(await send()).toBeUndefined()

  const health = await server.otpd(['health'])
  expect(health).toMatchObject({
    exitCode: 8,
    stdout: `✗ ${server.url} is not ready: the disk of its database is full\n`,
  })
  const liveness = await fetch(`${server.url}/v1/health`)
  expect(await liveness.json()).toMatchObject({ data: { status: 'operational' } })
  const doctor = await server.otpd(['doctor'], { env: { OTPD_DATA_DIR: dataDir } })
  expect(doctor.stdout).toMatch(/✗ disk space +0 MB free\n/)
  expect(doctor.stdout).toMatch(/✗ server +.* is not ready: the disk of its database is full\n/)

  rmSync(ballast())
  expect(await server.otpd(['health', '--wait', '10s'])).toMatchObject({ exitCode: 0 })
  expect(await send()).toBeDefined()
})

test.skipIf(!isRoot)('a backup for which there is no room leaves nothing behind', async () => {
  // More than SQLite keeps in memory while it copies.
  const database = new Database(join(dataDir, 'otpd.db'))
  database.run(`insert into meta (name, value)
    with recursive numbers as (select 1 as number union all select number + 1 from numbers limit 6000)
    select 'filler ' || number, hex(randomblob(200)) from numbers`)
  database.run('PRAGMA wal_checkpoint(TRUNCATE)')
  database.close()
  const { bavail, bsize } = statfsSync(dataDir)
  writeFileSync(ballast(), Buffer.alloc(bavail * bsize - 300 * pageBytes))
  const names = readdirSync(dataDir)
  const backup = await server.otpd(['backup', join(dataDir, 'copy.db'), '--data-dir', dataDir])
  expect([backup.exitCode, backup.stderr]).toEqual([6, expect.stringContaining('the disk is full')])
  expect(readdirSync(dataDir)).toEqual(names)
  rmSync(ballast())
})
