import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startServer, type RunningServer } from '../helpers/binary.ts'
import { runCommand } from '../helpers/run-command.ts'
import { waitFor } from '../helpers/external-program.ts'
import { hasMoto, startMoto } from '../helpers/moto.ts'
import { canMoveClocks, createProcessClock, type ProcessClock } from '../helpers/process-clock.ts'
import { s3Error, startS3Server } from '../helpers/s3-server.ts'
import { makeServerHome } from '../helpers/webhook-client.ts'
import { hourMs, minuteMs } from '../../src/shared/durations.ts'

const secret = 'a-secret-access-key'
const bucketEnv = (url: string) => ({
  OTPD_BACKUP_TO: 's3://backups/otpd',
  OTPD_BACKUP_S3_ENDPOINT: url,
  AWS_ACCESS_KEY_ID: 'AK',
  AWS_SECRET_ACCESS_KEY: secret,
})

describe('a server with a schedule of backups', () => {
  let service: ReturnType<typeof startS3Server>
  let server: RunningServer
  let clock: ProcessClock | undefined
  let folder: string
  let env: Record<string, string>

  beforeAll(async () => {
    service = startS3Server()
    folder = mkdtempSync(join(tmpdir(), 'otpd-schedule-'))
    clock = canMoveClocks ? createProcessClock(folder) : undefined
    const home = makeServerHome()
    env = { ...home.env, ...bucketEnv(service.url) }
    server = await startServer({
      ...home,
      env: {
        ...env,
        ...clock?.env,
        OTPD_BACKUP_EVERY: '5m',
        OTPD_BACKUP_KEEP: '2',
        OTPD_METRICS_LISTEN: '127.0.0.1:0',
      },
    })
  })
  afterAll(async () => {
    await server.stop()
    clock?.close()
    await service.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const otpd = (...args: string[]) => server.otpd(args, { env: { ...env, OTPD_DATA_DIR: server.dataDir } })
  const metric = async (name: string) => {
    const url: string = JSON.parse(server.log().split('\n')[0] ?? '{}').metricsUrl
    const text = await (await fetch(url)).text()
    return Number(new RegExp(`^otpd_backup_${name} (.*)$`, 'm').exec(text)?.[1])
  }
  const names = () => [...service.objects.keys()].filter((key) => key.endsWith('.sealed'))

  test('makes them by itself, keeps the newest, and reports them', async () => {
    expect(await metric('last_success_timestamp_seconds')).toBe(0)
    for (let count = 1; count <= (clock ? 3 : 1); count++) {
      clock?.advance(6 * minuteMs)
      await server.waitForLog('"msg":"backup made"', count)
    }
    expect(names()).toHaveLength(clock ? 2 : 1)
    expect(await metric('last_success_timestamp_seconds')).toBeGreaterThan(Date.now() / 1000 - 60)
    expect(await metric('last_bytes')).toBe(service.objects.get(names().at(-1) ?? '')?.length ?? 0)
    expect((await otpd('doctor')).stdout).toMatch(/✓ backups +the last one is .* old, .*s3:\/\/backups\/otpd/)
    const list = JSON.parse((await otpd('backup', 'list', '--json')).stdout)
    expect(list.data).toMatchObject(
      names()
        .toReversed()
        .map((key) => ({ name: key.replace('otpd/', ''), state: 'verified' })),
    )
    expect(await otpd('backup', 'verify', 'latest')).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/is whole and unchanged\n.*\n *Contains +accounts \(1\)/),
    })
  }, 120_000)

  test.if(canMoveClocks)('goes on serving when one fails, counts it, and tries again', async () => {
    service.failWith(() => s3Error(403, 'AccessDenied', 'Access Denied'))
    clock?.advance(6 * minuteMs)
    await server.waitForLog('"msg":"backup failed"')
    const line =
      server
        .log()
        .split('\n')
        .find((text) => text.includes('backup failed')) ?? ''
    expect(JSON.parse(line)).toMatchObject({
      level: 'error',
      code: 'ACCESS_REFUSED',
      problem: 'The service refuses s3://backups/otpd: AccessDenied (Access Denied).',
      exitCode: 6,
    })
    expect(await metric('failures_total')).toBe(1)
    expect((await fetch(`${server.url}/v1/health/ready`)).status).toBe(200)
    service.failWith(() => undefined)
    clock?.advance(hourMs)
    await server.waitForLog('"msg":"backup made"', 4)
    expect(server.log()).not.toContain(secret)
    expect(readdirSync(join(server.dataDir, 'backups'))).toEqual([])
  })

  test('stops while one is under way, and leaves nothing half done', async () => {
    const before = names()
    service.failWith(({ method }) => (method === 'PUT' ? new Promise<Response>(() => {}) : undefined))
    const child = otpd('backup')
    await waitFor('upload', () => service.calls.findLast(({ method }) => method === 'PUT' || undefined))
    expect(names()).toEqual(before)
    service.failWith(({ method }) => (method === 'PUT' ? new Response('', { status: 500 }) : undefined))
    await service.stop()
    expect(await child).toMatchObject({ exitCode: 6 })
    expect(names()).toEqual(before)
    expect(readdirSync(join(server.dataDir, 'backups'))).toEqual([])
  })
})

