import { hkdfSync } from 'node:crypto'

const blockBytes = 64
const halfBytes = 8
const rowBytesMax = 128
/** Form of a sealed number: the last of 22 digits of base64url holds two bits, and no others that could be changed. */
const sealedPattern = /^[A-Za-z0-9_-]{21}[AQgw]$/

/**
 * Encrypts phone numbers in 16 bytes: deterministic authenticated encryption (SIV, Rogaway and Shrimpton 2006),
 * composed of two HMAC-SHA-256 with independent keys. A number in E.164 is a 64-bit integer `n`; `row` names the
 * column and the row that store it (associated data).
 *
 * ```
 * tag        = HMAC(tag key, row ‖ n)[0..8]
 * ciphertext = n XOR HMAC(stream key, row ‖ tag)[0..8]
 * stored     = tag ‖ ciphertext
 * ```
 *
 * Why this and not AES-GCM, which seals everything else: every request and log entry has a phone, GCM takes 40
 * bytes and twice the time (measured on Bun: 0.7 µs against 1.3 to seal), and a random nonce must never repeat under
 * one key. SIV has no nonce, so nothing can be misused. It reveals only whether the same number was stored in the
 * same row before; rows never share a tag or a key stream, because the row is part of both inputs. Two different
 * numbers of one row would share a key stream if their tags collided, once in 2^64. A changed value, or one moved to
 * another row or column, opens with a probability of 2^-64 for each attempt, and every attempt needs write access to
 * the database and one call of the server. Both inputs end with eight bytes, so `row` needs no length.
 *
 * The hashing is one-shot over reused buffers with precomputed pads (RFC 2104), a quarter of the time of `createHmac`.
 * Not reentrant, and it does not need to be: a call never awaits.
 *
 * @param key 32 bytes, from which both keys are derived
 */
export function createPhoneCipher(key: Uint8Array) {
  const tagHmac = createHmacOfRow(derive(key, 'phone tag'))
  const streamHmac = createHmacOfRow(derive(key, 'phone stream'))
  const sealed = Buffer.alloc(2 * halfBytes)
  const tag = sealed.subarray(0, halfBytes)
  const ciphertext = sealed.subarray(halfBytes)
  const number = Buffer.alloc(halfBytes)

  /** XORs eight bytes with the key stream of the row and the tag. */
  function applyStream(row: string, from: Buffer, to: Buffer) {
    const stream = streamHmac(row, tag)
    for (let i = 0; i < halfBytes; i++) to[i] = (from[i] ?? 0) ^ (stream[i] ?? 0)
  }

  return {
    /** @param phone E.164 @returns 22 digits of base64url */
    seal(row: string, phone: string): string {
      const digits = Number(phone)
      number.writeUInt32BE(Math.floor(digits / 2 ** 32), 0)
      number.writeUInt32BE(digits % 2 ** 32, 4)
      tag.set(tagHmac(row, number).subarray(0, halfBytes))
      applyStream(row, number, ciphertext)
      return sealed.toString('base64url')
    },

    /** @returns the phone in E.164; undefined if `text` was changed, or sealed for another row or with another key */
    open(row: string, text: string): string | undefined {
      if (!sealedPattern.test(text)) return undefined
      sealed.write(text, 'base64url')
      applyStream(row, ciphertext, number)
      const expected = tagHmac(row, number)
      let difference = 0
      for (let i = 0; i < halfBytes; i++) difference |= (expected[i] ?? 0) ^ (tag[i] ?? 0)
      if (difference !== 0) return undefined
      return `+${number.readUInt32BE(0) * 2 ** 32 + number.readUInt32BE(4)}`
    },
  }
}

export type PhoneCipher = ReturnType<typeof createPhoneCipher>

const derive = (key: Uint8Array, purpose: string) =>
  new Uint8Array(hkdfSync('sha256', key, '', `otpd seals ${purpose} v1`, 32))

/** Creates an HMAC-SHA-256 of a row and eight bytes. It returns a buffer that its next call overwrites. */
function createHmacOfRow(key: Uint8Array): (row: string, end: Uint8Array) => Uint8Array {
  const inner = Buffer.alloc(blockBytes + rowBytesMax + halfBytes, 0x36)
  const outer = Buffer.alloc(blockBytes + 32, 0x5c)
  for (const [i, byte] of key.entries()) {
    inner[i] = byte ^ 0x36
    outer[i] = byte ^ 0x5c
  }
  const innerDigest = outer.subarray(blockBytes)
  const digest = new Uint8Array(32)
  /** The beginnings of `inner`, by the length of the row: creating one takes as long as copying the row. */
  const inputs: Buffer[] = []
  return (row, end) => {
    const rowBytes = row.length
    if (rowBytes > rowBytesMax) throw new RangeError('the name of a row is too long')
    inner.write(row, blockBytes, 'latin1')
    inner.set(end, blockBytes + rowBytes)
    const input = (inputs[rowBytes] ??= inner.subarray(0, blockBytes + rowBytes + halfBytes))
    Bun.SHA256.hash(input, innerDigest)
    Bun.SHA256.hash(outer, digest)
    return digest
  }
}
