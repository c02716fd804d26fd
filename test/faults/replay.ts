import { readFileSync } from 'node:fs'
import { basename } from 'node:path'

/** A call that the shim has logged: a write, sync, truncation or removal of a file, or an answer to a caller. */
export type Operation = {
  type: 'W' | 'S' | 'T' | 'U' | 'A'
  /** Its name; empty for an answer. */
  file: string
  offset: number
  data: Buffer
}

/** What of the unsynced the disk has kept: nothing; some whole writes; some sectors of some. */
export const losses = ['none', 'some', 'torn'] as const
export type Loss = (typeof losses)[number]

const sectorBytes = 512

/** Every call of a log, in order. The last one may be cut short, by a kill. */
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

const isOperationType = (type: string): type is Operation['type'] => 'WSTUA'.includes(type)

type Change = { offset: number; data: Buffer | undefined }

/** A file whose bytes grow in place. */
function createImage() {
  let bytes = Buffer.alloc(1 << 16)
  let length = 0
  return {
    /** @param data undefined: ends the file there */
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
type File = { synced: Image | undefined; unsynced: Change[]; removed: Image | undefined }

/**
 * What a disk holds while the calls go by: the synced part of each file, and what has been asked for since. A removal
 * stands once its directory is synced. The index of the write-ahead log is left out; SQLite makes it anew.
 *
 * @param directory the name of the folder that the files lie in
 */
export function createDisk(directory: string) {
  const files = new Map<string, File>()

  function getFile(name: string): File {
    const existing = files.get(name)
    if (existing) return existing
    const file: File = { synced: undefined, unsynced: [], removed: undefined }
    files.set(name, file)
    return file
  }

  function sync(file: File) {
    file.synced ??= createImage()
    for (const change of file.unsynced.splice(0)) file.synced.apply(change)
    file.removed = undefined
  }

  return {
    apply({ type, file: name, offset, data }: Operation) {
      if (type === 'A' || name.endsWith('-shm')) return
      if (type === 'S' && name === directory) {
        for (const file of files.values()) file.removed = undefined
        return
      }
      const file = getFile(name)
      if (type === 'W') file.unsynced.push({ offset, data })
      else if (type === 'T') file.unsynced.push({ offset, data: undefined })
      else if (type === 'S') sync(file)
      else files.set(name, { synced: undefined, unsynced: [], removed: file.synced ?? file.removed })
    },

    /** The files as a power cut leaves them now. */
    cut(loss: Loss, random: () => number): Map<string, Buffer> {
      const survivors = new Map<string, Buffer>()
      const survives = () => loss !== 'none' && random() < 0.5
      for (const [name, { synced, unsynced, removed }] of files) {
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

/** Half of the sectors of a write. */
function tear({ offset, data }: Change, random: () => number): Change[] {
  if (data === undefined) return [{ offset, data }]
  const sectors: Change[] = []
  for (let position = 0; position < data.length; position += sectorBytes) {
    if (random() < 0.5)
      sectors.push({ offset: offset + position, data: data.subarray(position, position + sectorBytes) })
  }
  return sectors
}
