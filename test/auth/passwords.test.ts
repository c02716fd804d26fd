import { describe, expect, spyOn, test } from 'bun:test'
import { findPasswordFault } from '../../src/auth/password-rules.ts'
import { createPasswords } from '../../src/auth/passwords.ts'
import { testClock } from '../helpers/clock.ts'

const owner = { email: 'ada.lovelace@example.com', name: 'Ada Lovelace' }

describe('the length of a password', () => {
  const long = 'correct horse, '.repeat(100)
  test.each([
    ['eleven characters', 'eleven long', false],
    ['twelve characters', 'twelve long!', true],
    ['nothing', '', false],
    ['1,024 bytes', long.slice(0, 1024), true],
    ['1,025 bytes', long.slice(0, 1025), false],
    ['twelve characters of two code units each', '😀🐎🔋🧷'.repeat(2) + '🌍🌵🐢🎈', true],
    ['eleven characters of two code units each', '😀🐎🔋🧷'.repeat(2) + '🌍🌵🐢', false],
    ['six characters and six accents that join them', 'e\u0301u\u0301a\u0301o\u0301i\u0301y\u0301', false],
  ])('%s', (_name, password, acceptable) => {
    expect(findPasswordFault(password, owner) === undefined).toBe(acceptable)
  })
})

describe('passwords that attackers try first are refused', () => {
  test.each([
    ['a common one with digits', 'password1234', 'common'],
    ['a common one in capitals with signs', 'SunShine2024!?', 'common'],
    ['a common one repeated', 'letmeinletmein', 'common'],
    ['a common one of both kinds of characters', '1q2w3e4r5t6y', 'common'],
    ['digits in order', '123456789012', 'sequence'],
    ['digits in reverse', '098765432109', 'sequence'],
    ['a row of keys with digits', 'qwertyuiop123', 'common'],
    ['parts of rows', 'asdfghjkl;xcvbnm', 'sequence'],
    ['the alphabet', 'abcdefghijklmno', 'sequence'],
    ['one character', 'x'.repeat(1024), 'sequence'],
    ['a short pattern', 'x9'.repeat(8), 'sequence'],
    ['the e-mail address', 'Ada.Lovelace@example.com', 'your name'],
    ['the start of the e-mail address', 'ada.lovelace', 'your name'],
    ['name and product', 'otpd-ada-lovelace', 'your name'],
    ['name and a year', 'AdaLovelace1815', 'your name'],
  ])('%s', (_name, password, reason) => {
    expect(findPasswordFault(password, owner)).toContain(reason)
  })

  test.each([
    'correct horse battery',
    'correct horse battery ',
    'another horse battery',
    'correct horse battery staple now',
    'lovelace reads correct books',
    'otpd and a correct horse',
    'x7Lq!0vTz#2m',
    '4917 6038 2215',
    'password for my castle',
  ])('but not: %s', (password) => {
    expect(findPasswordFault(password, owner)).toBeUndefined()
  })

  test('an account without a name', () => {
    expect(findPasswordFault('correct horse battery', { email: 'a@b.example', name: null })).toBeUndefined()
  })

  test('a long text is judged quickly', () => {
    const startedAt = process.cpuUsage()
    for (const part of ['a', 'ab', 'aab', 'qwert', '1234'])
      findPasswordFault(part.repeat(1024).slice(0, 1024), owner)
    // Unlike elapsed time, the same on a busy machine.
    expect(process.cpuUsage(startedAt).user / 1000).toBeLessThan(200)
  })
})

describe('passwords', () => {
  const passwords = createPasswords(testClock())
  const turn = { network: 'host', isKnown: false }
  const hash = (password: string) => passwords.takeTurn(turn, (hasher) => hasher.hash(password))
  const verify = (password: string, expected: string | undefined) =>
    passwords.takeTurn(turn, (hasher) => hasher.verify(password, expected))

  test('are hashed with argon2id, with the published cost and a unique salt', async () => {
    const [one, two] = await Promise.all([hash('correct horse'), hash('correct horse')])
    expect(one).toStartWith('$argon2id$v=19$m=19456,t=2,p=1$')
    expect(one).not.toBe(two)
    expect(await verify('correct horse', one)).toBe(true)
    expect(await verify('correct horsf', one)).toBe(false)
  })

  test('the same characters in another Unicode form are the same password', async () => {
    const expected = await hash('caf\u00e9 au lait!')
    expect(await verify('cafe\u0301 au lait!', expected)).toBe(true)
  })

  test('an empty or oversized password is wrong, not an error', async () => {
    const expected = await hash('x'.repeat(1024))
    expect(await verify('', expected)).toBe(false)
    expect(await verify('x'.repeat(1025), expected)).toBe(false)
    expect(await verify(' ', undefined)).toBe(false)
  })

  test('an unknown user takes the same work as a known one', async () => {
    const known = await hash('correct horse')
    const compared = spyOn(Bun.password, 'verify')
    for (const expected of [known, undefined]) expect(await verify('wrong horse', expected)).toBe(false)
    const parameters = compared.mock.calls.map(([hashed, comparedWith]) => [
      hashed,
      String(comparedWith).replace(/[^$]+\$[^$]+$/, ''),
    ])
    compared.mockRestore()
    expect(parameters).toEqual([
      ['wrong horse', '$argon2id$v=19$m=19456,t=2,p=1$'],
      ['wrong horse', '$argon2id$v=19$m=19456,t=2,p=1$'],
    ])
  })

  test('a hash of less work is outdated, one of today or of more work is not', async () => {
    const isOutdated = (expected: string) =>
      passwords.takeTurn(turn, async (hasher) => hasher.isOutdated(expected))
    expect(await isOutdated(await hash('correct horse'))).toBe(false)
    expect(await isOutdated('$argon2id$v=19$m=19456,t=1,p=1$AAAA$AAAA')).toBe(true)
    expect(await isOutdated('$argon2id$v=19$m=4096,t=3,p=1$AAAA$AAAA')).toBe(true)
    expect(await isOutdated('$argon2id$v=19$m=65536,t=3,p=1$AAAA$AAAA')).toBe(false)
    expect(await isOutdated('$2b$10$AAAA')).toBe(true)
  })
})
