import { describe, expect, test } from 'bun:test'
import { settingRows } from '../../src/config/changes.ts'
import { processInput, settingList } from '../../src/config/config.ts'
import {
  requireConfig,
  load,
  loadEnv,
  loadFile,
  findOrigin,
  requireProblem,
  type LoadOptions,
} from '../helpers/config.ts'

const hexKey = '00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff'

test('works without any configuration', () => {
  expect(requireConfig(load())).toEqual({
    configFile: null,
    listen: { host: '127.0.0.1', port: 8080 },
    dataDir: '/home/ada/.local/share/otpd',
    database: null,
    node: 'ada-host',
    publicUrl: null,
    tls: null,
    drainSeconds: 0,
    dev: false,
    migrate: true,
    log: { format: 'text', level: 'info' },
    oidc: null,
    signup: 'closed',
    requireTotp: false,
    tokenMaxHours: 24,
    adminEmail: null,
    trustedProxies: [],
    corsOrigins: [],
    compat: [],
    webhooks: { allow: { hosts: [], cidrs: [] }, endpointsMax: 20 },
    budgets: { phoneCheckFailures: 25, phoneSend: 'monitor' },
    plans: {
      free: {
        projects: 10,
        applications: 5,
        sendPerMinute: 5,
        verifyPerMinute: 10,
        consolePerMinute: 600,
        lookupsPerMinute: 60,
      },
    },
    delivery: { providers: [], routes: [] },
    alerts: [],
    proofs: { firebaseProjects: [] },
    retention: { phoneDays: 30, logDays: 90, requestDays: 0, auditDays: 365 },
    metricsListen: null,
    guard: {
      mode: 'monitor',
      countries: [],
      deniedCountries: [],
      allowedNumberTypes: [],
      trusted: { prefixes: [], addresses: [] },
      totalPerDay: 0,
      spendPerDay: 0,
      challenge: null,
    },
    backup: {
      everyMs: null,
      keep: 14,
      to: { kind: 'folder', path: null },
      s3: { endpoint: 'https://s3.us-east-1.amazonaws.com', region: 'us-east-1', accessKeyId: null },
    },
    templates: {},
    secrets: { masterKey: null, masterKeySource: null, adminPassword: null, s3: null },
  })
})

describe('precedence', () => {
  const file = '[server]\nlisten = "127.0.0.1:1"\n'

  test('prefers the file to the default', () => {
    const loaded = loadFile(file)
    expect(requireConfig(loaded).listen.port).toBe(1)
    expect(findOrigin(loaded, 'server.listen')).toBe('/etc/o.toml:2')
  })

  test('prefers the variable to the file', () => {
    const loaded = loadFile(file, { env: { HOME: '/h', OTPD_LISTEN: '127.0.0.1:2' } })
    expect(requireConfig(loaded).listen.port).toBe(2)
    expect(findOrigin(loaded, 'server.listen')).toBe('OTPD_LISTEN')
  })

  test('prefers the flag to the variable', () => {
    const env = { HOME: '/h', OTPD_LISTEN: '127.0.0.1:2' }
    const loaded = loadFile(file, { env, flags: { listen: '127.0.0.1:3' } })
    expect(requireConfig(loaded).listen.port).toBe(3)
    expect(findOrigin(loaded, 'server.listen')).toBe('--listen')
  })

  test('lets a variable turn off a switch of the file', () => {
    const loaded = loadFile('[server]\nnoMigrate = true', { env: { HOME: '/h', OTPD_NO_MIGRATE: 'false' } })
    expect(requireConfig(loaded).migrate).toBe(true)
  })

  test('lets an empty variable override a list of the file', () => {
    const toml = '[server]\ncorsOrigins = ["https://a.example"]'
    expect(requireConfig(loadFile(toml, { env: { HOME: '/h', OTPD_CORS_ORIGINS: '' } })).corsOrigins).toEqual(
      [],
    )
  })

  test('uses the variable if the flag is not given', () => {
    const env = { HOME: '/h', OTPD_NO_MIGRATE: '1', OTPD_DEV: 'yes' }
    const config = requireConfig(load({ flags: { migrate: true, dev: false }, env }))
    expect([config.migrate, config.dev]).toEqual([false, true])
  })
})

