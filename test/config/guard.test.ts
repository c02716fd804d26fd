import { describe, expect, test } from 'bun:test'
import { requireConfig, loadEnv, loadFile, findOrigin, requireProblem } from '../helpers/config.ts'

describe('the guard', () => {
  test('enforces with a provider and monitors without one, and so does the send budget', () => {
    const guard = {
      mode: 'monitor',
      countries: [],
      deniedCountries: [],
      allowedNumberTypes: [],
      trusted: { prefixes: [], addresses: [] },
      totalPerDay: 0,
      spendPerDay: 0,
      challenge: null,
    }
    const newcomer = requireConfig(loadEnv({}))
    expect(newcomer.guard).toEqual(guard as typeof newcomer.guard)
    expect(newcomer.budgets.phoneSend).toBe('monitor')
    const provider =
      '[[providers]]\nname = "main"\nkind = "http-template"\nurl = "http://127.0.0.1:1/{{code}}"\n'
    const live = requireConfig(loadFile(provider))
    expect([live.guard.mode, live.budgets.phoneSend]).toEqual(['enforce', 'enforce'])
    const explicit = requireConfig(
      loadFile(`[guard]\nmode = "monitor"\n[limits]\nphoneSendBudget = "off"\n${provider}`),
    )
    expect([explicit.guard.mode, explicit.budgets.phoneSend]).toEqual(['monitor', 'off'])
  })

  test('is configured by its table', () => {
    const loaded = loadFile(
      [
        '[guard]',
        'mode = "enforce"',
        'countries = ["nl", "BE", "001"]',
        'deniedCountries = ["CU"]',
        'allowedNumberTypes = ["satellite", "personal"]',
        'trustedPrefixes = ["+3161"]',
        'trustedAddresses = ["10.1.2.3/8"]',
        'totalPerDay = 5000',
        'spendPerDay = "250.50"',
        '[prices]',
        'currency = "EUR"',
      ].join('\n'),
    )
    const { guard } = requireConfig(loaded)
    expect(guard).toEqual({
      mode: 'enforce',
      countries: ['NL', 'BE', '001'],
      deniedCountries: ['CU'],
      allowedNumberTypes: ['satellite', 'personal'],
      trusted: { prefixes: ['+3161'], addresses: ['10.0.0.0/8'] },
      totalPerDay: 5000,
      spendPerDay: 250_500_000,
      challenge: null,
    })
    expect(findOrigin(loaded, 'guard.mode')).toBe('/etc/o.toml:2')
    expect(findOrigin(loaded, 'guard.totalPerDay')).toBe('/etc/o.toml:8')
    expect(loaded.settings).toContainEqual({
      setting: 'guard.countries',
      value: ['NL', 'BE', '001'],
      origin: '/etc/o.toml:3',
    })
  })

  test.each([
    ['spendPerDay = "-1"', '"-1" is negative. Write "1".'],
    ['spendPerDay = "much"', '"much" is not a price.'],
    ['spendPerDay = 5', 'guard.spendPerDay must be a string. Put it in quotes.'],
    ['spendPerDay = "5"', 'The budget has no currency. Write [prices] and currency = "EUR" below it'],
  ])('refuses %s', (line, text) => {
    const problem = requireProblem(loadFile(`[guard]\n${line}`))
    expect(problem.source).toBe('/etc/o.toml:2')
    expect(problem.text).toContain(text)
  })

  test('refuses the settings of 0.1.0 that were removed, and says what to write instead', () => {
    const names = ['countryPerHour', 'countryPerDay', 'prefixPerHour', 'prefixPerDay', 'addressPerHour']
    names.push('addressPerDay', 'addressCountries', 'hourlyPercent', 'dailyPercent', 'applicationPerDay')
    const lines = [...names.map((name) => `${name} = 7`), 'trustedCountries = ["LU"]']
    const { problems } = loadFile(`[guard]\n${lines.join('\n')}`, {
      env: { HOME: '/h', OTPD_GUARD_PREFIX_PER_DAY: '3' },
    })
    expect(problems.map(({ source, message }) => `${source} ${message}`).toSorted()).toEqual(
      [
        'OTPD_GUARD_PREFIX_PER_DAY guard.prefixPerDay was removed.',
        ...names.map((name, index) => `/etc/o.toml:${index + 2} guard.${name} was removed.`),
        '/etc/o.toml:12 guard.trustedCountries was removed.',
      ].toSorted(),
    )
    expect(problems.find(({ message }) => message.includes('trustedCountries'))).toMatchObject({
      remedy: 'Use guard.trustedPrefixes instead: "+31" is all of the Netherlands.',
    })
  })

  test.each([
    ['mode = "block"', '"block" is not a valid value. Use off, monitor or enforce.'],
    [
      'countries = ["NLD"]',
      '"NLD" is not a country. Use two-letter ISO 3166 codes such as NL or GB, or 001 for numbers of no country.',
    ],
    ['deniedCountries = ["XX"]', '"XX" is not a country.'],
    [
      'trustedPrefixes = ["316"]',
      '"316" is not a phone number prefix. Write + and the first digits, such as +3161.',
    ],
    ['trustedAddresses = ["10.0.0.300"]', 'is not an IP address or a CIDR.'],
    ['totalPerDay = "3"', 'guard.totalPerDay must be a whole number.'],
    [
      'allowedNumberTypes = ["900"]',
      'Use premium, sharedCost, personal, satellite, international, fixedLine,',
    ],
    ['countriesAllowed = ["NL"]', 'There is no setting guard.countriesAllowed.'],
  ])('refuses %s and says what to write instead', (line, expectedText) => {
    const problem = requireProblem(loadFile(`[guard]\n${line}`))
    expect(problem.source).toBe('/etc/o.toml:2')
    expect(problem.text).toContain(expectedText)
  })

  test('refuses a country that is both allowed and denied', () => {
    const problem = requireProblem(loadFile('[guard]\ncountries = ["NL", "CU"]\ndeniedCountries = ["CU"]'))
    expect(problem.source).toBe('/etc/o.toml:3')
    expect(problem.text).toContain('CU is denied and also in the allow-list')
    expect(problem.remedy).toContain('/etc/o.toml:2')
  })

  test('prefers variables to the file', () => {
    const env = {
      HOME: '/home/ada',
      OTPD_GUARD_MODE: 'off',
      OTPD_GUARD_COUNTRIES: 'nl,de',
      OTPD_GUARD_TOTAL_PER_DAY: '9',
    }
    const { guard } = requireConfig(loadFile('[guard]\nmode = "enforce"', { env }))
    expect(guard).toMatchObject({ mode: 'off', countries: ['NL', 'DE'], totalPerDay: 9 })
  })
})
