import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { binaryPath } from '../helpers/binary.ts'
import { createSharedDatabase, postgresUrl } from '../helpers/shared-database.ts'
import { createCaller, listDataCalls } from './calls.ts'
import { listAllDifferences } from './comparison.ts'
import { listFixtures, readFixture, unpackDatabase } from './fixture.ts'
import { runCommand, startInstance, type InstanceOptions } from './instance.ts'
import { startReceivers } from './receivers.ts'
import { callAll, callAllLater, logInAll } from './recording.ts'

/** Longer lists, which the fixtures leave out. */
const morePaths = [
  '/v1/logs?limit=200',
  '/v1/logs?limit=200&type=otp.sent',
  '/v1/otp?limit=200&status=verified',
]

/** Variables without those of another kind of database. */
const withoutDataDir = { OTPD_DATA_DIR: undefined }

describe.skipIf(postgresUrl === undefined).each(listFixtures())('a database of %s, upgraded', (version) => {
  const fixture = readFixture(version)
  const receivers = startReceivers()
  const folder = mkdtempSync(join(tmpdir(), 'otpd-moved-'))
  afterAll(() => {
    receivers.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  test('moves to PostgreSQL with every answer of the API, and serves there alone', async () => {
    const shared = await createSharedDatabase()
    unpackDatabase(version, folder)
    // The calls of this test are more than the plan allows in a minute.
    const env = { OTPD_CONSOLE_PER_MINUTE: '0' }
    const options: InstanceOptions = { binary: binaryPath, folder, gatewayUrl: receivers.gatewayUrl, env }
    const onTarget = {
      ...options,
      env: { ...env, OTPD_DATABASE_URL: shared.url, OTPD_DATABASE_UNSAFE: '1' },
    }
    const onPostgres = { ...options, env: { ...onTarget.env, ...withoutDataDir } }

    const before = await startInstance(options)
    // Until nothing changes any more.
    await callAllLater(before, fixture, [])
    const headers = await logInAll(before.url, fixture)
    const calls = [
      ...(await listDataCalls(createCaller(before.url, headers), Object.keys(headers))),
      ...Object.keys(headers).flatMap((as) => morePaths.map((path) => ({ as, path }))),
    ]
    const answers = await callAll(calls, createCaller(before.url, headers))
    expect(await runCommand(onTarget, ['migrate', 'to-postgres', '--yes'])).toMatchObject({ exitCode: 6 })
    await before.stop()
    const unconfirmed = await runCommand(onTarget, ['migrate', 'to-postgres'])
    expect([unconfirmed.exitCode, unconfirmed.stderr]).toEqual([2, expect.stringContaining('--yes')])

    const checked = await runCommand(onTarget, ['migrate', 'to-postgres', '--dry-run', '--json'])
    expect(JSON.parse(checked.stdout).data).toMatchObject({ outcome: 'checked' })
    expect(await shared.query('select 1 from pg_tables where schemaname = current_schema()')).toEqual([])
    const moved = await runCommand(onTarget, ['migrate', 'to-postgres', '--yes'])
    expect([moved.exitCode, moved.stderr]).toEqual([0, expect.stringContaining('no longer serves')])

    const after = await startInstance(onPostgres)
    try {
      const later = await callAll(calls, createCaller(after.url, headers))
      expect(listAllDifferences(answers, later)).toEqual([])
    } finally {
      await after.stop()
    }
    const refusedCommands = [['serve'], ['admin', 'list'], ['admin', 'audit'], ['backup']]
    for (const args of refusedCommands) {
      const refused = await runCommand(options, args)
      expect([args, refused.exitCode, refused.stderr]).toEqual([
        args,
        9,
        expect.stringContaining('was moved to'),
      ])
    }
    const again = await runCommand(onTarget, ['migrate', 'to-postgres', '--yes', '--json'])
    expect([again.exitCode, again.stderr]).toEqual([6, expect.stringContaining('ALREADY_MOVED')])
    await shared.dispose()
  }, 120_000)
})
