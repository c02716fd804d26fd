import { expect, test } from 'bun:test'
import { deriveKeys } from '../../helpers/keys.ts'
import { deriveCode, hashCode, matchesCode, type CodeSource } from '../../../src/domain/model/code.ts'
import { hmac } from '../../../src/shared/hmac.ts'

const keys = deriveKeys(new Uint8Array(32).fill(1))
const source = (overrides: Partial<CodeSource> = {}): CodeSource => ({
  id: 'otp_01',
  codeSalt: 'AAAAAAAAAAAAAAAAAAAAAA',
  phone: '+14155552671',
  environment: 'live',
  ...overrides,
})
const codes = (count: number) =>
  Array.from({ length: count }, (_, i) => deriveCode(keys, source({ id: `otp_${i}` })))

test('a code is six digits, with leading zeros kept', () => {
  const sampleCodes = codes(20_000)
  expect(sampleCodes.filter((code) => !/^[0-9]{6}$/.test(code))).toEqual([])
  expect(sampleCodes.filter((code) => code.startsWith('0')).length).toBeGreaterThan(1_800)
})

test('numbers above the last whole million are skipped, so that no code is likelier than another', () => {
  const salt = Uint8Array.fromBase64(source().codeSalt, { alphabet: 'base64url' })
  const digestOf = (id: string) => hmac(keys.code).update(id).update(salt).update(Uint8Array.of(0)).digest()
  const ids = Array.from({ length: 40_000 }, (_, index) => `otp_${index}`)
  const skipped = ids.filter((id) => digestOf(id).readUInt32BE(0) >= 4_294_000_000)
  expect(skipped).not.toEqual([])
  for (const id of skipped)
    expect(deriveCode(keys, source({ id }))).toBe(
      String(digestOf(id).readUInt32BE(4) % 1_000_000).padStart(6, '0'),
    )
})

test('the stored hash of a code is that of its request alone', () => {
  expect(hashCode(keys, 'otp_01', '123456')).not.toBe(hashCode(keys, 'otp_02', '123456'))
  expect(matchesCode(keys, 'otp_02', '123456', hashCode(keys, 'otp_01', '123456'))).toBe(false)
})

test('the same request gives the same code again; another id, salt or key gives another one', () => {
  expect(deriveCode(keys, source())).toBe(deriveCode(keys, source()))
  const otherSources = [
    deriveCode(keys, source({ id: 'otp_02' })),
    deriveCode(keys, source({ codeSalt: 'AAAAAAAAAAAAAAAAAAAAAQ' })),
    deriveCode(deriveKeys(new Uint8Array(32).fill(2)), source()),
  ]
  expect(otherSources).not.toContain(deriveCode(keys, source()))
})

test('the code of a payment depends on its amount and payee, and one without them is as it ever was', () => {
  // Requests that were sent before there were payments must stay verifiable.
  expect(deriveCode(keys, source())).toBe('712407')
  expect(hashCode(keys, 'otp_01', '123456')).toBe('jLK3aydvkurdqIDW')
  expect(deriveCode(keys, source({ template: null }))).toBe('712407')
  expect(deriveCode(keys, source({ template: { variables: null } }))).toBe('712407')
  const payments = [
    { amount: '1', payee: '2x' },
    { amount: '12', payee: 'x' },
    { amount: '1 5 payee', payee: '2x' },
    { amount: '2x', payee: '1' },
  ]
  const derived = payments.map((variables) => deriveCode(keys, source({ template: { variables } })))
  expect(new Set([...derived, '712407']).size).toBe(5)
  const hashes = payments.map((variables) => hashCode(keys, 'otp_01', '123456', variables))
  expect(new Set([...hashes, 'jLK3aydvkurdqIDW']).size).toBe(5)
  for (const [index, variables] of payments.entries()) {
    const matching = hashes.map((hash) => matchesCode(keys, 'otp_01', '123456', hash, variables))
    expect(matching.indexOf(true)).toBe(index)
    expect(matching.lastIndexOf(true)).toBe(index)
    expect(matchesCode(keys, 'otp_01', '123456', hashes[index] ?? '')).toBe(false)
  }
})

test('every range of the million codes is equally likely', () => {
  const bins = Array.from({ length: 100 }, () => 0)
  const drawCount = 200_000
  for (const code of codes(drawCount)) {
    const bin = Math.floor(Number(code) / 10_000)
    bins[bin] = (bins[bin] ?? 0) + 1
  }
  const expected = drawCount / bins.length
  const chiSquare = bins.reduce((sum, seen) => sum + (seen - expected) ** 2 / expected, 0)
  // 99 degrees of freedom: beyond 160 one time in 10,000, and the keys here are always the same.
  expect(chiSquare).toBeLessThan(160)
})

test('every digit is equally likely at every position', () => {
  const bins = new Uint32Array(6 * 10)
  for (const code of codes(100_000)) {
    for (let place = 0; place < 6; place++) {
      const bin = place * 10 + Number(code[place])
      bins[bin] = (bins[bin] ?? 0) + 1
    }
  }
  for (let place = 0; place < 6; place++) {
    const digits = bins.subarray(place * 10, place * 10 + 10)
    const chiSquare = digits.reduce((sum, seen) => sum + (seen - 10_000) ** 2 / 10_000, 0)
    expect(chiSquare).toBeLessThan(34)
  }
})

test('fictional numbers have the fixed code in the test environment only', () => {
  for (const phone of ['+14155550100', '+14155550199', '+12125550142']) {
    expect(deriveCode(keys, source({ phone, environment: 'test' }))).toBe('424242')
    expect(deriveCode(keys, source({ phone, environment: 'live' }))).not.toBe('424242')
  }
  for (const phone of ['+14155550099', '+14155550200', '+141555501000', '+34155550100', '+14155560100']) {
    expect(deriveCode(keys, source({ phone, environment: 'test' }))).not.toBe('424242')
  }
})

test('a hash of another length matches nothing', () => {
  expect(matchesCode(keys, 'otp_01', '123456', '')).toBe(false)
})
