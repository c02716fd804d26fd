import { expect, test } from 'bun:test'
import { fromSid, hexToId, idToHex, joinSecrets, splitSecrets, toSid } from '../../src/shared/sids.ts'

test('a sid is the 128 bits of an id, in both directions', () => {
  const id = 'app_01m80sr471e27v7f4wrmn5z47g'
  expect(toSid('AC', id)).toBe('AC01a2019c10e1708fb3bc9cc52a5f90f0')
  expect(fromSid(['AC', 'SK'], 'app', 'SK01A2019C10E1708FB3BC9CC52A5F90F0')).toBe(id)
  for (const one of [`otp_${'0'.repeat(26)}`, `otp_7${'z'.repeat(25)}`, 'otp_01k9aaaaaaeekr1q2v3w4x5y6z'])
    expect(hexToId('otp', idToHex(one))).toBe(one)
})

test.each([
  '',
  'AC',
  'VA01a2019c10e1708fb3bc9cc52a5f90f0',
  'AC01a2019c10e1708fb3bc9cc52a5f90f',
  'AC01a2019c10e1708fb3bc9cc52a5f90g0',
])('%p is no sid of an account', (text) => {
  expect(fromSid(['AC'], 'app', text)).toBeUndefined()
})

test('two secrets are joined without their prefixes, and split again', () => {
  const [secret, key] = ['a1'.repeat(24), 'b2'.repeat(24)]
  expect(joinSecrets(`ph_live_secret_${secret}`, `ph_live_api_${key}`)).toBe(secret + key)
  expect(splitSecrets(secret + key)).toEqual({ clientSecret: secret, apiKey: key })
  for (const text of ['', secret, `${secret}${key}0`, (secret + key).toUpperCase()])
    expect(splitSecrets(text)).toBeUndefined()
})
