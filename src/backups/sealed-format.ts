import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { pipeline } from 'node:stream/promises'
import { PassThrough } from 'node:stream'
import { createZstdCompress, createZstdDecompress } from 'node:zlib'
import { masterKeyCheck } from '../domain/model/keys.ts'
import { OperationRefused } from '../store/data-dir/data-dir.ts'
import { sealedBackupKey } from './keys.ts'

/**
 * A sealed backup is a header and the database, compressed with zstd and then encrypted with AES-256-GCM in chunks of
 * 64 KiB. Each backup has its own key, derived from the master key and a random salt, so a chunk's number can be its
 * nonce. The associated data of a chunk are the header, its number and whether it is the last one: a chunk that was
 * changed, moved, dropped or taken from another backup does not decrypt, and a cut file lacks the last one (the STREAM
 * construction of Hoang, Reyhanitabar, Rogaway and Vizár, 2015).
 *
 * Header: 16 bytes of magic, 16 bytes that tell which master key it needs (see `masterKeyCheck`), 32 bytes of salt, 8 bytes
 * with the time in milliseconds.
 */
const magic = Buffer.from('otpd sealed v1\n\0', 'latin1')
const checkBytes = 16
const saltBytes = 32
export const headerBytes = magic.length + checkBytes + saltBytes + 8

const chunkBytes = 64 * 1024
const tagBytes = 16

/** Contents of the header. `at` is authenticated with the first chunk. */
type SealedHeader = { header: Buffer; masterKey: Uint8Array; at: number }

type Bytes = AsyncIterable<Uint8Array>

/** Tells whether a file begins like a sealed backup. */
export const isSealedBackup = (start: Uint8Array): boolean =>
  magic.equals(Buffer.from(start.buffer, start.byteOffset, Math.min(start.length, magic.length)))

/**
 * Compresses and encrypts a database file as it is read.
 *
 * @param at time of the backup in milliseconds
 */
export async function* sealBackup(database: Bytes, masterKey: Uint8Array, at: number): Bytes {
  const time = Buffer.alloc(8)
  time.writeBigUInt64BE(BigInt(at))
  const check = Buffer.from(masterKeyCheck(masterKey), 'hex')
  const header = Buffer.concat([magic, check, randomBytes(saltBytes), time])
  yield header
  const key = sealedBackupKey(masterKey, saltIn(header))
  let number = 0
  for await (const { chunk, isLast } of chunksOf(through(database, createZstdCompress()), chunkBytes)) {
    const cipher = createCipheriv('aes-256-gcm', key, nonce(number)).setAAD(context(header, number, isLast))
    yield Buffer.concat([cipher.update(chunk), cipher.final(), cipher.getAuthTag()])
    number++
  }
}

/** Reads from a header which master key it needs, as `masterKeyCheck`. */
export const keyCheckIn = (header: Uint8Array): string =>
  Buffer.from(header.subarray(magic.length, magic.length + checkBytes)).toString('hex')

/**
 * Reads the header.
 *
 * @param masterKeys those that may open it
 * @throws OperationRefused BACKUP_INVALID, BACKUP_OF_ANOTHER_KEY
 */
export function readSealedHeader(
  start: Uint8Array,
  masterKeys: readonly Uint8Array[],
  name: string,
): SealedHeader {
  if (start.length < headerBytes || !isSealedBackup(start))
    throw new OperationRefused(
      'BACKUP_INVALID',
      `${name} is not a sealed backup of otpd`,
      'Choose another backup: otpd backup list. Nothing was changed.',
    )
  const header = Buffer.from(start.subarray(0, headerBytes))
  const check = keyCheckIn(header)
  const masterKey = masterKeys.find((key) => masterKeyCheck(key) === check)
  if (masterKey) return { header, masterKey, at: Number(header.readBigUInt64BE(headerBytes - 8)) }
  throw new OperationRefused(
    'BACKUP_OF_ANOTHER_KEY',
    `${name} was made with another master key`,
    'To restore it, name the key of its day with --master-key-file. Nothing was changed.',
  )
}

/**
 * Decrypts and decompresses what follows the header. Bytes that were yielded are authentic, but complete only when it
 * ends without an error.
 *
 * @throws OperationRefused BACKUP_FORGED it was changed or cut
 */
export async function* openSealedBackup(
  body: Bytes,
  { header, masterKey }: SealedHeader,
  name: string,
): Bytes {
  const key = sealedBackupKey(masterKey, saltIn(header))
  async function* decrypted(): Bytes {
    let number = 0
    for await (const { chunk, isLast } of chunksOf(body, chunkBytes + tagBytes)) {
      yield decrypt(chunk, isLast, number)
      number++
    }
  }
  function decrypt(chunk: Buffer, isLast: boolean, number: number): Buffer {
    if (chunk.length < tagBytes) throw forged(name)
    const end = chunk.length - tagBytes
    const decipher = createDecipheriv('aes-256-gcm', key, nonce(number), { authTagLength: tagBytes })
      .setAAD(context(header, number, isLast))
      .setAuthTag(chunk.subarray(end))
    try {
      return Buffer.concat([decipher.update(chunk.subarray(0, end)), decipher.final()])
    } catch (error) {
      throw forged(name, error)
    }
  }
  yield* through(decrypted(), createZstdDecompress())
}

const forged = (name: string, cause?: unknown) =>
  new OperationRefused(
    'BACKUP_FORGED',
    `${name} was changed or cut since it was made`,
    'Choose another backup: otpd backup list. Nothing was changed.',
    cause,
  )

const saltIn = (header: Buffer) =>
  header.subarray(magic.length + checkBytes, magic.length + checkBytes + saltBytes)

function nonce(number: number): Buffer {
  const bytes = Buffer.alloc(12)
  bytes.writeBigUInt64BE(BigInt(number), 4)
  return bytes
}

function context(header: Buffer, number: number, isLast: boolean): Buffer {
  const place = Buffer.alloc(9, isLast ? 1 : 0)
  place.writeBigUInt64BE(BigInt(number))
  return Buffer.concat([header, place])
}

/** Cuts bytes into chunks of one size. Only the last one may be shorter; there is always one. */
async function* chunksOf(
  source: Bytes,
  size: number,
): AsyncGenerator<{ chunk: Buffer; isLast: boolean }, void> {
  let waiting: Uint8Array[] = []
  let bytes = 0
  for await (const piece of source) {
    waiting.push(piece)
    bytes += piece.length
    // More than one chunk: whether a chunk is the last one is known once a byte follows it.
    if (bytes <= size) continue
    let rest = Buffer.concat(waiting)
    for (; rest.length > size; rest = rest.subarray(size))
      yield { chunk: rest.subarray(0, size), isLast: false }
    waiting = [rest]
    bytes = rest.length
  }
  yield { chunk: Buffer.concat(waiting), isLast: true }
}

/** Sends bytes through a transformation, no faster than they are read. Errors of the source pass unchanged. */
async function* through(source: Bytes, transform: ReturnType<typeof createZstdCompress>): Bytes {
  const output = new PassThrough()
  const flowing = pipeline(source, transform, output)
  // The reader below fails first, with the same error.
  flowing.catch(() => {})
  for await (const piece of output) yield piece
  await flowing
}
