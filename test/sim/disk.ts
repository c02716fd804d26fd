import {
  closeSync,
  cpSync,
  existsSync,
  fstatSync,
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
/** The server makes no checkpoint of so short a log. */
const shortLogBytes = 400_000

export type Disk = ReturnType<typeof openDisk>

/** Durable part of the write-ahead log: its header and so many bytes. */
type DurableLog = { salt: string; length: number; file: number; fileBytes: number }

/**
 * Tells what a power cut leaves of the files in a data directory, which SQLite writes on a memory file system: all that was
 * flushed, and of the later writes any part, also parts of pages.
 *
 * The flushes of the server pass through `beginFlush`. Those of SQLite itself do not, and are told by what it does after
 * them. It flushes the database file before it empties or deletes the log (at the end of a checkpoint that truncates, and
 * when the last connection closes), and the header of a log before the first frame that overwrites an older log
 * (https://sqlite.org/src/info/ff5be73dee). A checkpoint of the server leaves the log as long as it was.
 */
export function openDisk(folder: string) {
  const database = join(folder, 'otpd.db')
  const wal = `${database}-wal`
  /** Paths of the files that the server has opened, and keeps open. */
  const paths = new Map<number, string>()
  const read = (path: string) => (existsSync(path) ? readFileSync(path) : Buffer.alloc(0))

  let flushes = 0
  // The process finds a disk on which everything is durable.
  let durableDatabase = read(database)
  let durableLog: DurableLog = readLog({ salt: '', length: 0, file: 0, fileBytes: 0 })

  /** Reads the salt of the log, and its length up to the last frame that belongs to it: older frames may follow. */
  function readLog(known: DurableLog): DurableLog {
    if (!existsSync(wal)) return { salt: '', length: 0, file: 0, fileBytes: 0 }
    const file = openSync(wal, 'r')
    try {
      const { ino, size } = fstatSync(file)
      const head = Buffer.alloc(walHeadBytes)
      if (readSync(file, head, 0, walHeadBytes, 0) < walHeadBytes)
        return { salt: '', length: 0, file: ino, fileBytes: size }
      const salt = head.subarray(16, 24).toString('hex')
      const frameBytes = frameHeadBytes + head.readUInt32BE(8)
      let length = known.salt === salt ? Math.max(walHeadBytes, known.length) : walHeadBytes
      const frame = Buffer.alloc(frameHeadBytes)
      while (
        readSync(file, frame, 0, frameHeadBytes, length) === frameHeadBytes &&
        frame.subarray(8, 16).toString('hex') === salt
      )
        length += frameBytes
      return { salt, length, file: ino, fileBytes: size }
    } finally {
      closeSync(file)
    }
  }

  /** Notes what SQLite itself has flushed. @returns the log as it is written now */
  function noticeOwnFlushes(): DurableLog {
    const log = readLog(durableLog)
    const isShorter = log.file !== durableLog.file || log.fileBytes < durableLog.fileBytes
    if (log.salt !== durableLog.salt) {
      // One that was emptied may already be longer than it was.
      if (isShorter || durableLog.fileBytes < shortLogBytes) durableDatabase = read(database)
      durableLog = { ...log, length: log.salt === '' ? 0 : walHeadBytes }
    }
    durableLog = { ...durableLog, file: log.file, fileBytes: log.fileBytes }
    return log
  }

  return {
    folder,
    flushes: () => flushes,

    /** Notes what a flush brings to disk: what was written when it began. @returns to be called when it has ended */
    beginFlush(file: number): () => void {
      const path = paths.get(file) ?? readlinkSync(`/proc/self/fd/${file}`)
      paths.set(file, path)
      flushes++
      const written = noticeOwnFlushes()
      if (path === wal)
        return () => {
          noticeOwnFlushes()
          // A longer flush may end after one that began later.
          if (written.salt === durableLog.salt)
            durableLog.length = Math.max(durableLog.length, written.length)
        }
      if (path !== database) return () => {}
      const copy = read(database)
      return () => {
        noticeOwnFlushes()
        durableDatabase = copy
      }
    },

    /** Writes the files that the next process finds into another folder. */
    copyTo(target: string, cause: 'kill' | 'power-cut', chance: Chance): void {
      noticeOwnFlushes()
      rmSync(target, { recursive: true, force: true })
      mkdirSync(target, { recursive: true, mode: 0o700 })
      cpSync(folder, target, {
        recursive: true,
        filter: (path) => !/-shm$|\.lock$/.test(path),
      })
      if (cause === 'kill') return
      const log = read(wal)
      writeFileSync(join(target, 'otpd.db'), tear(durableDatabase, read(database), chance))
      writeFileSync(join(target, 'otpd.db-wal'), tear(log.subarray(0, durableLog.length), log, chance))
    },
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
