import { hkdfSync } from 'node:crypto'

const blockBytes = 64
const halfBytes = 8
const rowBytesMax = 128
const sealedDigits = 22

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
 * Of 0.6 µs, hashing takes 0.46. Not reentrant, and it does not need to be: a call never awaits.
 *
 * @param key 32 bytes, from which both keys are derived
 */
export function createPhoneCipher(key: Uint8Array) {
  const tagKey = createHmacKey(derive(key, 'phone tag'))
  const streamKey = createHmacKey(derive(key, 'phone stream'))
  const sealed = Buffer.alloc(2 * halfBytes)
  /** The pad of the key, the row, and eight bytes: the number or the tag. */
  const input = Buffer.alloc(blockBytes + rowBytesMax + halfBytes)
  /** The beginnings of `input`, by their length: creating one takes as long as copying the row. */
  const inputs: Buffer[] = []
  let end = blockBytes
  let columnInInput = ''
  const digest = new Uint8Array(32)

  function setRow(column: string, row: string) {
    const rowBytes = column.length + 1 + row.length
    if (rowBytes > rowBytesMax) throw new RangeError('the name of a row is too long')
    if (column !== columnInInput) input.write(`${column} `, blockBytes, 'latin1')
    columnInInput = column
    input.write(row, blockBytes + column.length + 1, 'latin1')
    end = blockBytes + rowBytes
  }

  /** Computes the HMAC-SHA-256 of the row and the eight bytes into `digest`. */
  function computeHmac({ innerPad, outer, innerDigest }: HmacKey) {
    input.set(innerPad)
    Bun.SHA256.hash((inputs[end] ??= input.subarray(0, end + halfBytes)), innerDigest)
    Bun.SHA256.hash(outer, digest)
  }

  return {
    /** @param phone E.164 @returns 22 digits of base64url */
    seal(column: string, row: string, phone: string): string {
      setRow(column, row)
      const number = Number(phone)
      input.writeUInt32BE(Math.floor(number / 2 ** 32), end)
      input.writeUInt32BE(number % 2 ** 32, end + 4)
      sealed.set(input.subarray(end, end + halfBytes), halfBytes)
      computeHmac(tagKey)
      for (let i = 0; i < halfBytes; i++) input[end + i] = sealed[i] = digest[i] ?? 0
      computeHmac(streamKey)
      for (let i = 0; i < halfBytes; i++)
        sealed[halfBytes + i] = (sealed[halfBytes + i] ?? 0) ^ (digest[i] ?? 0)
      return sealed.toString('base64url')
    },

    /**
     * @param start where the digits begin in `text`
     * @returns the phone in E.164; undefined if `text` was changed, or sealed for another row or with another key
     */
    open(column: string, row: string, text: string, start = 0): string | undefined {
      if (!decodeSealed(text, start, sealed)) return undefined
      setRow(column, row)
      for (let i = 0; i < halfBytes; i++) input[end + i] = sealed[i] ?? 0
      computeHmac(streamKey)
      for (let i = 0; i < halfBytes; i++) input[end + i] = (sealed[halfBytes + i] ?? 0) ^ (digest[i] ?? 0)
      computeHmac(tagKey)
      let difference = 0
      for (let i = 0; i < halfBytes; i++) difference |= (digest[i] ?? 0) ^ (sealed[i] ?? 0)
      if (difference !== 0) return undefined
      return `+${input.readUInt32BE(end) * 2 ** 32 + input.readUInt32BE(end + 4)}`
    },
  }
}

export type PhoneCipher = ReturnType<typeof createPhoneCipher>

const derive = (key: Uint8Array, purpose: string) =>
  new Uint8Array(hkdfSync('sha256', key, '', `otpd seals ${purpose} v1`, 32))

type HmacKey = ReturnType<typeof createHmacKey>

/** Prepares the pads of a key. */
function createHmacKey(key: Uint8Array) {
  const innerPad = new Uint8Array(blockBytes).fill(0x36)
  const outer = Buffer.alloc(blockBytes + 32, 0x5c)
  for (const [i, byte] of key.entries()) {
    innerPad[i] = byte ^ 0x36
    outer[i] = byte ^ 0x5c
  }
  return { innerPad, outer, innerDigest: outer.subarray(blockBytes) }
}

/** Values of the digits of base64url, by character code; -1 for other characters. */
const digitValues = new Int8Array(128).fill(-1)
for (const [value, digit] of [
  ...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_',
].entries())
  digitValues[digit.charCodeAt(0)] = value

/**
 * Decodes 22 digits. The last one holds two bits, and no others that could be changed.
 *
 * @returns false if the text from `start` on has another form
 */
function decodeSealed(text: string, start: number, bytes: Uint8Array): boolean {
  if (text.length !== start + sealedDigits) return false
  const digitAt = (index: number) => digitValues[text.charCodeAt(index)] ?? -1
  let next = 0
  for (let i = start; i < start + sealedDigits - 2; i += 4) {
    const bits = (digitAt(i) << 18) | (digitAt(i + 1) << 12) | (digitAt(i + 2) << 6) | digitAt(i + 3)
    if (bits < 0) return false
    bytes[next++] = bits >>> 16
    bytes[next++] = bits >>> 8
    bytes[next++] = bits
  }
  const bits = (digitAt(text.length - 2) << 6) | digitAt(text.length - 1)
  bytes[next] = bits >>> 4
  return bits >= 0 && (bits & 0xf) === 0
}
