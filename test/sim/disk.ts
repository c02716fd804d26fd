import {
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  readlinkSync,
  readSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Chance } from './chance.ts'

const sectorBytes = 512
const walHeadBytes = 32
const frameHeadBytes = 24

export type Disk = ReturnType<typeof openDisk>

/**
 * Tells what a power cut leaves of the files in a data directory, which SQLite writes on a memory file system: all that was
 * flushed, and of the later writes any part, also parts of pages.
 *
 * The write-ahead log only grows until it begins again, so its length at a flush is what is durable of it. It begins again
 * only after a checkpoint, which flushes the database file first: the log is copied then.
 */
export function openDisk(folder: string) {
  const database = join(folder, 'otpd.db')
  const wal = `${database}-wal`
  const read = (path: string) => (existsSync(path) ? readFileSync(path) : Buffer.alloc(0))
  const saltOf = (log: Buffer) => log.subarray(16, 24).toString('hex')

  let durableDatabase = read(database)
  // The process finds a disk on which everything is durable.
  const firstLog = read(wal)
  let durableLog = { salt: saltOf(firstLog), bytes: firstLog, length: firstLog.length }
  /** Whether checkpoints are still SQLite's own, which flush without being noticed. */
  let isStarting = true
  let flushes = 0

  /** Reads the salt of the log, and its length up to the last frame that belongs to it: older frames may follow. */
  function noteLog(): { salt: string; length: number } {
    if (!existsSync(wal)) return { salt: '', length: 0 }
    const file = openSync(wal, 'r')
    try {
      const head = Buffer.alloc(walHeadBytes)
      if (readSync(file, head, 0, walHeadBytes, 0) < walHeadBytes) return { salt: '', length: 0 }
      const salt = saltOf(head)
      const frameBytes = frameHeadBytes + head.readUInt32BE(8)
      let end = durableLog.salt === salt ? Math.max(walHeadBytes, durableLog.length) : walHeadBytes
      const frame = Buffer.alloc(frameHeadBytes)
      while (
        readSync(file, frame, 0, frameHeadBytes, end) === frameHeadBytes &&
        frame.subarray(8, 16).toString('hex') === salt
      )
        end += frameBytes
      return { salt, length: end }
    } finally {
      closeSync(file)
    }
  }

  return {
    folder,
    flushes: () => flushes,

    /** Notes that the server has started: from now on it flushes all that it writes. */
    endStart(): void {
      isStarting = false
    },

    /** Notes what a flush brings to disk: what was written when it began. @returns to be called when it has ended */
    beginFlush(file: number): () => void {
      const path = readlinkSync(`/proc/self/fd/${file}`)
      flushes++
      if (path === wal) {
        const noted = noteLog()
        return () => {
          // A longer flush may end after one that began later.
          if (noted.salt === durableLog.salt) durableLog.length = Math.max(durableLog.length, noted.length)
          else {
            if (isStarting) durableDatabase = read(database)
            durableLog = { ...noted, bytes: Buffer.alloc(0) }
          }
        }
      }
      if (path !== database) return () => {}
      const copy = read(database)
      const log = read(wal)
      return () => {
        durableDatabase = copy
        if (saltOf(log) === durableLog.salt) durableLog.bytes = log.subarray(0, durableLog.length)
      }
    },

    /** Writes the files that the next process finds into another folder. */
    copyTo(target: string, cause: 'kill' | 'power-cut', chance: Chance): void {
      rmSync(target, { recursive: true, force: true })
      mkdirSync(target, { recursive: true, mode: 0o700 })
      cpSync(folder, target, {
        recursive: true,
        filter: (path) => !/-shm$|\.lock$/.test(path),
      })
      if (cause === 'kill') return
      writeFileSync(join(target, 'otpd.db'), tear(durableDatabase, read(database), chance))
      writeFileSync(join(target, 'otpd.db-wal'), tearLog(read(wal), chance))
    },
  }

  function tearLog(log: Buffer, chance: Chance): Buffer {
    const isSame = saltOf(log) === durableLog.salt
    const kept = isSame ? log.subarray(0, durableLog.length) : durableLog.bytes
    return tear(kept, log, chance)
  }
}

/** Applies any part of the sectors that differ. */
function tear(durable: Buffer, written: Buffer, chance: Chance): Buffer {
  const share = chance.choose([0, 0, 0.2, 0.5, 0.9, 1])
  const size = chance.happens(0.5) ? written.length : durable.length
  const result = Buffer.alloc(Math.max(size, durable.length))
  durable.copy(result)
  if (share === 0) return result.subarray(0, durable.length)
  let start = 0
  // Most of the files is the same: large parts are compared first.
  const block = 64 * sectorBytes
  for (; start < result.length; start += block) {
    if (
      start + block <= durable.length &&
      durable.subarray(start, start + block).equals(written.subarray(start, start + block))
    )
      continue
    for (let sector = start; sector < Math.min(start + block, result.length); sector += sectorBytes) {
      const bytes = written.subarray(sector, sector + sectorBytes)
      if (chance.happens(share)) bytes.copy(result, sector)
    }
  }
  return result
}
