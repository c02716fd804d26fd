import { expect, test } from 'bun:test'
import { createIds, idPattern, isId } from '../../../src/domain/model/ids.ts'
import { testClock } from '../../helpers/clock.ts'

const random = (bytes: Uint8Array<ArrayBuffer>) => crypto.getRandomValues(bytes)

test('an id is its prefix and a UUIDv7 in base32', () => {
  const clock = testClock(Date.parse('2026-11-20T12:00:00.000Z'))
  const id = createIds(clock, random)('otp')
  expect(id).toMatch(/^otp_[0-7][0-9a-hjkmnp-tv-z]{25}$/)
  expect(new RegExp(idPattern('otp')).test(id)).toBe(true)
  const digits = Array.from(id.slice(4), (digit) => '0123456789abcdefghjkmnpqrstvwxyz'.indexOf(digit))
  const bits = digits
    .map((digit) => digit.toString(2).padStart(5, '0'))
    .join('')
    .slice(2)
  const uuid = BigInt(`0b${bits}`).toString(16).padStart(32, '0')
  expect(Number.parseInt(uuid.slice(0, 12), 16)).toBe(clock.now())
  expect(uuid[12]).toBe('7')
  expect('89ab').toContain(uuid[16] ?? '')
})

test('ids sort in the order of their creation, also within one millisecond and when the clock goes back', () => {
  const clock = testClock()
  const newId = createIds(clock, random)
  const ids: string[] = []
  for (let i = 0; i < 20_000; i++) {
    ids.push(newId('evt'))
    if (i % 7_000 === 0) clock.advance(1)
    if (i === 10_000) clock.advance(-5_000)
  }
  expect(ids.toSorted()).toEqual(ids)
  expect(new Set(ids).size).toBe(ids.length)
})

test('two processes generate different ids in the same millisecond', () => {
  const clock = testClock()
  const [one, other] = [createIds(clock, random), createIds(clock, random)]
  const ids = Array.from({ length: 1_000 }, () => [one('app'), other('app')]).flat()
  expect(new Set(ids).size).toBe(2_000)
})

test.each([
  '',
  'otp_',
  'app_01h2xcejqtf2nbrexx3vqjhp41',
  'otp_81h2xcejqtf2nbrexx3vqjhp41',
  'otp_01h2xcejqtf2nbrexx3vqjhp4',
  'otp_01h2xcejqtf2nbrexx3vqjhp411',
  'otp_01H2XCEJQTF2NBREXX3VQJHP41',
  'otp_01h2xcejqtf2nbrexx3vqjhpil',
  'otp_01h2xcejqtf2nbrexx3vqjhp41\n',
  ' otp_01h2xcejqtf2nbrexx3vqjhp41',
])('%j has not the form of the id of an OTP request', (text) => {
  expect(isId('otp', 'otp_01h2xcejqtf2nbrexx3vqjhp41')).toBe(true)
  expect(isId('otp', text)).toBe(false)
})
