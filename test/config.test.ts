import { describe, expect, test } from 'bun:test'
import {
  loadConfig,
  processInput,
  settingList,
  settingRows,
  type Config,
  type ConfigInput,
} from '../src/config.ts'
import { FREE_PLAN, planOf } from '../src/domain/plans.ts'
import { settingsTable } from './helpers/settings-table.ts'

type Options = Partial<Omit<ConfigInput, 'readFile'>> & {
  files?: Record<string, string | Uint8Array | Error>
}

const hexKey = '00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff'
const keyBytes = Buffer.from(hexKey, 'hex')

function load({ files = {}, ...rest }: Options = {}) {
  const readFile = (path: string) => {
    const content = files[path] ?? Object.assign(new Error('none'), { code: 'ENOENT' })
    if (content instanceof Error) throw content
    return typeof content === 'string' ? new TextEncoder().encode(content) : content
  }
  return loadConfig({ flags: {}, env: { HOME: '/home/ada' }, cwd: '/work', isRoot: false, ...rest, readFile })
}

function loadEnv(env: Record<string, string>, files: Options['files'] = {}) {
  return load({ env: { HOME: '/home/ada', ...env }, files })
}

function loadFile(text: string | Uint8Array, rest: Options = {}) {
  return load({
    ...rest,
    flags: { config: '/etc/o.toml', ...rest.flags },
    files: { '/etc/o.toml': text, ...rest.files },
  })
}

function configOf(loaded: ReturnType<typeof loadConfig>): Config {
  expect(loaded.problems).toEqual([])
  if (loaded.config === null) throw new Error('There is no configuration.')
  return loaded.config
}

function problemOf(loaded: ReturnType<typeof loadConfig>) {
  expect(loaded.config).toBeNull()
  expect(loaded.problems.map(({ source }) => source)).toHaveLength(1)
  const problem = loaded.problems[0] ?? { source: '', message: '', remedy: '' }
  return { ...problem, text: `${problem.message} ${problem.remedy}` }
}

const originOf = (loaded: ReturnType<typeof loadConfig>, name: string) =>
  loaded.settings.find(({ setting }) => setting === name)?.origin

test('needs nothing to be configured', () => {
  expect(configOf(load())).toEqual({
    configFile: null,
    listen: { host: '127.0.0.1', port: 8080 },
    dataDir: '/home/ada/.local/share/otpd',
    publicUrl: null,
    dev: false,
    migrate: true,
    log: { format: 'text', level: 'info' },
    oidc: null,
    signup: 'closed',
    adminEmail: null,
    trustedProxies: [],
    corsOrigins: [],
    webhooks: { allow: { hosts: [], cidrs: [] }, endpointsMax: 20 },
    budgets: { phoneCheckFailures: 25, phoneSend: 'monitor' },
    plans: { free: { projects: 10, applications: 5, sendPerMinute: 5, verifyPerMinute: 10 } },
    secrets: { masterKey: null, adminPassword: null },
  })
})

