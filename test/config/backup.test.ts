import { describe, expect, test } from 'bun:test'
import { showEvery, showTarget } from '../../src/config/backup.ts'
import { withoutSecrets } from '../../src/config/without-secrets.ts'
import { dayMs, minuteMs } from '../../src/shared/durations.ts'
import { findOrigin, load, loadEnv, loadFile, requireConfig, requireProblem } from '../helpers/config.ts'

const aws = { AWS_ACCESS_KEY_ID: 'AK', AWS_SECRET_ACCESS_KEY: 'amazon secret' }

describe('the schedule', () => {
  test.each([
    ['5m', 5 * minuteMs],
    ['90m', 90 * minuteMs],
    ['24h', dayMs],
    ['31d', 31 * dayMs],
    ['off', null],
  ])('%s is read', (text, ms) => {
    expect(requireConfig(loadEnv({ OTPD_BACKUP_EVERY: text })).backup.everyMs).toBe(ms)
    if (ms !== null) expect(showEvery(ms)).toBe(text)
  })

  test.each([
    ['4m', 'is below 5 minutes'],
    ['0h', 'is below 5 minutes'],
    ['32d', 'is above 31 days'],
    ['daily', 'is not a time'],
    ['24', 'is not a time'],
    ['-1h', 'is not a time'],
  ])('%s is refused', (text, message) => {
    const problem = requireProblem(loadEnv({ OTPD_BACKUP_EVERY: text }))
    expect(problem.text).toContain(message)
    expect(problem.source).toBe('OTPD_BACKUP_EVERY')
  })

  test('keeps at least one backup', () => {
    expect(requireProblem(loadFile('[backup]\nkeep = 0\n')).source).toBe('/etc/o.toml:2')
    expect(requireConfig(loadFile('[backup]\nkeep = 1\n')).backup.keep).toBe(1)
  })
})

describe('a folder that is not there', () => {
  test.each([
    ['/mnt/nas', {}, 'There is no folder /mnt/nas.'],
    ['/mnt/nas', { '/mnt/nas': 0o100600 }, '/mnt/nas is not a folder.'],
    ['/mnt/nas', { '/mnt/nas': 0o40700 }, undefined],
    ['s3://acme', {}, undefined],
  ])('%s %p: fails a check only', (to, modes: Record<string, number>, message) => {
    const files = Object.fromEntries(Object.keys(modes).map((path) => [path, '']))
    const input = { env: { HOME: '/home/ada', ...aws, OTPD_BACKUP_TO: to }, files, modes }
    const served = load(input)
    expect(served.warnings.map((warning) => warning.message)).toEqual(message === undefined ? [] : [message])
    expect(served.problems).toEqual([])
    const checked = load(input, { use: 'check' })
    expect(checked.problems.map((problem) => problem.message)).toEqual(message === undefined ? [] : [message])
  })
})

describe('the place', () => {
  test.each([
    ['s3://acme/otpd', { kind: 's3', bucket: 'acme', prefix: 'otpd' }],
    ['s3://acme', { kind: 's3', bucket: 'acme', prefix: '' }],
    ['s3://acme.eu/a/b/', { kind: 's3', bucket: 'acme.eu', prefix: 'a/b' }],
    ['/mnt/nas', { kind: 'folder', path: '/mnt/nas' }],
    ['nas', { kind: 'folder', path: '/work/nas' }],
  ] as const)('%s is read', (text, target) => {
    const { backup } = requireConfig(loadEnv({ OTPD_BACKUP_TO: text, ...aws }))
    expect(backup.to).toEqual(target)
    expect(showTarget(backup.to)).toBe(text.replace(/\/$/, '').replace(/^nas/, '/work/nas'))
  })

  test.each([
    's3://',
    's3://a',
    's3:acme',
    's3://acme/a//b',
    's3://acme/../x',
    's3://acme/a?b',
    'gs://acme/x',
    '~/x',
  ])('%s is refused', (text) => {
    expect(requireProblem(loadEnv({ OTPD_BACKUP_TO: text, ...aws })).source).toBe('OTPD_BACKUP_TO')
  })

  test('needs credentials if it is a bucket', () => {
    const problem = requireProblem(loadEnv({ OTPD_BACKUP_TO: 's3://acme/otpd' }))
    expect(problem.text).toContain('There are no credentials for the S3 service')
    expect(requireConfig(loadEnv({})).secrets.s3).toBeNull()
  })
})