describe.skipIf(!hasMoto)('backups at moto', () => {
  test('are sealed, listed, verified, pruned and restored elsewhere with the master key', async () => {
    const moto = await startMoto()
    const home = makeServerHome()
    const env = { ...home.env, ...bucketEnv(moto.url) }
    const server = await startServer({ ...home, env })
    const otpd = (args: string[], more: Record<string, string> = {}) =>
      server.otpd(args, { env: { ...env, OTPD_DATA_DIR: server.dataDir, ...more } })
    try {
      for (const keep of ['3', '3', '1'])
        expect(await otpd(['backup', '--prune'], { OTPD_BACKUP_KEEP: keep })).toMatchObject({ exitCode: 0 })
      const { data } = JSON.parse((await otpd(['backup', 'list', '--json'])).stdout)
      expect(data).toMatchObject([{ state: 'verified', rows: { accounts: 1 } }])
      const other = join(server.home, 'other')
      mkdirSync(other, { mode: 0o700 })
      const restore = (name: string) =>
        otpd(['restore', `s3://backups/otpd/${name}`, '--yes', '--data-dir', other])
      expect(await restore('latest')).toMatchObject({
        exitCode: 6,
        stderr: expect.stringContaining('There is no master key'),
      })
      cpSync(join(server.dataDir, 'master.key'), join(other, 'master.key'))
      expect(await restore('latest')).toMatchObject({ exitCode: 0 })
      expect((await otpd(['admin', 'list', '--data-dir', other])).stdout).toContain('ada@example.com')
      const name = [
        ['latest'],
        ['--from', 's3://backups/otpd'],
        [data[0].name, '--from', 's3://backups/otpd'],
      ]
      for (const args of name) {
        const again = await otpd(['restore', ...args, '--yes', '--data-dir', other])
        expect(again).toMatchObject({ exitCode: 0, stdout: expect.stringContaining(data[0].name) })
        expect(again.stderr).toMatch(/Made +\d.* \((just now|\d.* ago)\), \d/)
        expect(again.stderr).toMatch(/(Contains +accounts \(1\).*\n)? {2}Replaces +accounts \(1\)/)
      }
      expect(await restore('otpd-2020-01-01T00-00-00-000Z.db.sealed')).toMatchObject({ exitCode: 5 })
      expect(statSync(join(other, 'otpd.db')).mode & 0o777).toBe(0o600)
    } finally {
      await server.stop()
      await moto.stop()
    }
  }, 120_000)
})

