import { describe, expect, test } from 'bun:test'
import { FREE_PLAN, resolvePlan } from '../../src/domain/model/plans.ts'
import { requireConfig, load, loadEnv, loadFile, findOrigin, requireProblem } from '../helpers/config.ts'

describe('variables', () => {
  test.each([
    'OTPD_PORT',
    'OTPD_SERVICE_HOST',
    'OTPD_SERVICE_PORT_HTTP',
    'OTPD_PORT_8080_TCP_ADDR',
    'OTPD_API_SERVICE_PORT',
  ])('ignores %s, which Kubernetes sets', (name) => {
    expect(loadEnv({ [name]: 'tcp://10.0.0.1:8080' }).problems).toEqual([])
  })

  test.each([
    ['OTPD_LISTN', 'Did you mean OTPD_LISTEN?'],
    ['OTPD_ADMIN_PASSWORD', 'Did you mean OTPD_ADMIN_PASSWORD_FILE?'],
    ['OTPD_DATADIR', 'Did you mean OTPD_DATA_DIR?'],
    ['OTPD_COLOUR', 'Remove the variable.'],
  ])('refuses the unknown %s', (name, remedy) => {
    expect(requireProblem(loadEnv({ [name]: 'x' }))).toMatchObject({ source: name, remedy })
  })

  test('ignores the variables of the command line', () => {
    requireConfig(
      loadEnv({
        OTPD_TOKEN: 't',
        OTPD_SERVER: 's',
        OTPD_CLIENT_SECRET: 'c',
        OTPD_NO_INPUT: '',
        PATH: '/bin',
      }),
    )
  })

  test('allows white space around the value', () => {
    expect(requireConfig(loadEnv({ OTPD_LOG_LEVEL: ' warn\n' })).log.level).toBe('warn')
  })

  test.each([
    ['', 'is empty'],
    ['  ', 'is empty'],
    ['127.0.0.1:80\n80', 'control character'],
    ['a\u0000b', 'control character'],
  ])('refuses the value %p', (value, expectedText) => {
    expect(requireProblem(loadEnv({ OTPD_LISTEN: value })).message).toContain(expectedText)
  })

  test.each(['maybe', '2', 'y', 'truth'])('refuses the switch %p', (value) => {
    expect(requireProblem(loadEnv({ OTPD_NO_MIGRATE: value })).remedy).toBe('Use true or false.')
  })

  test.each(['-1', '1.5', '1e3', '0x10', '10001', '99999999999999999999999', 'five', '٥'])(
    'refuses the rate %p',
    (value) => {
      expect(requireProblem(loadEnv({ OTPD_SEND_PER_MINUTE: value })).remedy).toContain('from 0 to 10000')
    },
  )

  test('shortens a long invalid value', () => {
    expect(requireProblem(loadEnv({ OTPD_LISTEN: 'x'.repeat(5000) })).message.length).toBeLessThan(120)
  })
})

describe('listening', () => {
  test.each([
    ['0.0.0.0:8080', '0.0.0.0', 8080],
    ['127.0.0.1:0', '127.0.0.1', 0],
    ['[::1]:9000', '::1', 9000],
    ['LocalHost:80', 'localhost', 80],
    ['otp.internal:65535', 'otp.internal', 65_535],
  ])('accepts %s', (text, host, port) => {
    expect(requireConfig(loadEnv({ OTPD_LISTEN: text })).listen).toEqual({ host, port })
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
    expect(requireProblem(load({ flags: { listen: text } })).source).toBe('--listen')
  })
})

describe('the public URL', () => {
  test.each([
    ['https://otp.example.com/', 'https://otp.example.com'],
    ['http://10.0.0.1:8080', 'http://10.0.0.1:8080'],
    ['https://EXAMPLE.com/otp//', 'https://example.com/otp'],
  ])('accepts %s', (text, url) => {
    expect(requireConfig(loadEnv({ OTPD_PUBLIC_URL: text })).publicUrl).toBe(url)
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
    expect(requireProblem(loadEnv({ OTPD_PUBLIC_URL: text })).text).not.toContain('pw')
  })
})

describe('networks and origins', () => {
  test('accepts trusted proxies as addresses or CIDRs', () => {
    const config = requireConfig(loadEnv({ OTPD_TRUSTED_PROXIES: '10.1.2.3/8, 192.168.0.1 ,fd00::1/8,::1' }))
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
    expect(requireProblem(loadEnv({ OTPD_TRUSTED_PROXIES: `10.0.0.1,${text}` })).message).toContain(text)
  })

  test('accepts origins as browsers send them', () => {
    const origins = 'https://console.example.com,http://localhost:5173'
    expect(requireConfig(loadEnv({ OTPD_CORS_ORIGINS: origins })).corsOrigins).toEqual(origins.split(','))
  })

  test.each([
    ['https://a.example/', 'Use "https://a.example".'],
    ['https://a.example:443', 'Use "https://a.example".'],
    ['https://A.example', 'Use "https://a.example".'],
    ['*', 'Use origins such as'],
    ['null', 'Use origins such as'],
    ['https://*.example', 'Use origins such as'],
    ['a.example', 'Use origins such as'],
  ])('refuses the origin %s', (text, remedy) => {
    expect(requireProblem(loadEnv({ OTPD_CORS_ORIGINS: text })).remedy).toContain(remedy)
  })

  test('accepts hosts and networks that webhooks may reach', () => {
    const loaded = loadEnv({ OTPD_WEBHOOK_ALLOW: 'Hooks.internal,10.0.0.0/8,127.0.0.1,[::1],localhost' })
    expect(requireConfig(loaded).webhooks.allow).toEqual({
      hosts: ['hooks.internal', 'localhost'],
      cidrs: ['10.0.0.0/8', '127.0.0.1/32', '::1/128'],
    })
  })

  test.each(['http://hooks.internal', 'hooks.internal:8080', '*.internal', '1.2.3', '10.0.0.0/64'])(
    'refuses the webhook target %s',
    (text) => {
      expect(requireProblem(loadEnv({ OTPD_WEBHOOK_ALLOW: text })).source).toBe('OTPD_WEBHOOK_ALLOW')
    },
  )
})

