import { createHash } from 'node:crypto'
import { expect, test } from 'bun:test'
import { readEarlierResult } from '../../src/domain/limits/idempotency.ts'
import { createKeyring, newDataKey, purposes } from '../../src/domain/model/keys.ts'
import { createIdempotencyReader } from '../../src/http/idempotency.ts'
import { testKeys } from '../helpers/keys.ts'

const body = { phone: '+31612345678' }
const plainHash = createHash('sha256').update(JSON.stringify(body)).digest('base64url')
const read = (keys = testKeys, content: unknown = body) => {
  const scope = createIdempotencyReader(keys)({ 'idempotency-key': 'k' }, 'app_1', 'send', content)
  if (!scope) throw new Error('no scope')
  return scope
}

/** Replays a stored call. */
const replay = (bodyHash: string, scope = read()) =>
  readEarlierResult({ bodyHash, answer: '{"value":1}', createdAt: 0 }, scope, 0)

test('the stored hash of a body does not follow from the body', () => {
  expect(read().bodyHash).not.toBe(plainHash)
  expect(read().bodyHash).toMatch(/^[\w-]{43}$/)
})

test('a call that 0.1.0 stored is replayed, and another body is refused', () => {
  expect(replay(read().bodyHash)).toMatchObject({ value: 1 })
  expect(replay(plainHash)).toMatchObject({ value: 1 })
  expect(replay(read(testKeys, { phone: '+31612345679' }).bodyHash)).toMatchObject({
    rejected: { code: 'IDEMPOTENCY_KEY_REUSED' },
  })
})

test('a call that was stored before the keys were replaced is replayed', () => {
  const random = (bytes: Uint8Array<ArrayBuffer>) => crypto.getRandomValues(bytes)
  const first = purposes.map((purpose) => newDataKey(purpose, 1, random))
  const ring = createKeyring(first)
  const before = read(ring.keys).bodyHash
  ring.replace([...first, ...purposes.map((purpose) => newDataKey(purpose, 2, random))])
  expect(read(ring.keys).bodyHash).not.toBe(before)
  expect(replay(before, read(ring.keys))).toMatchObject({ value: 1 })
})