describe('precedence', () => {
  const file = '[server]\nlisten = "127.0.0.1:1"\n'

  test('takes the file before the default', () => {
    const loaded = loadFile(file)
    expect(configOf(loaded).listen.port).toBe(1)
    expect(originOf(loaded, 'server.listen')).toBe('/etc/o.toml:2')
  })

  test('takes the variable before the file', () => {
    const loaded = loadFile(file, { env: { HOME: '/h', OTPD_LISTEN: '127.0.0.1:2' } })
    expect(configOf(loaded).listen.port).toBe(2)
    expect(originOf(loaded, 'server.listen')).toBe('OTPD_LISTEN')
  })

  test('takes the flag before the variable', () => {
    const env = { HOME: '/h', OTPD_LISTEN: '127.0.0.1:2' }
    const loaded = loadFile(file, { env, flags: { listen: '127.0.0.1:3' } })
    expect(configOf(loaded).listen.port).toBe(3)
    expect(originOf(loaded, 'server.listen')).toBe('--listen')
  })

  test('lets a variable turn off a switch of the file', () => {
    const loaded = loadFile('[server]\nnoMigrate = true', { env: { HOME: '/h', OTPD_NO_MIGRATE: 'false' } })
    expect(configOf(loaded).migrate).toBe(true)
  })

  test('lets an empty variable take back a list of the file', () => {
    const toml = '[server]\ncorsOrigins = ["https://a.example"]'
    expect(configOf(loadFile(toml, { env: { HOME: '/h', OTPD_CORS_ORIGINS: '' } })).corsOrigins).toEqual([])
  })

  test('leaves a flag that was not given to the variable', () => {
    const env = { HOME: '/h', OTPD_NO_MIGRATE: '1', OTPD_DEV: 'yes' }
    const config = configOf(load({ flags: { migrate: true, dev: false }, env }))
    expect([config.migrate, config.dev]).toEqual([false, true])
  })
})

