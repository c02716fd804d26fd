import { describe, expect, test } from 'bun:test'
import { hkdfSync } from 'node:crypto'
import { deriveStoredCode, deriveCode, hashCode, matchesCode } from '../../../src/domain/model/code.ts'
import {
  createKeyring,
  dataKeysOf010,
  indexHash,
  indexHashes,
  newDataKey,
  purposes,
  unwrapDataKey,
  upgradeHash,
  wrapDataKey,
  type DataKey,
} from '../../../src/domain/model/keys.ts'
import { derivePseudonym, derivePseudonyms, upgradePseudonym } from '../../../src/domain/model/pseudonyms.ts'
import type { Random } from '../../../src/domain/model/random.ts'

const masterKey = new Uint8Array(32).fill(1)
const random: Random = (bytes) => crypto.getRandomValues(bytes)
const firstKeys = (): DataKey[] => purposes.map((purpose) => newDataKey(purpose, 1, random))
const nextKeys = (version: number): DataKey[] =>
  purposes.map((purpose) => newDataKey(purpose, version, random))

test('version 1 after an upgrade holds the very subkeys that 0.1.0 derived', () => {
  const { keys } = createKeyring(dataKeysOf010(masterKey, random))
  const of010 = (label: string) => Buffer.from(hkdfSync('sha256', masterKey, '', `otpd ${label} v1`, 32))
  const { code, codeHash, clientId, callback, signingKey, webhookHeader, refreshToken } = keys
  expect({ code, codeHash, clientId, callback, signingKey, webhookHeader, refreshToken }).toEqual({
    code: of010('code'),
    codeHash: of010('code hash'),
    clientId: of010('client id'),
    callback: of010('callback'),
    signingKey: of010('signing key'),
    webhookHeader: of010('webhook header'),
    refreshToken: of010('refresh token'),
  })
  expect([keys.phone, keys.pseudonym, keys.guard]).toEqual([
    [of010('phone')],
    [of010('pseudonym')],
    [of010('guard')],
  ])
})

test('what 0.1.0 did not have does not follow from its master key', () => {
  const one = createKeyring(dataKeysOf010(masterKey, random)).keys
  const other = createKeyring(dataKeysOf010(masterKey, random)).keys
  expect(one.code).toEqual(other.code)
  for (const name of ['context', 'idempotency', 'cursor'] as const) {
    expect(one[name]).not.toEqual(other[name])
  }
  expect(one.seals.find(1)).not.toEqual(other.seals.find(1))
})

test('no two subkeys are the same', () => {
  for (const dataKeys of [firstKeys(), dataKeysOf010(masterKey, random)]) {
    const { endedCodes, seals, audit, ...keys } = createKeyring(dataKeys).keys
    const all = [...Object.values(keys).flat(), seals.find(1), audit.key].map((key) => key?.toString('hex'))
    expect(new Set(all).size).toBe(all.length)
    expect(endedCodes).toEqual([])
  }
})

test('a wrapped data key opens only with its master key, purpose and version', () => {
  const dataKey = newDataKey('seals', 3, random)
  const wrapped = wrapDataKey(masterKey, dataKey, random)
  expect(unwrapDataKey(masterKey, dataKey, wrapped).material).toEqual(Buffer.from(dataKey.material))
  expect(() => unwrapDataKey(new Uint8Array(32).fill(2), dataKey, wrapped)).toThrow()
  expect(() => unwrapDataKey(masterKey, { purpose: 'codes', version: 3 }, wrapped)).toThrow()
  expect(() => unwrapDataKey(masterKey, { purpose: 'seals', version: 2 }, wrapped)).toThrow()
})

describe('a keyring', () => {
  test('changes the keys that others hold', () => {
    const ring = createKeyring(firstKeys())
    const { keys } = ring
    const before = { ...keys }
    ring.replace(firstKeys())
    for (const name of ['code', 'clientId', 'phone', 'callback'] as const) {
      expect(keys[name]).not.toEqual(before[name])
    }
  })

  test('reloads when a text names a version that it does not know', () => {
    const old = firstKeys()
    const ring = createKeyring(old, () => ring.replace([...old, ...nextKeys(2)]))
    const first = ring.keys.seals.find(1)
    expect(ring.keys.seals.version).toBe(1)
    expect(ring.keys.seals.find(2)).toBeInstanceOf(Buffer)
    expect(ring.keys.seals.version).toBe(2)
    expect(ring.keys.seals.find(1)).toEqual(first)
    expect(ring.keys.seals.find(3)).toBeUndefined()
  })

  test('still checks and sends a code of before', () => {
    const old = firstKeys()
    const ring = createKeyring(old)
    const { keys } = ring
    const source = {
      id: 'otp_1',
      codeSalt: 'AAAAAAAAAAAAAAAAAAAAAA',
      phone: '+31612345678',
      environment: 'live',
    } as const
    const code = deriveCode(keys, source)
    const request = { ...source, codeHash: hashCode(keys, 'otp_1', code) }
    ring.replace([...old, ...nextKeys(2)])
    expect(deriveStoredCode(keys, request)).toBe(code)
    expect(matchesCode(keys, 'otp_1', code, request.codeHash)).toBe(true)
    // Codes of before have ended.
    ring.replace([...old.filter(({ purpose }) => purpose !== 'codes'), ...nextKeys(3)])
    expect(matchesCode(keys, 'otp_1', code, request.codeHash)).toBe(false)
  })
})

describe('a hash of a text that is not stored', () => {
  const [one, two, three] = [1, 2, 3].map((byte) => Buffer.alloc(32, byte)) as [Buffer, Buffer, Buffer]

  test('is brought to a new version without the text', () => {
    const first = indexHash([one], 'text')
    const second = indexHash([one, two], 'text')
    const third = indexHash([one, two, three], 'text')
    expect(first).not.toContain('~')
    expect(second).toEndWith('~2')
    expect(upgradeHash([one, two], first)).toBe(second)
    expect(upgradeHash([one, two, three], first)).toBe(third)
    expect(upgradeHash([one, two, three], second)).toBe(third)
    expect(upgradeHash([one, two, three], third)).toBe(third)
    expect(indexHashes([one, two, three], 'text')).toEqual([third, second, first])
  })

  test('does not follow from the old key alone', () => {
    expect(indexHash([one, two], 'text')).not.toBe(indexHash([one, three], 'text'))
  })

  test('keeps the records of a pseudonym linked', () => {
    const before = { pseudonym: [one] }
    const after = { pseudonym: [one, two] }
    const old = derivePseudonym(before, 'dev_1', '+31612345678')
    expect(old).toMatch(/^anon_[\w-]{14}$/)
    expect(upgradePseudonym(after, old)).toBe(derivePseudonym(after, 'dev_1', '+31612345678'))
    expect(derivePseudonyms(after, 'dev_1', '+31612345678')).toContain(old)
  })
})
