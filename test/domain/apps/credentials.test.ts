import { describe, expect, test } from 'bun:test'
import { createHash, createHmac } from 'node:crypto'
import {
  deriveClientId,
  hasCredentialFormat,
  issueCredentials,
  makeCredential,
  makeWebhookSecret,
  maskCredential,
  matchesCredential,
  previewCredential,
  replaceCredential,
  hashCredential,
  type RotationType,
} from '../../../src/domain/apps/credentials.ts'
import { deriveKeys } from '../../helpers/keys.ts'
import type { Random } from '../../../src/domain/model/random.ts'

const random: Random = (bytes) => crypto.getRandomValues(bytes)
/** Returns the bytes 0, 1, 2, … across calls. */
const counting = (): Random => {
  let next = 0
  return (bytes) => void bytes.forEach((_, index) => (bytes[index] = next++ & 255))
}
const keys = deriveKeys(new Uint8Array(32).fill(1))
const hexRange = (from: number, count: number) =>
  Array.from({ length: count }, (_, i) => ((from + i) & 255).toString(16).padStart(2, '0')).join('')

describe('a credential', () => {
  test('is 24 random bytes after environment and kind', () => {
    expect(makeCredential('secret', 'live', counting())).toBe(`ph_live_secret_${hexRange(0, 24)}`)
    expect(makeCredential('api', 'test', counting())).toBe(`ph_test_api_${hexRange(0, 24)}`)
    expect(makeWebhookSecret(counting())).toBe(`whsec_${hexRange(0, 24)}`)
  })

  test('is never generated twice', () => {
    const credentials = Array.from({ length: 1000 }, () => makeCredential('api', 'live', random))
    expect(new Set(credentials).size).toBe(1000)
  })

  test('is previewed as prefix and the first and last four digits', () => {
    const value = `ph_live_secret_1a2b${'c'.repeat(40)}9f0e`
    expect(previewCredential(value)).toBe('1a2b9f0e')
    expect(maskCredential('secret', 'live', '1a2b9f0e')).toBe('ph_live_secret_1a2b****9f0e')
    expect(maskCredential('api', 'test', '1a2b9f0e')).toBe('ph_test_api_1a2b****9f0e')
  })
})

describe('a stored credential', () => {
  const value = makeCredential('secret', 'live', random)

  test('is SHA-256 over 16 bytes of salt and the value', () => {
    const { salt, hash } = hashCredential(value, counting())
    expect(salt).toBe(hexRange(0, 16))
    expect(hash).toBe(createHash('sha256').update(Buffer.from(salt, 'hex')).update(value).digest('hex'))
  })

  test('has a new salt each time', () => {
    expect(hashCredential(value, random)).not.toEqual(hashCredential(value, random))
  })

  test('matches its value', () => {
    expect(matchesCredential(value, hashCredential(value, random))).toBe(true)
  })

  test.each([
    ['another value', makeCredential('secret', 'live', random)],
    ['another environment', value.replace('live', 'test')],
    ['another kind', value.replace('secret', 'api')],
    ['another last digit', value.slice(0, -1) + (value.endsWith('0') ? '1' : '0')],
    ['a longer one', `${value}0`],
    ['nothing', ''],
    ['an umlaut', 'ü'],
  ])('does not match %s', (_, other) => {
    expect(matchesCredential(other, hashCredential(value, random))).toBe(false)
  })
})

describe('the format of a credential', () => {
  const digits = '0123456789abcdef'.repeat(3)

  test.each([
    ['client', `ph_live_client_${digits}`],
    ['secret', `ph_test_secret_${digits}`],
    ['api', `ph_live_api_${digits}`],
  ] as const)('of kind %s is accepted', (kind, value) => {
    expect(hasCredentialFormat(kind, value)).toBe(true)
  })

  test.each([
    ['absent', undefined],
    ['empty', ''],
    ['of another kind', `ph_live_secret_${digits}`],
    ['of another environment', `ph_prod_api_${digits}`],
    ['in upper case', `ph_live_api_${digits.toUpperCase()}`],
    ['too short', `ph_live_api_${digits.slice(1)}`],
    ['too long', `ph_live_api_${digits}0`],
    ['followed by a line break', `ph_live_api_${digits}\n`],
    ['preceded by a space', ` ph_live_api_${digits}`],
    ['two of them', `ph_live_api_${digits}, ph_live_api_${digits}`],
  ])('that is %s is refused', (_, value) => {
    expect(hasCredentialFormat('api', value)).toBe(false)
  })
})

describe('the client ID', () => {
  const id = 'app_01m7wd7tg0evprrkazbkttzrj8'

  test('is derived from key and application, the same each time', () => {
    const mac = createHmac('sha256', keys.clientId).update(`client-id:${id}`).digest('hex')
    expect(deriveClientId(keys, 'live', id)).toBe(`ph_live_client_${mac.slice(0, 48)}`)
    expect(hasCredentialFormat('client', deriveClientId(keys, 'test', id))).toBe(true)
  })

  test('differs by application and by key', () => {
    const other = deriveKeys(new Uint8Array(32).fill(2))
    const ids = [
      deriveClientId(keys, 'live', id),
      deriveClientId(keys, 'live', 'app_other'),
      deriveClientId(other, 'live', id),
    ]
    expect(new Set(ids).size).toBe(3)
  })
})

describe('the credentials of an application', () => {
  test('are stored as hashes, except the webhook secret', () => {
    const { secrets, stored } = issueCredentials(keys, 'live', 'app_1', random)
    expect(
      matchesCredential(deriveClientId(keys, 'live', 'app_1'), {
        salt: stored.clientIdSalt,
        hash: stored.clientIdHash,
      }),
    ).toBe(true)
    expect(
      matchesCredential(secrets.clientSecret, {
        salt: stored.clientSecretSalt,
        hash: stored.clientSecretHash,
      }),
    ).toBe(true)
    expect(matchesCredential(secrets.apiKey, { salt: stored.apiKeySalt, hash: stored.apiKeyHash })).toBe(true)
    expect(stored.webhookSecret).toBe(secrets.webhookSecret)
    expect(stored.apiKeyPreview).toBe(previewCredential(secrets.apiKey))
    expect(stored.clientSecretPreview).toBe(previewCredential(secrets.clientSecret))
    expect(new Set([stored.clientIdSalt, stored.clientSecretSalt, stored.apiKeySalt]).size).toBe(3)
    const text = JSON.stringify({ ...stored, webhookSecret: '' })
    expect(text).not.toContain(secrets.apiKey.slice(-48))
    expect(text).not.toContain(secrets.clientSecret.slice(-48))
  })

  test.each<[RotationType, RegExp]>([
    ['secret', /^ph_test_secret_[0-9a-f]{48}$/],
    ['api', /^ph_test_api_[0-9a-f]{48}$/],
    ['webhook_secret', /^whsec_[0-9a-f]{48}$/],
  ])('are replaced by new ones of the same format: %s', (type, format) => {
    const { value, stored } = replaceCredential(type, 'test', random)
    expect(value).toMatch(format)
    if (stored.type === 'webhook_secret') expect(stored.value).toBe(value)
    else {
      expect(matchesCredential(value, stored)).toBe(true)
      expect(stored.preview).toBe(previewCredential(value))
    }
  })
})