describe('the configuration file', () => {
  const usual = { '/etc/otpd/otpd.toml': '[log]\nlevel = "warn"', '/home/ada/.config/otpd/server.toml': '' }

  test('is looked for in /etc first', () => {
    const config = configOf(load({ files: usual }))
    expect([config.configFile, config.log.level]).toEqual(['/etc/otpd/otpd.toml', 'warn'])
  })

  test("is looked for in the user's folder then", () => {
    const files = { '/x/otpd/server.toml': '[log]\nlevel = "debug"' }
    expect(configOf(load({ env: { HOME: '/h', XDG_CONFIG_HOME: '/x' }, files })).log.level).toBe('debug')
  })

  test('is the one that is named, relative to the working folder', () => {
    const files = { ...usual, '/work/o.toml': '' }
    expect(configOf(load({ flags: { config: 'o.toml' }, files })).configFile).toBe('/work/o.toml')
  })

  test('must exist where it is named', () => {
    const problem = problemOf(load({ env: { HOME: '/h', OTPD_CONFIG: '/nowhere.toml' }, files: usual }))
    expect(problem).toMatchObject({ source: 'OTPD_CONFIG', message: 'There is no file /nowhere.toml.' })
  })

  test('is not passed over where this user may not read it', () => {
    const denied = Object.assign(new Error('denied'), { code: 'EACCES' })
    const problem = problemOf(load({ files: { '/etc/otpd/otpd.toml': denied } }))
    expect(problem).toMatchObject({ source: '/etc/otpd/otpd.toml' })
    expect(problem.message).toContain('may not read')
  })

  test('may be a folder by mistake', () => {
    const folder = Object.assign(new Error('folder'), { code: 'EISDIR' })
    expect(problemOf(load({ flags: { config: '/d' }, files: { '/d': folder } })).message).toBe(
      '/d is a folder.',
    )
  })

  test('gives relative paths from where it stands', () => {
    expect(configOf(loadFile('[server]\ndataDir = "data"')).dataDir).toBe('/etc/data')
  })

  test.each([
    ['a value without quotes', '# mine\n[server]\nlisten = 127.0.0.1:80\n[log]\nlevel = "info"\n', 3],
    ['a key without a value', '[server]\n\nlisten =\n', 3],
    ['a text that does not end', '[log]\nlevel = "info\nformat = "json"\n', 2],
    ['a key given twice', '[log]\nlevel = "info"\nformat = "text"\nlevel = "warn"', 4],
    ['a table given twice', '[log]\nlevel = "info"\n[server]\n[log]\nformat = "text"', 4],
    ['an integer beyond 64 bits', '[limits]\nphoneCheckBudget = 99999999999999999999', 2],
    ['a NUL in a text', '[log]\nlevel = "\u0000"', 2],
    ['a broken first line', ']\n[log]\n', 1],
  ])('says the line of %s', (_, toml, line) => {
    const problem = problemOf(loadFile(toml))
    expect(problem.source).toBe(`/etc/o.toml:${line}`)
    expect(problem.message).toContain('not valid TOML')
  })

  test('does not repeat what it could not parse', () => {
    const { problems } = loadFile(`[server]\nmasterKey = ${hexKey}x\nlisten = Secret\n`)
    expect(JSON.stringify(problems)).not.toMatch(/0011|Secret/)
  })

  test('must be UTF-8', () => {
    expect(problemOf(loadFile(new Uint8Array([0x61, 0xff, 0xfe]))).message).toBe(
      'The file is not UTF-8 text.',
    )
  })

  test('may be written on Windows', () => {
    expect(configOf(loadFile('\ufeff[log]\r\nlevel = "warn"\r\n')).log.level).toBe('warn')
  })

  test('may not be huge', () => {
    expect(problemOf(loadFile('#'.repeat(300_000))).message).toContain('256 KiB')
  })

  test.each([
    ['a plain key', '\n[server]\n# c\npublicUrl = "x"', 4],
    ['a dotted key', 'log.level = "info"\nserver.publicUrl = "x"', 2],
    ['a quoted key', '[server]\n"publicUrl" = "x"', 2],
    ['an inline table', 'log = { level = "info" }\nserver = { publicUrl = "x" }', 2],
  ])('finds the line of %s', (_, toml, line) => {
    expect(problemOf(loadFile(toml)).source).toBe(`/etc/o.toml:${line}`)
  })

  test.each([
    ['[server]\nlistn = "x"', 2, 'Did you mean server.listen?'],
    ['[server]\ndata_dir = "x"', 2, 'Did you mean server.dataDir?'],
    ['listen = "x"', 1, 'Did you mean server.listen?'],
    ['[logs]\nlevel = "info"', 2, 'Did you mean log.level?'],
    ['[log]\ncolour = "red"', 2, 'Remove the line.'],
    ['[colours]', 1, 'Remove the line.'],
    ['[server]\nmasterKey = "x"', 2, 'OTPD_MASTER_KEY'],
    ['dev = true', 1, 'OTPD_DEV'],
    ['__proto__ = 1', 1, 'Remove the line.'],
    ['server = 1', 1, 'There is no setting server.'],
    ['[server.listen]\nport = 1', 2, 'There is no setting server.listen.port.'],
  ])('refuses the unknown key of %p', (toml, line, words) => {
    const problem = problemOf(loadFile(toml))
    expect(problem.source).toBe(`/etc/o.toml:${line}`)
    expect(problem.text).toContain(words)
  })

  test.each([
    ['[webhooks]\nendpointsMax = "20"', 'a whole number'],
    ['[webhooks]\nendpointsMax = 1.5', 'a whole number'],
    ['[webhooks]\nendpointsMax = inf', 'a whole number'],
    ['[server]\nlisten = 8080', 'a text'],
    ['[server]\nnoMigrate = "true"', 'true or false'],
    ['[server]\ncorsOrigins = "https://a.example"', 'an array of strings'],
    ['[server]\ncorsOrigins = [1]', 'an array of strings'],
    ['[[log]]\nlevel = "info"', 'There is no setting log'],
  ])('wants the right type in %p', (toml, words) => {
    expect(problemOf(loadFile(toml)).message).toContain(words)
  })

  test('does not mind a table without keys', () => {
    expect(configOf(loadFile('[server]\n[plans]\n[webhooks]\n')).configFile).toBe('/etc/o.toml')
  })
})