describe('limits and plans', () => {
  test('turns the phone budgets off and on', () => {
    const config = requireConfig(loadEnv({ OTPD_PHONE_CHECK_BUDGET: '0', OTPD_PHONE_SEND_BUDGET: 'enforce' }))
    expect(config.budgets).toEqual({ phoneCheckFailures: 0, phoneSend: 'enforce' })
    expect(requireProblem(loadEnv({ OTPD_PHONE_CHECK_BUDGET: '101' })).remedy).toContain('from 0 to 100')
    expect(requireProblem(loadEnv({ OTPD_PHONE_SEND_BUDGET: 'on' })).remedy).toBe(
      'Use off, monitor or enforce.',
    )
  })

  test('inherits the values that a plan omits from free', () => {
    const toml = '[plans.free]\nprojects = 3\n[plans.pro]\nsendPerMinute = 100\n[plans.partner]\n'
    const loaded = loadFile(toml)
    const { plans } = requireConfig(loaded)
    expect(plans.free).toEqual({ ...FREE_PLAN, projects: 3 })
    expect(plans['pro']).toEqual({ ...FREE_PLAN, projects: 3, sendPerMinute: 100 })
    expect(plans['partner']).toEqual({ ...FREE_PLAN, projects: 3 })
    expect(findOrigin(loaded, 'plans.free.projects')).toBe('/etc/o.toml:2')
    expect(findOrigin(loaded, 'plans.pro.sendPerMinute')).toBe('/etc/o.toml:4')
    expect(findOrigin(loaded, 'plans.pro.projects')).toBe('plans.free')
    expect(findOrigin(loaded, 'plans.pro.verifyPerMinute')).toBe('plans.free')
    expect(findOrigin(loaded, 'plans.free.verifyPerMinute')).toBe('default')
  })

  test('overrides the rates of every plan with those of the installation', () => {
    const env = { HOME: '/h', OTPD_SEND_PER_MINUTE: '0', OTPD_VERIFY_PER_MINUTE: '10000' }
    const loaded = loadFile('[plans.pro]\nsendPerMinute = 100', { env })
    const { plans } = requireConfig(loaded)
    expect([plans.free.sendPerMinute, plans['pro']?.sendPerMinute]).toEqual([0, 0])
    expect(plans['pro']?.verifyPerMinute).toBe(10_000)
    expect(findOrigin(loaded, 'plans.pro.sendPerMinute')).toBe('OTPD_SEND_PER_MINUTE')
  })

  test('treats a plan that no longer exists as free', () => {
    const { plans } = requireConfig(loadFile('[plans.pro]\nprojects = 100'))
    expect(resolvePlan(plans, 'pro').projects).toBe(100)
    expect(resolvePlan(plans, 'gone')).toEqual(FREE_PLAN)
    expect(resolvePlan(plans, 'constructor')).toEqual(FREE_PLAN)
    expect(resolvePlan(plans, '__proto__')).toEqual(FREE_PLAN)
  })

  test.each([
    ['plans = 3', 1, '[plans.NAME]'],
    ['[plans]\nfree = 3', 2, '[plans.NAME]'],
    ['[[plans.free]]\nprojects = 1', 1, '[plans.NAME]'],
    ['[plans.free]\nprojects = 0', 2, 'from 1 to 1000000'],
    ['[plans.free]\nprojects = 1.5', 2, 'from 1 to 1000000'],
    ['[plans.free]\nsendPerMinute = 10001', 2, 'from 0 to 10000'],
    ['[plans.free]\nsendPerMinute = "5"', 2, 'from 0 to 10000'],
    [
      '[plans.free]\nsends = 5',
      2,
      'Use projects, applications, sendPerMinute, verifyPerMinute, consolePerMinute, lookupsPerMinute.',
    ],
    ['[plans.free.projects]\na = 5', 2, 'Plans have no setting projects.'],
    ['[plans."My Plan"]\nprojects = 5', 2, 'starting with a letter'],
    ['[plans.__proto__]\nprojects = 5', 2, 'starting with a letter'],
    ['[plans."Bad"]', 1, 'starting with a letter'],
  ])('refuses %p', (toml, line, expectedText) => {
    const problem = requireProblem(loadFile(toml))
    expect(problem.source).toBe(`/etc/o.toml:${line}`)
    expect(problem.text).toContain(expectedText)
  })
})
