/**
 * Makes the fixture of a release: `bun test/upgrade/scenario.ts BINARY VERSION`, with the binary of that release. It writes
 * `VERSION.db.gz` and `VERSION.json` to this folder. Needs Linux and gcc: the scenario lasts 47 days of a simulated
 * clock. It drives the server only through the HTTP API and the commands of the binary.
 */
import { Database } from 'bun:sqlite'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createProcessClock } from '../helpers/process-clock.ts'
import { writeFixture } from './fixture.ts'
import { masterKey, publicUrl } from './instance.ts'
import { awaitQuiet } from './quiet.ts'
import { recordResponses } from './recording.ts'
import { startReceivers } from './receivers.ts'
import {
  seedDisabledApplication,
  seedGuard,
  seedRetention,
  seedSessions,
  seedWebhooks,
} from './seed/history.ts'
import { seedDeliveries, seedEndings, seedPendingDeliveries, seedOpenState } from './seed/open-state.ts'
import { createAccounts, createApplications } from './seed/setup.ts'
import { createWorld, dayMs } from './world.ts'

/** More than a year before any run of the test, so that the responses on the real clock are final. */
const startsAt = Date.parse('2025-09-01T09:00:00.000Z')

const [binaryArgument, version] = process.argv.slice(2)
if (binaryArgument === undefined || version === undefined) {
  throw new Error('Usage: bun test/upgrade/scenario.ts BINARY VERSION')
}
const binary = resolve(binaryArgument)
const { stdout } = Bun.spawnSync([binary, '--version'])
if (stdout.toString().trim() !== version) throw new Error(`${binary} is not version ${version}.`)
const folder = mkdtempSync(join(tmpdir(), 'otpd-upgrade-'))
// An address that no test uses, so that endpoints of the fixture never reach another program.
const receivers = startReceivers('127.83.47.1')
try {
  const clock = createProcessClock(folder, startsAt)
  const world = createWorld({ binary, folder }, clock, receivers)

  await world.start({ OTPD_RETENTION_PHONE_DAYS: '30' })
  await createAccounts(world, join(folder, 'data'))
  await createApplications(world)
  await seedWebhooks(world)
  await seedDisabledApplication(world)
  await seedSessions(world)
  await seedRetention(world)
  await world.stop()

  clock.advance(dayMs)
  await world.start({ OTPD_GUARD_MODE: 'enforce', OTPD_GUARD_DENIED_COUNTRIES: 'KP' })
  await seedGuard(world)
  await world.stop()

  clock.advance(4 * dayMs)
  await world.start()
  await seedDeliveries(world)
  await seedEndings(world)
  const open = await seedOpenState(world, await seedPendingDeliveries(world))
  await awaitQuiet((path) => world.call('ada', 'GET', path))
  await world.stop()
  const endedAt = Math.ceil(clock.now())

  const bytes = readDatabase(join(folder, 'data', 'otpd.db'))
  const parts = {
    accounts: Object.fromEntries(world.accounts),
    applications: Object.fromEntries(world.applications),
  }
  const facts = { version, masterKey, publicUrl, endedAt, ...parts, open }
  const recorded = await recordResponses({ binary, folder, receivers, database: bytes, facts })
  writeFixture({ ...facts, ...recorded }, bytes)
} finally {
  receivers.stop()
  rmSync(folder, { recursive: true, force: true })
}

/** Checkpoints the write-ahead log of a closed database, and reads the file. */
function readDatabase(path: string): Uint8Array<ArrayBuffer> {
  const connection = new Database(path)
  connection.run('PRAGMA wal_checkpoint(TRUNCATE)')
  connection.close()
  return new Uint8Array(readFileSync(path))
}