test('reports every problem at once, each with its source', () => {
  const env = { HOME: '/h', OTPD_LISTEN: 'nope', OTPD_LOG_LEVEL: 'loud', OTPD_OOPS: '1' }
  const loaded = loadFile('[webhooks]\nendpointsMax = 0\n[oops]\na = 1\n', {
    env,
    flags: { publicUrl: 'ftp://x' },
  })
  expect(loaded.config).toBeNull()
  expect(loaded.problems.map(({ source }) => source).toSorted()).toEqual([
    '--public-url',
    '/etc/o.toml:2',
    '/etc/o.toml:4',
    'OTPD_LISTEN',
    'OTPD_LOG_LEVEL',
    'OTPD_OOPS',
  ])
  for (const { message, remedy } of loaded.problems)
    expect(`${message} ${remedy}`).toMatch(/^["A-Z].*\. [A-Z].*[.?]$/)
})

test('lists the problems of a file in the order of its lines, after those of variables', () => {
  const toml =
    '[plans.free]\nnope = 1\n[backup]\nevery = "never"\n[server]\nlogLevel = "loud"\n[oops]\na = 1\n'
  const { problems } = loadFile(toml, { env: { HOME: '/h', OTPD_LISTEN: 'nope' } })
  expect(problems.map(({ source }) => source)).toEqual([
    'OTPD_LISTEN',
    ...[2, 4, 6, 8].map((line) => `/etc/o.toml:${line}`),
  ])
})

test.each(['OTPD_DATABASE_URL', 'OTPD_DATABASE_URL_FILE'])(
  'an empty %s is one problem: nothing is required that only a database needs',
  (name) => {
    const { source, message } = requireProblem(loadEnv({ [name]: '', OTPD_DATABASE_CONNECTIONS: '5' }))
    expect([source, message]).toEqual([name, 'The value is empty.'])
  },
)

describe('development mode', () => {
  test('keeps no data', () => {
    const loaded = load({ flags: { dev: true }, env: { HOME: '/h', OTPD_DATA_DIR: '/data' } })
    expect(requireConfig(loaded)).toMatchObject({ dev: true, dataDir: null })
    expect(findOrigin(loaded, 'server.dataDir')).toBe('--dev')
  })

  test.each(['127.0.0.2:1', '[::1]:1', 'localhost:1', '[0::1]:1', '[::ffff:127.0.0.1]:1'])(
    'listens on %s',
    (listen) => {
      requireConfig(load({ flags: { dev: true, listen } }))
    },
  )

  test.each(['0.0.0.0:1', '[::]:1', '192.168.1.2:1', 'otp.internal:1'])('refuses %s', (listen) => {
    expect(requireProblem(load({ flags: { dev: true, listen } })).message).toContain(
      'only listens on loopback addresses',
    )
  })

  test('refuses a data directory in addition', () => {
    expect(requireProblem(load({ flags: { dev: true, dataDir: '/data' } })).source).toBe('--data-dir')
  })
})

describe('the data directory', () => {
  const env = { HOME: '/h', STATE_DIRECTORY: '/state/otpd:/state/two', XDG_DATA_HOME: '/x' }

  test.each<[string, LoadOptions, string, string]>([
    ['the flag', { flags: { dataDir: 'd' }, env: { ...env, OTPD_DATA_DIR: '/v' } }, '/work/d', '--data-dir'],
    ['the variable', { env: { ...env, OTPD_DATA_DIR: '/v' }, isRoot: true }, '/v', 'OTPD_DATA_DIR'],
    ["systemd's folder", { env, isRoot: true }, '/state/otpd', 'STATE_DIRECTORY'],
    [
      '/var/lib for root',
      { env: { HOME: '/root', XDG_DATA_HOME: '/x' }, isRoot: true },
      '/var/lib/otpd',
      'default',
    ],
    ['XDG_DATA_HOME', { env: { HOME: '/h', XDG_DATA_HOME: '/x' } }, '/x/otpd', 'default'],
    [
      'the home folder',
      { env: { HOME: '/h', XDG_DATA_HOME: 'relative' } },
      '/h/.local/share/otpd',
      'default',
    ],
  ])('is %s', (_, options, path, origin) => {
    const loaded = load(options)
    expect(requireConfig(loaded).dataDir).toBe(path)
    expect(findOrigin(loaded, 'server.dataDir')).toBe(origin)
  })

  test('needs a home folder if none is configured', () => {
    expect(requireProblem(load({ env: {} })).remedy).toContain('--data-dir')
  })

  test('is not a folder called ~', () => {
    expect(requireProblem(load({ flags: { dataDir: '~/otpd' } })).text).toContain('full path')
  })
})

describe('config show', () => {
  test('covers every setting and never a secret', () => {
    const env = {
      HOME: '/h',
      OTPD_MASTER_KEY: hexKey,
      OTPD_ADMIN_EMAIL: 'ada@example.com',
      OTPD_ADMIN_PASSWORD_FILE: '/pw',
      OTPD_TRUSTED_PROXIES: '10.0.0.0/8,::1',
    }
    const rows = settingRows(load({ env, files: { '/pw': 'correct horse battery' } }).settings)
    expect(rows.map(([setting]) => setting)).toEqual([
      ...settingList.map(({ name }) => name),
      'plans.free.projects',
      'plans.free.applications',
      'plans.free.sendPerMinute',
      'plans.free.verifyPerMinute',
      'plans.free.consolePerMinute',
      'plans.free.lookupsPerMinute',
    ])
    expect(rows).toContainEqual(['masterKey', '(set)', 'OTPD_MASTER_KEY'])
    expect(rows).toContainEqual(['server.listen', '127.0.0.1:8080', 'default'])
    expect(rows).toContainEqual(['server.trustedProxies', '10.0.0.0/8, ::1/128', 'OTPD_TRUSTED_PROXIES'])
    expect(rows).toContainEqual(['server.corsOrigins', '-', 'default'])
    expect(JSON.stringify(rows)).not.toMatch(/00112233|correct horse/)
    expect(settingRows(load().settings)).toContainEqual(['masterKey', '(not set)', 'default'])
  })

  test('marks a value that is not valid', () => {
    expect(settingRows(loadEnv({ OTPD_LISTEN: 'nope' }).settings)).toContainEqual([
      'server.listen',
      '(not valid)',
      'OTPD_LISTEN',
    ])
  })

  test('keeps the types for --json', () => {
    const { settings } = loadEnv({ OTPD_WEBHOOK_ENDPOINTS_MAX: '7', OTPD_WEBHOOK_ALLOW: 'localhost' })
    expect(settings).toContainEqual({
      setting: 'webhooks.endpointsMax',
      value: 7,
      origin: 'OTPD_WEBHOOK_ENDPOINTS_MAX',
    })
    expect(settings).toContainEqual({
      setting: 'webhooks.allow',
      value: ['localhost'],
      origin: 'OTPD_WEBHOOK_ALLOW',
    })
  })
})

test('reads the files of this machine', () => {
  const input = processInput({ listen: '127.0.0.1:0' }, { env: {}, workingDirectory: '/srv' })
  expect(input).toMatchObject({ env: {}, cwd: '/srv' })
  expect(new TextDecoder().decode(input.readFile(import.meta.path))).toContain('files of this machine')
})
