import { describe, expect, test } from 'bun:test'
import { requireConfig, loadEnv, loadFile, findOrigin, requireProblem } from '../helpers/config.ts'

describe('the guard', () => {
  test('only monitors by default, with the published thresholds', () => {
    expect(requireConfig(loadEnv({})).guard).toEqual({
      mode: 'monitor',
      countries: [],
      deniedCountries: [],
      trusted: { countries: [], prefixes: [], addresses: [] },
      unverified: {
        countryPerHour: 3,
        countryPerDay: 20,
        prefixPerHour: 5,
        prefixPerDay: 10,
        addressPerHour: 5,
        addressPerDay: 10,
        addressCountries: 3,
      },
      hourlyPercent: 20,
      dailyPercent: 30,
      caps: { applicationPerDay: 0, totalPerDay: 0 },
    })
  })

  test('is configured by its table', () => {
    const loaded = loadFile(
      [
        '[guard]',
        'mode = "enforce"',
        'countries = ["nl", "BE", "001"]',
        'deniedCountries = ["CU"]',
        'trustedCountries = ["LU"]',
        'trustedPrefixes = ["+3161"]',
        'trustedAddresses = ["10.1.2.3/8"]',
        'countryPerHour = 0',
        'addressCountries = 5',
        'dailyPercent = 45',
        'totalPerDay = 5000',
      ].join('\n'),
    )
    const { guard } = requireConfig(loaded)
    expect(guard).toMatchObject({
      mode: 'enforce',
      countries: ['NL', 'BE', '001'],
      deniedCountries: ['CU'],
      trusted: { countries: ['LU'], prefixes: ['+3161'], addresses: ['10.0.0.0/8'] },
      dailyPercent: 45,
      caps: { applicationPerDay: 0, totalPerDay: 5000 },
    })
    expect(guard.unverified).toMatchObject({ countryPerHour: 0, countryPerDay: 20, addressCountries: 5 })
    expect(findOrigin(loaded, 'guard.mode')).toBe('/etc/o.toml:2')
    expect(findOrigin(loaded, 'guard.countryPerDay')).toBe('default')
    expect(loaded.settings).toContainEqual({
      setting: 'guard.countries',
      value: ['NL', 'BE', '001'],
      origin: '/etc/o.toml:3',
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
    ['dailyPercent = 101', 'Use a whole number from 0 to 100.'],
    ['countryPerHour = "3"', 'The value must be a whole number.'],
    ['countriesAllowed = ["NL"]', 'There is no setting guard.countriesAllowed.'],
  ])('refuses %s and says what to write instead', (line, expectedText) => {
    const problem = requireProblem(loadFile(`[guard]\n${line}`))
    expect(problem.source).toBe('/etc/o.toml:2')
    expect(problem.text).toContain(expectedText)
  })

  test.each([
    ['countries', 'also in the allow-list'],
    ['trustedCountries', 'also trusted'],
  ])('refuses a country that is both denied and in %s', (list, expectedText) => {
    const problem = requireProblem(loadFile(`[guard]\n${list} = ["NL", "CU"]\ndeniedCountries = ["CU"]`))
    expect(problem.source).toBe('/etc/o.toml:3')
    expect(problem.text).toContain(`CU is denied and ${expectedText}`)
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
    expect(guard).toMatchObject({ mode: 'off', countries: ['NL', 'DE'], caps: { totalPerDay: 9 } })
  })
})