describe('variables', () => {
  test.each([
    ['OTPD_LISTN', 'Did you mean OTPD_LISTEN?'],
    ['OTPD_ADMIN_PASSWORD', 'Did you mean OTPD_ADMIN_PASSWORD_FILE?'],
    ['OTPD_DATADIR', 'Did you mean OTPD_DATA_DIR?'],
    ['OTPD_COLOUR', 'Remove the variable.'],
  ])('refuses the unknown %s', (name, remedy) => {
    expect(problemOf(loadEnv({ [name]: 'x' }))).toMatchObject({ source: name, remedy })
  })

  test('passes over those of the command line', () => {
    configOf(
      loadEnv({
        OTPD_TOKEN: 't',
        OTPD_SERVER: 's',
        OTPD_CLIENT_SECRET: 'c',
        OTPD_NO_INPUT: '',
        PATH: '/bin',
      }),
    )
  })

  test('may have space around the value', () => {
    expect(configOf(loadEnv({ OTPD_LOG_LEVEL: ' warn\n' })).log.level).toBe('warn')
  })

  test.each([
    ['', 'is empty'],
    ['  ', 'is empty'],
    ['127.0.0.1:80\n80', 'control character'],
    ['a\u0000b', 'control character'],
  ])('refuses the value %p', (value, words) => {
    expect(problemOf(loadEnv({ OTPD_LISTEN: value })).message).toContain(words)
  })

  test.each(['maybe', '2', 'y', 'truth'])('refuses the switch %p', (value) => {
    expect(problemOf(loadEnv({ OTPD_NO_MIGRATE: value })).remedy).toBe('Give true or false.')
  })

  test.each(['-1', '1.5', '1e3', '0x10', '10001', '99999999999999999999999', 'five', '٥'])(
    'refuses the rate %p',
    (value) => {
      expect(problemOf(loadEnv({ OTPD_SEND_PER_MINUTE: value })).remedy).toContain('from 0 to 10000')
    },
  )

  test('cuts a faulty value that is long', () => {
    expect(problemOf(loadEnv({ OTPD_LISTEN: 'x'.repeat(5000) })).message.length).toBeLessThan(120)
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

describe('listening', () => {
  test.each([
    ['0.0.0.0:8080', '0.0.0.0', 8080],
    ['127.0.0.1:0', '127.0.0.1', 0],
    ['[::1]:9000', '::1', 9000],
    ['LocalHost:80', 'localhost', 80],
    ['otp.internal:65535', 'otp.internal', 65_535],
  ])('takes %s', (text, host, port) => {
    expect(configOf(loadEnv({ OTPD_LISTEN: text })).listen).toEqual({ host, port })
  })

  test.each([
    '8080',
    ':8080',
    '127.0.0.1',
    '::1:80',
    '[::1]',
    '[127.0.0.1]:80',
    '300.0.0.1:80',
    '1.2.3:80',
    'a b:80',
    '127.0.0.1:65536',
    '127.0.0.1:-1',
    'http://localhost:80',
    '[::1%lo]:80]',
  ])('refuses %s', (text) => {
    expect(problemOf(load({ flags: { listen: text } })).source).toBe('--listen')
  })
})

describe('development mode', () => {
  test('keeps nothing', () => {
    const loaded = load({ flags: { dev: true }, env: { HOME: '/h', OTPD_DATA_DIR: '/data' } })
    expect(configOf(loaded)).toMatchObject({ dev: true, dataDir: null })
    expect(originOf(loaded, 'server.dataDir')).toBe('--dev')
  })

  test.each(['127.0.0.2:1', '[::1]:1', 'localhost:1', '[::ffff:127.0.0.1]:1'])('listens on %s', (listen) => {
    configOf(load({ flags: { dev: true, listen } }))
  })

  test.each(['0.0.0.0:1', '[::]:1', '192.168.1.2:1', 'otp.internal:1'])('refuses %s', (listen) => {
    expect(problemOf(load({ flags: { dev: true, listen } })).message).toContain('loopback only')
  })

  test('refuses a data directory beside it', () => {
    expect(problemOf(load({ flags: { dev: true, dataDir: '/data' } })).source).toBe('--data-dir')
  })
})

describe('the data directory', () => {
  const env = { HOME: '/h', STATE_DIRECTORY: '/state/otpd:/state/two', XDG_DATA_HOME: '/x' }

  test.each<[string, Options, string, string]>([
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
    expect(configOf(loaded).dataDir).toBe(path)
    expect(originOf(loaded, 'server.dataDir')).toBe(origin)
  })

  test('needs a home folder where nothing else is said', () => {
    expect(problemOf(load({ env: {} })).remedy).toContain('--data-dir')
  })

  test('is not a folder called ~', () => {
    expect(problemOf(load({ flags: { dataDir: '~/otpd' } })).text).toContain('in full')
  })
})

describe('the public URL', () => {
  test.each([
    ['https://otp.example.com/', 'https://otp.example.com'],
    ['http://10.0.0.1:8080', 'http://10.0.0.1:8080'],
    ['https://EXAMPLE.com/otp//', 'https://example.com/otp'],
  ])('takes %s', (text, url) => {
    expect(configOf(loadEnv({ OTPD_PUBLIC_URL: text })).publicUrl).toBe(url)
  })

  test.each([
    'otp.example.com',
    'ftp://otp.example.com',
    'https:otp',
    'https://a.example/?x',
    'https://a.example/#',
    'https://u:pw@a.example',
    'https://a.example/b c',
  ])('refuses %s', (text) => {
    expect(problemOf(loadEnv({ OTPD_PUBLIC_URL: text })).text).not.toContain('pw')
  })
})

describe('the master key', () => {
  const base64 = keyBytes.toString('base64')

  test.each([
    ['hexadecimal', hexKey],
    ['hexadecimal in capitals', hexKey.toUpperCase()],
    ['base64', base64],
    ['base64 without padding', base64.replace('=', '')],
    ['base64url', keyBytes.toString('base64url')],
  ])('may be %s', (_, text) => {
    expect(configOf(loadEnv({ OTPD_MASTER_KEY: text })).secrets.masterKey).toEqual(new Uint8Array(keyBytes))
  })

  test.each([
    ['text with a line break', `${hexKey}\n`],
    ['the bytes themselves', new Uint8Array(keyBytes)],
  ])('may be a file of %s', (_, content) => {
    const config = configOf(loadEnv({ OTPD_MASTER_KEY_FILE: '/key' }, { '/key': content }))
    expect(config.secrets.masterKey).toEqual(new Uint8Array(keyBytes))
  })

  test.each(['short', `${hexKey}00`, 'correct horse battery staple now', '0'.repeat(64), 'A'.repeat(43)])(
    'refuses %s without repeating it',
    (text) => {
      const problem = problemOf(loadEnv({ OTPD_MASTER_KEY: text }))
      expect(problem.text).not.toContain(text.slice(0, 5))
      expect(problemOf(loadEnv({ OTPD_MASTER_KEY_FILE: '/key' }, { '/key': text })).source).toBe(
        'OTPD_MASTER_KEY_FILE',
      )
    },
  )

  test('stands in one place', () => {
    const files = { '/key': hexKey }
    const problem = problemOf(loadEnv({ OTPD_MASTER_KEY: hexKey, OTPD_MASTER_KEY_FILE: '/key' }, files))
    expect(problem).toMatchObject({ source: 'OTPD_MASTER_KEY_FILE', remedy: 'Keep one of the two.' })
  })

  test('must be where it is said to be', () => {
    expect(problemOf(loadEnv({ OTPD_MASTER_KEY_FILE: '/key' })).message).toBe('There is no file /key.')
  })
})

describe('the identity provider', () => {
  const given = { OTPD_OIDC_ISSUER: 'https://id.example.com/', OTPD_OIDC_AUDIENCE: 'one, two,one' }

  test('is read with its audiences, the issuer to the letter', () => {
    const config = configOf(loadEnv({ ...given, OTPD_OIDC_CLIENT_ID: 'cli' }))
    expect(config.oidc).toEqual({
      issuer: 'https://id.example.com/',
      audience: ['one', 'two'],
      jwksUri: null,
      clientId: 'cli',
    })
  })

  test('opens the signup, which can be closed', () => {
    expect(configOf(loadEnv(given)).signup).toBe('open')
    expect(configOf(loadEnv({ ...given, OTPD_SIGNUP: 'closed' })).signup).toBe('closed')
    expect(configOf(loadEnv({ OTPD_SIGNUP: 'open' })).signup).toBe('open')
  })

  test.each(['http://localhost:9000', 'http://127.0.0.1:9000/realm', 'http://[::1]:9000'])(
    'may be %s',
    (issuer) => {
      expect(configOf(loadEnv({ ...given, OTPD_OIDC_ISSUER: issuer })).oidc?.issuer).toBe(issuer)
    },
  )

  test.each([
    'http://id.example.com',
    'http://127.0.0.1.example.com',
    'http://localhost@evil.example',
    'https://id.example.com/?a=b',
    'id.example.com',
  ])('refuses %s', (issuer) => {
    expect(problemOf(loadEnv({ ...given, OTPD_OIDC_ISSUER: issuer })).source).toBe('OTPD_OIDC_ISSUER')
  })

  test('refuses keys over plain http', () => {
    const problem = problemOf(loadEnv({ ...given, OTPD_OIDC_JWKS_URI: 'http://id.example.com/keys' }))
    expect(problem.source).toBe('OTPD_OIDC_JWKS_URI')
  })

  test.each([{}, { OTPD_OIDC_AUDIENCE: '' }, { OTPD_OIDC_AUDIENCE: ' , ' }])(
    'needs an audience: %p',
    (audience) => {
      const problem = problemOf(loadEnv({ OTPD_OIDC_ISSUER: 'https://id.example.com', ...audience }))
      expect(problem.text).toContain('OTPD_OIDC_AUDIENCE')
    },
  )

  test.each(['OTPD_OIDC_AUDIENCE', 'OTPD_OIDC_CLIENT_ID'])('is missing where only %s is given', (name) => {
    expect(problemOf(loadEnv({ [name]: 'x' }))).toMatchObject({ source: name })
  })
})

describe('the first account', () => {
  const both = { OTPD_ADMIN_EMAIL: 'ada@example.com', OTPD_ADMIN_PASSWORD_FILE: '/pw' }

  test('has an address, and a password from a file', () => {
    const config = configOf(loadEnv(both, { '/pw': ' correct horse \n' }))
    expect([config.adminEmail, config.secrets.adminPassword]).toEqual(['ada@example.com', ' correct horse '])
  })

  test('needs both', () => {
    expect(problemOf(loadEnv({ OTPD_ADMIN_EMAIL: 'ada@example.com' })).remedy).toContain(
      'OTPD_ADMIN_PASSWORD_FILE',
    )
    const problem = problemOf(loadEnv({ OTPD_ADMIN_PASSWORD_FILE: '/pw' }, { '/pw': 'correct horse' }))
    expect(problem.remedy).toContain('OTPD_ADMIN_EMAIL')
  })

  test.each(['', '\n', 'one line\nanother\n'])('refuses the password file %p', (content) => {
    const problem = problemOf(loadEnv(both, { '/pw': content }))
    expect(problem.source).toBe('OTPD_ADMIN_PASSWORD_FILE')
    expect(problem.text).not.toContain('another')
  })

  test.each(['ada', 'ada@', 'a b@example.com', 'a@b@c', `${'a'.repeat(255)}@b`])(
    'refuses the address %s',
    (email) => {
      const env = { ...both, OTPD_ADMIN_EMAIL: email }
      expect(problemOf(loadEnv(env, { '/pw': 'correct horse' })).source).toBe('OTPD_ADMIN_EMAIL')
    },
  )
})

describe('networks and origins', () => {
  test('takes trusted proxies as addresses or CIDRs', () => {
    const config = configOf(loadEnv({ OTPD_TRUSTED_PROXIES: '10.1.2.3/8, 192.168.0.1 ,fd00::1/8,::1' }))
    expect(config.trustedProxies).toEqual(['10.0.0.0/8', '192.168.0.1/32', 'fd00::/8', '::1/128'])
  })

  test.each([
    '10.0.0.0/33',
    '10.0.0/8',
    '10.0.0.0/',
    '::1/129',
    '10.0.0.0/8/8',
    'proxy.example',
    'fe80::1%eth0',
    '10.0.0.0/-1',
  ])('refuses the proxy %s', (text) => {
    expect(problemOf(loadEnv({ OTPD_TRUSTED_PROXIES: `10.0.0.1,${text}` })).message).toContain(text)
  })

  test('takes origins as a browser sends them', () => {
    const origins = 'https://console.example.com,http://localhost:5173'
    expect(configOf(loadEnv({ OTPD_CORS_ORIGINS: origins })).corsOrigins).toEqual(origins.split(','))
  })

  test.each([
    ['https://a.example/', 'Write "https://a.example".'],
    ['https://a.example:443', 'Write "https://a.example".'],
    ['https://A.example', 'Write "https://a.example".'],
    ['*', 'Write each origin'],
    ['null', 'Write each origin'],
    ['https://*.example', 'Write each origin'],
    ['a.example', 'Write each origin'],
  ])('refuses the origin %s', (text, remedy) => {
    expect(problemOf(loadEnv({ OTPD_CORS_ORIGINS: text })).remedy).toContain(remedy)
  })

  test('takes hosts and networks that webhooks may reach', () => {
    const loaded = loadEnv({ OTPD_WEBHOOK_ALLOW: 'Hooks.internal,10.0.0.0/8,127.0.0.1,[::1],localhost' })
    expect(configOf(loaded).webhooks.allow).toEqual({
      hosts: ['hooks.internal', 'localhost'],
      cidrs: ['10.0.0.0/8', '127.0.0.1/32', '::1/128'],
    })
  })

  test.each(['http://hooks.internal', 'hooks.internal:8080', '*.internal', '1.2.3', '10.0.0.0/64'])(
    'refuses the webhook target %s',
    (text) => {
      expect(problemOf(loadEnv({ OTPD_WEBHOOK_ALLOW: text })).source).toBe('OTPD_WEBHOOK_ALLOW')
    },
  )
})

describe('limits and plans', () => {
  test('turns the phone budgets off and on', () => {
    const config = configOf(loadEnv({ OTPD_PHONE_CHECK_BUDGET: '0', OTPD_PHONE_SEND_BUDGET: 'enforce' }))
    expect(config.budgets).toEqual({ phoneCheckFailures: 0, phoneSend: 'enforce' })
    expect(problemOf(loadEnv({ OTPD_PHONE_CHECK_BUDGET: '101' })).remedy).toContain('from 0 to 100')
    expect(problemOf(loadEnv({ OTPD_PHONE_SEND_BUDGET: 'on' })).remedy).toBe('Give off, monitor or enforce.')
  })

  test("fills what a plan leaves out with free's numbers", () => {
    const toml = '[plans.free]\nprojects = 3\n[plans.pro]\nsendPerMinute = 100\n[plans.partner]\n'
    const loaded = loadFile(toml)
    const { plans } = configOf(loaded)
    expect(plans.free).toEqual({ ...FREE_PLAN, projects: 3 })
    expect(plans['pro']).toEqual({ ...FREE_PLAN, projects: 3, sendPerMinute: 100 })
    expect(plans['partner']).toEqual({ ...FREE_PLAN, projects: 3 })
    expect(originOf(loaded, 'plans.free.projects')).toBe('/etc/o.toml:2')
    expect(originOf(loaded, 'plans.pro.sendPerMinute')).toBe('/etc/o.toml:4')
    expect(originOf(loaded, 'plans.pro.projects')).toBe('plans.free')
    expect(originOf(loaded, 'plans.pro.verifyPerMinute')).toBe('plans.free')
    expect(originOf(loaded, 'plans.free.verifyPerMinute')).toBe('default')
  })

  test('puts the rates of the installation over those of every plan', () => {
    const env = { HOME: '/h', OTPD_SEND_PER_MINUTE: '0', OTPD_VERIFY_PER_MINUTE: '10000' }
    const loaded = loadFile('[plans.pro]\nsendPerMinute = 100', { env })
    const { plans } = configOf(loaded)
    expect([plans.free.sendPerMinute, plans['pro']?.sendPerMinute]).toEqual([0, 0])
    expect(plans['pro']?.verifyPerMinute).toBe(10_000)
    expect(originOf(loaded, 'plans.pro.sendPerMinute')).toBe('OTPD_SEND_PER_MINUTE')
  })

  test('counts a plan that is gone as free', () => {
    const { plans } = configOf(loadFile('[plans.pro]\nprojects = 100'))
    expect(planOf(plans, 'pro').projects).toBe(100)
    expect(planOf(plans, 'gone')).toEqual(FREE_PLAN)
    expect(planOf(plans, 'constructor')).toEqual(FREE_PLAN)
    expect(planOf(plans, '__proto__')).toEqual(FREE_PLAN)
  })

  test.each([
    ['plans = 3', 1, '[plans.NAME]'],
    ['[plans]\nfree = 3', 2, '[plans.NAME]'],
    ['[[plans.free]]\nprojects = 1', 1, '[plans.NAME]'],
    ['[plans.free]\nprojects = 0', 2, 'from 1 to 1000000'],
    ['[plans.free]\nprojects = 1.5', 2, 'from 1 to 1000000'],
    ['[plans.free]\nsendPerMinute = 10001', 2, 'from 0 to 10000'],
    ['[plans.free]\nsendPerMinute = "5"', 2, 'from 0 to 10000'],
    ['[plans.free]\nsends = 5', 2, 'It has projects, applications, sendPerMinute, verifyPerMinute.'],
    ['[plans.free.projects]\na = 5', 2, 'A plan has no projects.'],
    ['[plans."My Plan"]\nprojects = 5', 2, 'a letter first'],
    ['[plans.__proto__]\nprojects = 5', 2, 'a letter first'],
    ['[plans."Bad"]', 1, 'a letter first'],
  ])('refuses %p', (toml, line, words) => {
    const problem = problemOf(loadFile(toml))
    expect(problem.source).toBe(`/etc/o.toml:${line}`)
    expect(problem.text).toContain(words)
  })
})

describe('what config show prints', () => {
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
    ])
    expect(rows).toContainEqual(['masterKey', '(set)', 'OTPD_MASTER_KEY'])
    expect(rows).toContainEqual(['server.listen', '127.0.0.1:8080', 'default'])
    expect(rows).toContainEqual(['server.trustedProxies', '10.0.0.0/8, ::1/128', 'OTPD_TRUSTED_PROXIES'])
    expect(rows).toContainEqual(['server.corsOrigins', '-', 'default'])
    expect(JSON.stringify(rows)).not.toMatch(/00112233|correct horse/)
    expect(settingRows(load().settings)).toContainEqual(['masterKey', '(not set)', 'default'])
  })

  test('says which value is not valid', () => {
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

test('reads the environment and the files of this process', () => {
  const input = processInput({ listen: '127.0.0.1:0' })
  expect(input.env).toBe(process.env)
  expect(input.cwd).toBe(process.cwd())
  expect(new TextDecoder().decode(input.readFile(import.meta.path))).toContain('files of this process')
})

test('every setting stands in the README as the program has it', async () => {
  const plain = (text: string) => text.replaceAll(/ +/g, ' ')
  const readme = plain(await Bun.file(new URL('../README.md', import.meta.url)).text())
  for (const row of settingsTable()) if (!row.includes('---')) expect(readme).toContain(plain(row))
})
