import { createHash, randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { seal, unseal } from '../domain/model/sealed.ts'
import type { OnStep } from '../shared/progress.ts'
import {
  copyForBackup,
  draftFile,
  toOperationError,
  type Backup,
  type BackupRows,
} from '../store/data-dir/backup.ts'
import { OperationRefused } from '../store/data-dir/data-dir.ts'
import type { Bucket, BucketObject } from './bucket.ts'
import { backupNoteKey } from './keys.ts'
import { noteName, sealedName, timeInSealedName } from './names.ts'
import type { StoredBackup } from './choices.ts'
import { headerBytes, openSealedBackup, readSealedHeader, sealBackup } from './sealed-format.ts'

/** Contents of a sealed backup: SHA-256 of the database file and its rows. Kept sealed next to it once it verified. */
type Note = { bytes: number; sha256: string; rows: BackupRows }

const readBytes = 1 << 20

/**
 * Seals a copy of the database and uploads it as it is encrypted, reads it back, and notes that it verified. The copy on
 * this machine has no name while it is sent, so nothing is left of it however this ends.
 *
 * @param needs.folder for the copy, on a disk with space for the whole database
 * @returns the backup with its address and the size of the object
 * @throws OperationRefused as `copyForBackup` and the bucket do
 */
export async function sendSealedBackup(
  bucket: Bucket,
  needs: { database: string; folder: string; masterKey: Uint8Array; now: number; onStep: OnStep },
): Promise<Backup> {
  const { database, folder, masterKey, now, onStep } = needs
  // Before the work: a bucket that is missing, or refuses, does so here with its own word.
  await bucket.list()
  const name = sealedName(now)
  const draft = draftFile(join(folder, name.replace(/\.sealed$/, '')))
  let file: number | undefined
  try {
    const {
      sha256,
      rows,
      bytes: total,
    } = await copyForBackup(database, draft, onStep, { isTemporary: true }).catch((error: unknown) => {
      throw toOperationError(error, database, folder)
    })
    file = openSync(draft, 'r')
    rmSync(draft)
    const sent = readAll(file, (done) => onStep({ step: 'sending', done, total, unit: 'bytes' }))
    const bytes = await bucket.write(name, sealBackup(sent, masterKey, now), total)
    await checkSealedBackup(bucket, { name, bytes }, [masterKey], { sha256, onStep })
    await writeNote(bucket, name, masterKey, { bytes, sha256, rows })
    return { file: `${bucket.label}/${name}`, bytes, sha256, rows }
  } finally {
    if (file !== undefined) closeSync(file)
    rmSync(draft, { force: true })
  }
}

/**
 * Reads a sealed backup to its end.
 *
 * @param options.sha256 of the database that it must hold
 * @returns the SHA-256 of the database in it
 * @throws OperationRefused BACKUP_INVALID, BACKUP_OF_ANOTHER_KEY, BACKUP_FORGED
 */
async function checkSealedBackup(
  bucket: Bucket,
  object: BucketObject,
  masterKeys: readonly Uint8Array[],
  { sha256, onStep }: { sha256: string; onStep: OnStep },
): Promise<void> {
  const hash = createHash('sha256')
  for await (const piece of readSealed(bucket, object, masterKeys, 'reading it back', onStep))
    hash.update(piece)
  if (hash.digest('hex') !== sha256)
    throw new OperationRefused(
      'BACKUP_FORGED',
      `${bucket.label}/${object.name} is not what was sent`,
      'The service, or something on the way to it, changes what it stores. Use another one.',
    )
}

/**
 * Downloads and opens a sealed backup into a new file, private to its owner and synced.
 *
 * @throws OperationRefused as above, FILE_NOT_WRITABLE; the file is then incomplete, and not to be used
 */
export async function fetchSealedBackup(
  bucket: Bucket,
  object: BucketObject,
  masterKeys: readonly Uint8Array[],
  { file, onStep }: { file: string; onStep: OnStep },
): Promise<void> {
  await writeDatabase(file, readSealed(bucket, object, masterKeys, 'downloading', onStep))
}

/** Opens a sealed backup that was copied to this machine by other means. @throws as `fetchSealedBackup` */
export async function openSealedFile(
  path: string,
  masterKeys: readonly Uint8Array[],
  { file, onStep }: { file: string; onStep: OnStep },
): Promise<void> {
  const source = openSync(path, 'r')
  try {
    const start = Buffer.alloc(headerBytes)
    const header = readSealedHeader(start.subarray(0, readSync(source, start)), masterKeys, path)
    const body = readAll(source, (done) => onStep({ step: 'decrypting', done, unit: 'bytes' }))
    await writeDatabase(file, openSealedBackup(body, header, path))
  } finally {
    closeSync(source)
  }
}

async function writeDatabase(path: string, content: AsyncIterable<Uint8Array>): Promise<void> {
  let file: number | undefined
  try {
    file = openSync(path, 'wx', 0o600)
    for await (const piece of content)
      for (let offset = 0; offset < piece.length;) offset += writeSync(file, piece, offset)
    fsyncSync(file)
  } catch (error) {
    throw toOperationError(error, path, path)
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

/** Reads the database in a sealed backup. Its time must be that in its name, so that no older one can take its place. */
async function* readSealed(
  bucket: Bucket,
  object: BucketObject,
  masterKeys: readonly Uint8Array[],
  step: string,
  onStep: OnStep,
): AsyncGenerator<Uint8Array> {
  const { name, bytes: total } = object
  const label = `${bucket.label}/${name}`
  const header = readSealedHeader(await readStart(bucket, object), masterKeys, label)
  if (header.at !== timeInSealedName(name))
    throw new OperationRefused(
      'BACKUP_FORGED',
      `${label} has the name of another backup`,
      'Choose another backup: otpd backup list. Nothing was changed.',
    )
  async function* body() {
    let done = headerBytes
    for await (const piece of bucket.read(object, headerBytes)) {
      onStep({ step, done: (done += piece.length), total, unit: 'bytes' })
      yield piece
    }
  }
  yield* openSealedBackup(body(), header, label)
}

const readStart = async (bucket: Bucket, { name, bytes }: BucketObject) =>
  bytes < headerBytes ? new Uint8Array(0) : bucket.readRange(name, 0, headerBytes)

/** Lists the sealed backups of a bucket. @param masterKeys the keys at hand */
export async function listBucket(bucket: Bucket, masterKeys: readonly Uint8Array[]): Promise<StoredBackup[]> {
  const objects = await bucket.list()
  const names = new Set(objects.map(({ name }) => name))
  const backups = objects.flatMap((object) => {
    const at = timeInSealedName(object.name)
    return at === undefined ? [] : [{ ...object, at }]
  })
  return Promise.all(
    backups.map(async (backup): Promise<StoredBackup> => {
      const text = names.has(noteName(backup.name)) ? await bucket.readText(noteName(backup.name)) : undefined
      const note = text === undefined ? undefined : openNote(backup.name, text, masterKeys)
      if (note?.bytes === backup.bytes) return { ...backup, state: 'verified', rows: note.rows }
      return { ...backup, state: (await isOfKey(bucket, backup, masterKeys)) ? 'unverified' : 'another key' }
    }),
  )
}

async function isOfKey(bucket: Bucket, object: BucketObject, masterKeys: readonly Uint8Array[]) {
  try {
    readSealedHeader(await readStart(bucket, object), masterKeys, object.name)
    return true
  } catch (error) {
    const reason = error instanceof OperationRefused ? error.reason : undefined
    if (reason === 'BACKUP_INVALID' || reason === 'BACKUP_OF_ANOTHER_KEY' || reason === 'FILE_MISSING')
      return false
    throw error
  }
}

/** Deletes a backup. Its note goes first: without it a backup no longer counts as verified. */
export async function removeFromBucket(bucket: Bucket, { name }: Pick<StoredBackup, 'name'>): Promise<void> {
  await forgetNote(bucket, name)
  await bucket.remove(name)
}

/** Deletes the note that a backup verified. */
export const forgetNote = (bucket: Bucket, name: string) => bucket.remove(noteName(name))

/** Notes next to a backup that it verified, sealed and bound to its name. */
export async function writeNote(
  bucket: Bucket,
  name: string,
  masterKey: Uint8Array,
  note: Note,
): Promise<void> {
  const random = (bytes: Uint8Array) => bytes.set(randomBytes(bytes.length))
  await bucket.writeText(noteName(name), seal(backupNoteKey(masterKey), name, JSON.stringify(note), random))
}

function openNote(name: string, text: string, masterKeys: readonly Uint8Array[]): Note | undefined {
  for (const masterKey of masterKeys) {
    try {
      // Written by `writeNote`: only the master key makes one that opens.
      return JSON.parse(unseal(backupNoteKey(masterKey), name, text.trim())) as Note
    } catch {
      // Another key made it, or it was changed.
    }
  }
  return undefined
}

async function* readAll(file: number, onRead: (done: number) => void): AsyncGenerator<Uint8Array> {
  for (let done = 0; ;) {
    const chunk = Buffer.alloc(readBytes)
    const bytes = readSync(file, chunk)
    if (bytes === 0) return
    onRead((done += bytes))
    yield chunk.subarray(0, bytes)
  }
}
