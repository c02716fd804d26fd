import { createCipheriv } from 'node:crypto'
import { base32 } from './ids.ts'

const alphabet = Buffer.from(base32)

/** Version 7 and variant 2 (RFC 9562 §5.7), with zeros where other ids have random bits. */
const plainPrefix = 'e008'

/** Encodes and decodes the ids of log entries. */
export type EventIds = {
  /** @param at milliseconds since the epoch */
  encode(at: number, seq: number): string
  /** Encodes the ids of many entries in a fraction of the time. */
  encodeAll(entries: ReadonlyArray<{ at: number; seq: number }>): string[]
  /** Reverses `encode`. @returns undefined for an id that it did not make */
  decode(id: string): { at: number; seq: number } | undefined
  /** Whether the id of an entry shows its number, so that anyone can make one. */
  isPlain(seq: number): boolean
}

/**
 * Creates the ids of log entries: TypeIDs like all others, whose UUIDv7 holds the entry's sequence number instead of
 * random bits, so that entries need neither a column nor an index for their id. The number is encrypted, because it
 * counts the entries of all developers.
 *
 * The encryption is a synthetic IV (RFC 5297 §1): of the 74 bits that a UUIDv7 has for it, 32 are a tag, a pseudorandom
 * function of time and number, and 42 are the number under a key stream, another one of time and tag. An entry always
 * has the same id, and a forged id is decoded with a probability of 2^-32. Both functions are AES-256 of one block,
 * told apart by its first byte: the inputs fit a block, and a page of blocks takes as long as one.
 *
 * @param key 32 bytes; a new one changes all ids
 * @param plainUntil number of the last entry whose id shows its number
 */
export function createEventIds(key: Uint8Array, plainUntil: number): EventIds {
  // ECB is AES itself. It has no state, so one cipher encrypts everything.
  const aes = createCipheriv('aes-256-ecb', key, null).setAutoPadding(false)
  /** Reused: allocating takes as long as encrypting. */
  let blocks = new DataView(new ArrayBuffer(blockBytes))

  /** Encrypts a block for each entry: the purpose, the entry's time, and a number. */
  function encryptBlocks(purpose: number, entries: readonly Timed[], numberOf: (index: number) => number) {
    const bytes = blockBytes * entries.length
    if (bytes > blocks.byteLength) blocks = new DataView(new ArrayBuffer(bytes))
    for (let i = 0; i < entries.length; i++) {
      const at = entries[i]?.at ?? 0
      const number = numberOf(i)
      blocks.setUint32(blockBytes * i, purpose * 2 ** 16 + Math.floor(at / 2 ** 32))
      blocks.setUint32(blockBytes * i + 4, at)
      blocks.setUint32(blockBytes * i + 8, Math.floor(number / 2 ** 32))
      blocks.setUint32(blockBytes * i + 12, number)
    }
    return aes.update(new Uint8Array(blocks.buffer, 0, bytes))
  }

  const computeTags = (entries: ReadonlyArray<Timed & { seq: number }>) =>
    encryptBlocks(1, entries, (i) => entries[i]?.seq ?? 0)
  const readTag = (tags: Buffer, index: number) => tags.readUInt32BE(blockBytes * index)
  const readStream = (streams: Buffer, index: number) => ({
    high: streams.readUInt32BE(blockBytes * index) >>> 10,
    low: streams.readUInt32BE(blockBytes * index + 4) >>> 12,
  })

  function encodeAll(entries: ReadonlyArray<Timed & { seq: number }>): string[] {
    const tags = computeTags(entries)
    const streams = encryptBlocks(2, entries, (i) => readTag(tags, i))
    return entries.map(({ at, seq }, index) => {
      if (seq <= plainUntil) return encodePlain(at, seq)
      const tag = readTag(tags, index)
      const { high, low } = readStream(streams, index)
      const sealedHigh = (Math.floor(seq / 2 ** 20) ^ high) >>> 0
      const sealedLow = (seq % 2 ** 20) ^ low
      writeBase32(at, 4, 10)
      writeBase32(0x70008 | ((tag >>> 20) << 4) | ((tag >>> 18) & 3), 14, 4)
      writeBase32(((tag & 0x3ffff) << 2) | (sealedHigh >>> 20), 18, 4)
      writeBase32(sealedHigh & 0xfffff, 22, 4)
      writeBase32(sealedLow, 26, 4)
      return idBuffer.toString('latin1')
    })
  }

  return {
    encodeAll,

    encode: (at, seq) => encodeAll([{ at, seq }]).join(),

    isPlain: (seq) => seq <= plainUntil,

    decode(id) {
      const plain = decodePlain(id)
      if (plain && plain.seq <= plainUntil) return plain
      const at = readBase32(id.slice(4, 14))
      const head = readBase32(id.slice(14, 18))
      const middle = readBase32(id.slice(18, 22))
      const tag = ((((head >>> 4) & 0xfff) << 20) | ((head & 3) << 18) | (middle >>> 2)) >>> 0
      const stream = encryptBlocks(2, [{ at }], () => tag)
      const { high, low } = readStream(stream, 0)
      const seqHigh = ((((middle & 3) << 20) | readBase32(id.slice(22, 26))) ^ high) >>> 0
      const seq = seqHigh * 2 ** 20 + (readBase32(id.slice(26)) ^ low)
      const isOurs =
        (head & 0xf000c) === 0x70008 && seq > plainUntil && readTag(computeTags([{ at, seq }]), 0) === tag
      return isOurs ? { at, seq } : undefined
    },
  }
}

const blockBytes = 16

type Timed = { at: number }

/** The form of ids up to 0.1, which shows the number. */
function encodePlain(at: number, seq: number): string {
  writeBase32(at, 4, 10)
  idBuffer.write(plainPrefix, 14, 'latin1')
  writeBase32(seq, 18, 12)
  return idBuffer.toString('latin1')
}

function decodePlain(id: string): { at: number; seq: number } | undefined {
  if (id.slice(14, 18) !== plainPrefix) return undefined
  return { at: readBase32(id.slice(4, 14)), seq: readBase32(id.slice(18)) }
}

/** Reused for every id: building the id by string concatenation is several times slower. */
const idBuffer = Buffer.from(`evt_${'0'.repeat(26)}`)

/** Writes a number as `length` base32 digits into the buffer, from position `from`. */
function writeBase32(number: number, from: number, length: number) {
  // Bitwise operators work on 32 bits, which hold six base32 digits.
  const high = Math.floor(number / 2 ** 30)
  const low = number - high * 2 ** 30
  for (let i = 0; i < length; i++) {
    const bits = i < 6 ? low >>> (5 * i) : high >>> (5 * (i - 6))
    idBuffer[from + length - 1 - i] = alphabet[bits & 31] ?? 0
  }
}

function readBase32(text: string): number {
  let number = 0
  for (const digit of text) number = number * 32 + base32.indexOf(digit)
  return number
}