describe('the credentials', () => {
  const settings = { OTPD_BACKUP_TO: 's3://acme/otpd', OTPD_BACKUP_ACCESS_KEY_ID: 'OK' }

  test("come from a file, a variable, or Amazon's variables, with their session token", () => {
    const file = { ...settings, OTPD_BACKUP_SECRET_ACCESS_KEY_FILE: '/s3.key' }
    const fromFile = requireConfig(loadEnv(file, { '/s3.key': 'file/secret+=\n' }))
    expect(fromFile.secrets.s3).toEqual({
      secretAccessKey: 'file/secret+=',
      sessionToken: null,
    })
    const variable = {
      ...settings,
      OTPD_BACKUP_SECRET_ACCESS_KEY_ENV: 'OTPD_SECRET_S3',
      OTPD_SECRET_S3: 'variable secret',
    }
    expect(requireConfig(loadEnv(variable)).secrets.s3?.secretAccessKey).toBe('variable secret')
    const amazon = {
      OTPD_BACKUP_TO: 's3://acme/otpd',
      ...aws,
      AWS_SESSION_TOKEN: 'token',
      AWS_REGION: 'eu-west-1',
    }
    const loaded = loadEnv(amazon)
    const { backup, secrets } = requireConfig(loaded)
    expect(secrets.s3).toEqual({ secretAccessKey: 'amazon secret', sessionToken: 'token' })
    expect(backup.s3).toEqual({
      endpoint: 'https://s3.eu-west-1.amazonaws.com',
      region: 'eu-west-1',
      accessKeyId: 'AK',
    })
    expect(findOrigin(loaded, 'backup.accessKeyId')).toBe('AWS_ACCESS_KEY_ID')
  })

  test('are never shown, and not in what the server writes about itself', () => {
    const loaded = loadEnv({ OTPD_BACKUP_TO: 's3://acme/otpd', ...aws })
    expect(JSON.stringify([loaded.settings, withoutSecrets(requireConfig(loaded))])).not.toContain(
      'amazon secret',
    )
  })

  test('are refused from two places, from a missing variable, and from a file that others can read', () => {
    const both = {
      ...settings,
      OTPD_BACKUP_SECRET_ACCESS_KEY_FILE: '/s3.key',
      OTPD_BACKUP_SECRET_ACCESS_KEY_ENV: 'OTPD_SECRET_S3',
    }
    expect(requireProblem(loadEnv(both, { '/s3.key': 'x' })).text).toContain('is also set by')
    const missing = { ...settings, OTPD_BACKUP_SECRET_ACCESS_KEY_ENV: 'OTPD_SECRET_S3' }
    expect(requireProblem(loadEnv(missing)).text).toContain('There is no variable OTPD_SECRET_S3.')
    const secret = 'wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY'
    const misplaced = loadEnv({ ...settings, OTPD_BACKUP_SECRET_ACCESS_KEY_ENV: secret })
    expect(requireProblem(misplaced).text).toContain('This is not the name of a variable.')
    expect(JSON.stringify(misplaced)).not.toContain(secret)
    const exposed = load({
      env: { HOME: '/home/ada', ...settings, OTPD_BACKUP_SECRET_ACCESS_KEY_FILE: '/s3.key' },
      files: { '/s3.key': 'x' },
      modes: { '/s3.key': 0o644 },
    })
    expect(requireProblem(exposed).text).toContain('Other users can read /s3.key')
  })
})

test('a PostgreSQL database is not backed up by otpd: its settings are refused', () => {
  const loaded = loadEnv({
    OTPD_DATABASE_URL: 'postgres://otpd@127.0.0.1/otpd',
    OTPD_MASTER_KEY: '12'.repeat(31) + '34',
    OTPD_PUBLIC_URL: 'https://otp.example.com',
    OTPD_BACKUP_EVERY: '24h',
  })
  const problem = requireProblem(loaded)
  expect([problem.source, problem.text]).toEqual([
    'OTPD_BACKUP_EVERY',
    "otpd does not back up PostgreSQL. Use pg_dump or your provider's backups, and remove this setting.",
  ])
})
