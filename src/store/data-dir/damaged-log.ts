import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
} from 'node:fs'
import { join } from 'node:path'
import { fsyncPath } from './backup.ts'
import { dataFiles, fileTime } from './data-dir.ts'

/** A write-ahead log that is damaged before its end: SQLite applies what is before the damage, and drops the rest. */
export type DamagedLog = {
  path: string
  /** Frames, which are versions of pages, before the damage. */
  framesRead: number
  /** Frames of the same log after the damaged one. */
  framesLost: number
  /** When the log was last written to, in milliseconds. */
  writtenAt: number
}

/**
 * Keeps a copy of a damaged write-ahead log, because SQLite deletes the log after it has applied what it could read. Call
 * it before the database is opened for writing, while no server can run on the directory.
 */
export function keepDamagedLog(dataDir: string): void {
  const wal = `${dataFiles(dataDir).database}-wal`
  const damage = findDamage(wal)
  if (!damage) return
  const kept = `${wal}.damaged-${fileTime(damage.writtenAt)}`
  if (existsSync(kept)) return
  const draft = `${kept}.part`
  rmSync(draft, { force: true })
  copyFileSync(wal, draft)
  chmodSync(draft, 0o600)
  utimesSync(draft, damage.writtenAt / 1000, damage.writtenAt / 1000)
  fsyncPath(draft)
  renameSync(draft, kept)
  fsyncPath(dataDir)
}

/** Returns the damage of a log that the next start applies. Ask only while no server writes to it. */
export const findLogDamage = (dataDir: string): DamagedLog | null =>
  findDamage(`${dataFiles(dataDir).database}-wal`)

/** Lists the damaged logs that were kept. They stay until a person deletes them. */
export function listDamagedLogs(dataDir: string): DamagedLog[] {
  const names = existsSync(dataDir) ? readdirSync(dataDir) : []
  return names
    .filter((name) => /^otpd\.db-wal\.damaged-[\dTZ-]+$/.test(name))
    .toSorted()
    .flatMap((name) => findDamage(join(dataDir, name)) ?? [])
}

const headerBytes = 32
const frameHeaderBytes = 24

/**
 * Reads a write-ahead log as SQLite does (https://sqlite.org/fileformat2.html#walformat): each frame has the salts of the
 * log and a checksum of all frames up to it. Frames with other salts are left over from before the last checkpoint.
 *
 * @returns null without damage: a last frame that a crash cut short is none
 */
function findDamage(path: string): DamagedLog | null {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (!stats || stats.size <= headerBytes) return null
  const file = openSync(path, 'r')
  try {
    const header = Buffer.alloc(headerBytes)
    readSync(file, header, 0, headerBytes, 0)
    const pageBytes = header.readUInt32BE(8)
    const isLittleEndian = header.readUInt32BE(0) === 0x377f0682
    if (!isLittleEndian && header.readUInt32BE(0) !== 0x377f0683) return null
    if (!/^(512|1024|2048|4096|8192|16384|32768|65536)$/.test(String(pageBytes))) return null
    const salts = header.subarray(16, 24)
    let sums = addSums([0, 0], header.subarray(0, 24), isLittleEndian)
    let isWhole = sums[0] === header.readUInt32BE(24) && sums[1] === header.readUInt32BE(28)
    const frame = Buffer.alloc(frameHeaderBytes + pageBytes)
    let framesRead = 0
    let framesLost = 0
    for (
      let at = headerBytes;
      readSync(file, frame, 0, frame.length, at) === frame.length;
      at += frame.length
    ) {
      const isOfLog = frame.subarray(8, 16).equals(salts)
      if (isWhole) {
        sums = addSums(sums, frame.subarray(0, 8), isLittleEndian)
        sums = addSums(sums, frame.subarray(frameHeaderBytes), isLittleEndian)
        isWhole = isOfLog && sums[0] === frame.readUInt32BE(16) && sums[1] === frame.readUInt32BE(20)
        if (isWhole) framesRead++
      } else if (isOfLog) framesLost++
    }
    if (framesLost === 0) return null
    return { path, framesRead, framesLost, writtenAt: Math.floor(stats.mtimeMs) }
  } finally {
    closeSync(file)
  }
}

type Sums = readonly [number, number]

/** Adds words to the two running sums of a log's checksum. */
function addSums([first, second]: Sums, bytes: Buffer, isLittleEndian: boolean): Sums {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  let [a, b] = [first, second]
  for (let at = 0; at < bytes.length; at += 8) {
    a = (a + view.getUint32(at, isLittleEndian) + b) >>> 0
    b = (b + view.getUint32(at + 4, isLittleEndian) + a) >>> 0
  }
  return [a, b]
}
