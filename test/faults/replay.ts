import { readFileSync } from 'node:fs'
import { basename } from 'node:path'

/**
 * Call that the shim has logged: a write, the begin or end of a sync, a truncation, deletion or renaming of a file, or a
 * response.
 */
export type Operation = {
  type: 'W' | 'B' | 'S' | 'T' | 'U' | 'R' | 'A'
  /** File name. Empty for a response. */
  file: string
  offset: number
  /** The bytes of a write; the new path of a renaming. */
  data: Buffer
}

/** Unsynced writes that a disk keeps: none, some whole writes, or some sectors of some writes. */
export const losses = ['none', 'some', 'torn'] as const
export type Loss = (typeof losses)[number]

const sectorBytes = 512

/** Reads every call of a log, in order. A kill may have truncated the last one. */
export function readOperations(log: string): Operation[] {
  const bytes = readFileSync(log)
  const operations: Operation[] = []
  let position = 0
  while (position + 21 <= bytes.length) {
    const type = String.fromCharCode(bytes[position] ?? 0)
    const dataAt = position + 21 + bytes.readUInt32LE(position + 1)
    const offset = Number(bytes.readBigUInt64LE(position + 5))
    const length = Number(bytes.readBigUInt64LE(position + 13))
    if (!isOperationType(type)) throw new Error(`${log} is no log: ${type} at ${position}`)
    if (dataAt + length > bytes.length) break
    const file = basename(bytes.toString('utf8', position + 21, dataAt))
    operations.push({ type, file, offset, data: bytes.subarray(dataAt, dataAt + length) })
    position = dataAt + length
  }
  return operations
}

const isOperationType = (type: string): type is Operation['type'] => 'WBSTURA'.includes(type)

type Change = { offset: number; data: Buffer | undefined }

/** Creates a file in memory that grows as it is written. */
function createImage() {
  let bytes = Buffer.alloc(1 << 16)
  let length = 0
  return {
    /** Applies a change. @param data undefined to truncate the file at the offset */
    apply({ offset, data }: Change) {
      const end = offset + (data?.length ?? 0)
      if (end > bytes.length)
        bytes = Buffer.concat([bytes, Buffer.alloc(Math.max(end, bytes.length * 2) - bytes.length)])
      if (data === undefined) {
        if (offset < length) bytes.fill(0, offset, length)
        length = offset
      } else {
        data.copy(bytes, offset)
        length = Math.max(length, end)
      }
    },
    copy: () => Buffer.from(bytes.subarray(0, length)),
  }
}

type Image = ReturnType<typeof createImage>
type File = {
  synced: Image | undefined
  unsynced: Change[]
  /** How many of those each sync that is under way brings to disk. */
  syncing: number[]
  removed: Image | undefined
  /** Name that it may still have. */
  oldName: string | undefined
}

const newFile = (): File => ({
  synced: undefined,
  unsynced: [],
  syncing: [],
  removed: undefined,
  oldName: undefined,
})

/**
 * Simulates a disk while calls are replayed: the synced content of each file, and the changes since. A deletion or a new
 * name is durable once its directory is synced. The index of the write-ahead log is omitted, because SQLite rebuilds it.
 *
 * @param directory name of the folder that contains the files
 */
export function createDisk(directory: string) {
  const files = new Map<string, File>()

  function getFile(name: string): File {
    const existing = files.get(name)
    if (existing) return existing
    const file = newFile()
    files.set(name, file)
    return file
  }

  /** Ends the oldest sync: what was written while it was under way may be lost. */
  function endSync(file: File) {
    const count = file.syncing.shift() ?? 0
    file.synced ??= createImage()
    for (const change of file.unsynced.splice(0, count)) file.synced.apply(change)
    file.syncing = file.syncing.map((other) => Math.max(0, other - count))
    file.removed = undefined
  }

  return {
    apply({ type, file: name, offset, data }: Operation) {
      if (type === 'A' || name.endsWith('-shm')) return
      if (type === 'B' && name === directory) return
      if (type === 'S' && name === directory) {
        for (const file of files.values()) {
          file.removed = undefined
          file.oldName = undefined
        }
        return
      }
      const file = getFile(name)
      if (type === 'R') {
        files.delete(name)
        files.set(basename(data.toString()), { ...file, oldName: name })
      } else if (type === 'W') file.unsynced.push({ offset, data })
      else if (type === 'T') file.unsynced.push({ offset, data: undefined })
      else if (type === 'B') file.syncing.push(file.unsynced.length)
      else if (type === 'S') endSync(file)
      else files.set(name, { ...newFile(), removed: file.synced ?? file.removed })
    },

    /** Returns the files as a power cut would leave them now. */
    cut(loss: Loss, random: () => number): Map<string, Buffer> {
      const survivors = new Map<string, Buffer>()
      const survives = () => loss !== 'none' && random() < 0.5
      for (const [newName, { synced, unsynced, removed, oldName }] of files) {
        const name = oldName !== undefined && !survives() ? oldName : newName
        const keptChanges = unsynced
          .filter(survives)
          .flatMap((change) => (loss === 'torn' ? tear(change, random) : [change]))
        if (!synced && keptChanges.length === 0) {
          if (removed && !survives()) survivors.set(name, removed.copy())
          continue
        }
        const image = createImage()
        if (synced) image.apply({ offset: 0, data: synced.copy() })
        for (const change of keptChanges) image.apply(change)
        survivors.set(name, image.copy())
      }
      return survivors
    },
  }
}

/** Keeps about half of the sectors of a write. */
function tear({ offset, data }: Change, random: () => number): Change[] {
  if (data === undefined) return [{ offset, data }]
  const sectors: Change[] = []
  for (let position = 0; position < data.length; position += sectorBytes) {
    if (random() < 0.5)
      sectors.push({ offset: offset + position, data: data.subarray(position, position + sectorBytes) })
  }
  return sectors
}
