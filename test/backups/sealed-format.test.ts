import { describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import {
  headerBytes,
  openSealedBackup,
  readSealedHeader,
  sealBackup,
} from '../../src/backups/sealed-format.ts'

const masterKey = new Uint8Array(32).fill(1)
const at = Date.parse('2026-11-20T12:00:00.123Z')
const chunkBytes = 64 * 1024 + 16

async function* pieces(bytes: Uint8Array, size: number) {
  for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size)
}

async function collect(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = []
  for await (const part of source) parts.push(part)
  return Buffer.concat(parts)
}

const seal = (bytes: Uint8Array) => collect(sealBackup(pieces(bytes, 10_000), masterKey, at))

const open = async (sealed: Uint8Array) =>
  collect(
    openSealedBackup(
      pieces(sealed.subarray(headerBytes), 7_777),
      readSealedHeader(sealed, [masterKey], 'it'),
      'it',
    ),
  )

const refusal = (sealed: Uint8Array) =>
  open(sealed).then(
    () => 'opened',
    (error: unknown) => (error instanceof Error && 'reason' in error ? error.reason : error),
  )

describe('a sealed backup', () => {
  test.each([0, 1, 64 * 1024, 3 * 64 * 1024 + 5])('opens again with its time: %d bytes', async (size) => {
    const bytes = randomBytes(size)
    const sealed = await seal(bytes)
    expect((await open(sealed)).equals(bytes)).toBe(true)
    expect(readSealedHeader(sealed, [new Uint8Array(32), masterKey], 'it').at).toBe(at)
  })

  test('is compressed, and differs each time', async () => {
    const bytes = Buffer.alloc(1_000_000, 'otpd')
    const [first, second] = [await seal(bytes), await seal(bytes)]
    expect(first.length).toBeLessThan(10_000)
    expect(first.subarray(headerBytes).equals(second.subarray(headerBytes))).toBe(false)
  })

  test('is refused after a flipped bit in any chunk or the header', async () => {
    const sealed = await seal(randomBytes(5 * 64 * 1024))
    const places = [40, headerBytes - 1, sealed.length - 1]
    for (let start = headerBytes; start < sealed.length; start += chunkBytes) places.push(start, start + 20)
    expect(places.length).toBeGreaterThan(12)
    for (const place of places) {
      const changed = Buffer.from(sealed)
      changed[place] = (changed[place] ?? 0) ^ 1
      expect([place, await refusal(changed)]).toEqual([place, 'BACKUP_FORGED'])
    }
  })

  test('is refused when it was cut, also between chunks', async () => {
    const sealed = await seal(randomBytes(3 * 64 * 1024))
    for (const end of [headerBytes, headerBytes + 15, headerBytes + chunkBytes, sealed.length - 1])
      expect([end, await refusal(sealed.subarray(0, end))]).toEqual([end, 'BACKUP_FORGED'])
  })

  test('is refused when chunks change places, or come from another backup', async () => {
    const [sealed, other] = [await seal(randomBytes(4 * 64 * 1024)), await seal(randomBytes(4 * 64 * 1024))]
    const chunk = (bytes: Buffer, number: number) =>
      bytes.subarray(headerBytes + number * chunkBytes, headerBytes + (number + 1) * chunkBytes)
    const head = sealed.subarray(0, headerBytes)
    const rest = sealed.subarray(headerBytes + 2 * chunkBytes)
    for (const changed of [
      Buffer.concat([head, chunk(sealed, 1), chunk(sealed, 0), rest]),
      Buffer.concat([head, chunk(sealed, 0), chunk(other, 1), rest]),
      Buffer.concat([head, chunk(sealed, 0), rest]),
      Buffer.concat([sealed, Buffer.from('x')]),
    ])
      expect(await refusal(changed)).toBe('BACKUP_FORGED')
  })

  test('is told from other files, and names the need of another key', async () => {
    const sealed = await seal(randomBytes(10))
    expect(() => readSealedHeader(sealed, [new Uint8Array(32)], 'it')).toThrow(
      'it was made with another master key',
    )
    expect(() => readSealedHeader(Buffer.from('SQLite format 3\0'), [masterKey], 'it')).toThrow(
      'it is not a sealed backup of otpd',
    )
    expect(() => readSealedHeader(sealed.subarray(0, 30), [masterKey], 'it')).toThrow('not a sealed backup')
  })
})
