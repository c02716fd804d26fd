import { describe, expect, spyOn, test } from 'bun:test'
import { createPasswords, isAcceptablePassword } from '../../src/auth/passwords.ts'

describe('password rules', () => {
  test.each([
    ['eleven characters', 'eleven long', false],
    ['twelve characters', 'twelve long!', true],
    ['nothing', '', false],
    ['1,024 bytes', 'x'.repeat(1024), true],
    ['1,025 bytes', 'x'.repeat(1025), false],
    ['twelve characters of two code units each', '😀'.repeat(12), true],
    ['eleven characters of two code units each', '😀'.repeat(11), false],
    ['six characters and six accents that join them', 'e\u0301'.repeat(6), false],
  ])('%s', (_name, password, acceptable) => {
    expect(isAcceptablePassword(password)).toBe(acceptable)
  })
})

describe('passwords', () => {
  const passwords = createPasswords()

  test('are hashed with argon2id, with the published cost and a unique salt', async () => {
    const [one, two] = await Promise.all([passwords.hash('correct horse'), passwords.hash('correct horse')])
    expect(one).toStartWith('$argon2id$v=19$m=19456,t=2,p=1$')
    expect(one).not.toBe(two)
    expect(await passwords.verify('correct horse', one)).toBe(true)
    expect(await passwords.verify('correct horsf', one)).toBe(false)
  })

  test('the same characters in another Unicode form are the same password', async () => {
    const hash = await passwords.hash('caf\u00e9 au lait!')
    expect(await passwords.verify('cafe\u0301 au lait!', hash)).toBe(true)
  })

  test('an empty or oversized password is wrong, not an error', async () => {
    const hash = await passwords.hash('x'.repeat(1024))
    expect(await passwords.verify('', hash)).toBe(false)
    expect(await passwords.verify('x'.repeat(1025), hash)).toBe(false)
    expect(await passwords.verify(' ', undefined)).toBe(false)
  })

  test('an unknown user takes the same work as a known one', async () => {
    const hash = await passwords.hash('correct horse')
    const compared = spyOn(Bun.password, 'verify')
    for (const expected of [hash, undefined])
      expect(await passwords.verify('wrong horse', expected)).toBe(false)
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

  test('64 calls wait for the two that run; the next one is rejected with UNAVAILABLE', async () => {
    const hash = await passwords.hash('correct horse')
    const calls = Array.from({ length: 67 }, () => passwords.verify('correct horse', hash))
    const outcomes = await Promise.allSettled(calls)
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(66)
    expect(outcomes.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: { code: 'UNAVAILABLE', retryAfterSeconds: 2 },
    })
    expect(await passwords.verify('correct horse', hash)).toBe(true)
  })
})