test('errors say what is wrong and how to go on, with their exit codes', async () => {
  const service = startS3Server()
  const home = mkdtempSync(join(tmpdir(), 'otpd-backup-errors-'))
  const dataDir = join(home, 'data')
  const base = { OTPD_DATA_DIR: dataDir, OTPD_SERVER: 'http://127.0.0.1:1' }
  const otpd = (args: string[], env: Record<string, string> = {}) =>
    runCommand(home, args, { env: { ...base, ...env } })
  const started = await startServer({ home, dataDir })
  await started.stop()
  const bucket = bucketEnv(service.url)
  for (const [args, env, exitCode, text] of [
    [['backup'], { ...bucket, OTPD_BACKUP_TO: 's3://missing/x' }, 6, 'NoSuchBucket (The specified bucket'],
    [['backup'], { ...bucket, OTPD_BACKUP_S3_ENDPOINT: 'http://127.0.0.1:1' }, 6, 'refuses connections'],
    [['backup'], { OTPD_BACKUP_TO: 's3://backups/x' }, 2, 'There are no credentials for the S3 service'],
    [['serve'], { OTPD_BACKUP_EVERY: '1m' }, 9, '"1m" is below 5 minutes'],
    [['serve'], { OTPD_BACKUP_KEEP: '0' }, 9, 'Use a whole number from 1'],
    [['backup'], { OTPD_BACKUP_TO: '/nowhere' }, 6, 'There is no folder /nowhere'],
    [['backup', 's3://backups/x'], bucket, 2, 'OTPD_BACKUP_TO=s3://backups/x otpd backup'],
    [['backup', 'x'.repeat(300)], {}, 6, 'cannot be written (the name is too long, ENAMETOOLONG)'],
    [['backup', 'x.db', '--prune'], {}, 2, '--prune works on backup.to'],
    [['restore', 's3://backups/otpd/latest', '--yes'], bucket, 5, 'There is no backup in s3://backups/otpd'],
    [['restore', 's3://backups', '--yes'], bucket, 2, 'names no backup'],
    [
      ['backup', 'list', '--from', 's3://backups/otpd'],
      {},
      6,
      'There are no credentials for s3://backups/otpd',
    ],
    [['backup', 'verify', 'nothing.db'], {}, 5, 'There is no '],
  ] as const) {
    const result = await otpd([...args], env)
    expect([args, result.exitCode, result.stderr]).toEqual([args, exitCode, expect.stringContaining(text)])
    expect(result.stderr).not.toContain(secret)
  }
  // A cut, changed or foreign object is refused, and nothing is touched.
  expect((await otpd(['backup'], bucket)).exitCode).toBe(0)
  const [key = ''] = service.objects.keys()
  const good = service.objects.get(key) ?? Buffer.alloc(0)
  const inode = statSync(join(dataDir, 'otpd.db')).ino
  const changed = Buffer.from(good)
  changed[200] = (changed[200] ?? 0) ^ 1
  for (const [content, text] of [
    [good.subarray(0, good.length - 1), 'was changed or cut'],
    [changed, 'was changed or cut'],
    [Buffer.from('foreign'), 'is not a sealed backup'],
  ] as const) {
    service.objects.set(key, content)
    const result = await otpd(['restore', `s3://backups/${key}`, '--yes'], bucket)
    expect([result.exitCode, result.stderr]).toEqual([6, expect.stringContaining(text)])
    expect(statSync(join(dataDir, 'otpd.db')).ino).toBe(inode)
    expect((await otpd(['backup', 'verify', key.replace('otpd/', '')], bucket)).exitCode).toBe(6)
    // It no longer counts as verified.
    expect(service.objects.has(`${key}.verified`)).toBe(false)
  }
  // One that was copied to this machine by other means is opened too.
  writeFileSync(join(home, 'copied.sealed'), good)
  expect(await otpd(['restore', './copied.sealed', '--yes'], bucket)).toMatchObject({ exitCode: 0 })
  expect(existsSync(join(dataDir, 'backups'))).toBe(true)
  expect(readdirSync(join(dataDir, 'backups')).filter((name) => name.endsWith('.part'))).toEqual([])
  await service.stop()
  rmSync(home, { recursive: true, force: true })
}, 120_000)

test('a place after backup list is refused, with the call that lists it', async () => {
  const { home, env } = makeServerHome()
  const { exitCode, stderr } = await runCommand(home, ['backup', 'list', 'nas'], { env })
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining('otpd backup list --from nas')])
  const empty = await runCommand(home, ['backup', 'list', '--from', ''], { env })
  expect([empty.exitCode, empty.stderr]).toEqual([2, expect.stringContaining('No place is named.')])
  rmSync(home, { recursive: true, force: true })
})
