import { Database } from 'bun:sqlite'
import { afterAll, describe, expect, test } from 'bun:test'
import { createPublicKey, verify as verifySignature } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { binaryPath } from '../helpers/binary.ts'
import { canMoveClocks } from '../helpers/process-clock.ts'
import { listAllDifferences } from './comparison.ts'
import { listFixtures, readFixture, unpackDatabase, type Fixture } from './fixture.ts'
import { callApi } from './http.ts'
import { runCommand, startInstance, type Instance, type InstanceOptions } from './instance.ts'
import { listAt, valueAt, type Json } from './json.ts'
import { defineMomentTests } from './moment.ts'
import { startReceivers } from './receivers.ts'
import { callAllLater } from './recording.ts'

// Databases of earlier releases, opened by the current binary: once at the moment when the old server stopped, on a moved
// clock, and once on the real clock, which may be years later. Made by `scenario.ts`, with retention off in all runs.

const versions = listFixtures()

if (!canMoveClocks) {
  process.stderr.write('Skipped: upgrades with open requests. They need Linux and gcc.\n')
}

test('there is a fixture', () => {
  expect(versions).toContain('0.1.0')
})

const migrationStatus = async (options: InstanceOptions) => {
  const { stdout, exitCode } = await runCommand(options, ['migrate', 'status', '--json'])
  expect(exitCode).toBe(0)
  return valueAt(JSON.parse(stdout) as Json, 'data', 'pending')
}

describe.each(versions)('a database of %s', (version) => {
  const fixture = readFixture(version)
  const receivers = startReceivers()
  const folders: string[] = []
  afterAll(() => {
    receivers.stop()
    for (const folder of folders) rmSync(folder, { recursive: true, force: true })
  })

  const unpack = (env: Record<string, string> = {}): InstanceOptions => {
    const folder = mkdtempSync(join(tmpdir(), 'otpd-upgraded-'))
    folders.push(folder)
    unpackDatabase(version, folder)
    return { binary: binaryPath, folder, gatewayUrl: receivers.gatewayUrl, env }
  }

  describe.skipIf(!canMoveClocks)('at the moment of its upgrade', () => {
    defineMomentTests(fixture, receivers, unpack)
  })

  test('responds as recorded on the real clock, is migrated once, and is healthy', async () => {
    const options = unpack()
    let instance = await startInstance(options)
    try {
      const expected = new Map(fixture.later.map((response) => [`${response.as} ${response.path}`, response]))
      const answers = await callAllLater(instance, fixture, fixture.answers)
      // A further page begins elsewhere once there are newer rows, and the recorded cursors are of the old release.
      const recorded = fixture.answers
        .filter(({ path }) => !path.includes('&cursor='))
        .map((response) => expected.get(`${response.as} ${response.path}`) ?? response)
      expect(listAllDifferences(recorded, answers)).toEqual([])
      await checkExpiredToken(instance, fixture)
    } finally {
      await instance.stop()
    }
    expect(await migrationStatus(options)).toEqual([])

    instance = await startInstance(options)
    try {
      expect(instance.log()).not.toContain('database migrated')
      const { exitCode, stdout } = await instance.run(['doctor', '--json', '--server', instance.url])
      const checks = listAt(JSON.parse(stdout) as Json, 'data', 'checks')
      expect(checks.filter((check) => valueAt(check, 'status') === 'fault')).toEqual([])
      expect(exitCode).toBe(0)
    } finally {
      await instance.stop()
    }
  }, 120_000)

  test('has its audit trail proved, which the migration chains for 0.1.0', async () => {
    const options = unpack()
    expect(await runCommand(options, ['audit', 'verify'])).toMatchObject({ exitCode: 9 })
    const migration = await runCommand(options, ['migrate', 'up'])
    expect(migration.exitCode).toBe(0)
    const { exitCode, stdout } = await runCommand(options, ['audit', 'verify', '--json'])
    const { isUnbroken, entries, heads } = JSON.parse(stdout).data
    expect({ exitCode, isUnbroken, chains: heads.length > 2 }).toEqual({
      exitCode: 0,
      isUnbroken: true,
      chains: true,
    })
    expect(entries).toBeGreaterThan(20)

    const database = new Database(join(options.folder, 'data', 'otpd.db'))
    const [first] = database
      .query<{ id: string; position: number }, []>('select id, position from audit_entries limit 1')
      .all()
    database.run(`update audit_entries set detail = 'forged' where id = ?`, [first?.id ?? ''])
    database.close()
    const broken = await runCommand(options, ['audit', 'verify', '--json'])
    expect(broken.exitCode).toBe(8)
    expect(JSON.parse(broken.stdout).data.breaks).toMatchObject([
      { kind: 'entry_changed', position: first?.position, entryId: first?.id },
    ])
  }, 60_000)
})

/** Checks that an ID token of the old release has expired, and that its signing key is still published. */
async function checkExpiredToken({ url }: Instance, { open }: Fixture): Promise<void> {
  const token = open.idTokens['ada'] ?? ''
  const headers = { authorization: `Bearer ${token}` }
  const refused = await callApi(url, '/v1/projects', { headers })
  expect(refused).toMatchObject({ status: 401, body: { error: { reason: 'TOKEN_EXPIRED' } } })

  const [head = '', claims = '', signature = ''] = token.split('.')
  const { kid } = JSON.parse(Buffer.from(head, 'base64url').toString()) as { kid: string }
  const keys = listAt((await callApi(url, '/v1/auth/jwks.json')).body, 'keys')
  const jwk = keys.find((key) => valueAt(key, 'kid') === kid) ?? null
  const key = createPublicKey({ key: jwk as Record<string, string>, format: 'jwk' })
  const isSigned = verifySignature(
    'sha256',
    Buffer.from(`${head}.${claims}`),
    { key, dsaEncoding: 'ieee-p1363' },
    Buffer.from(signature, 'base64url'),
  )
  expect(isSigned).toBeTrue()
}
