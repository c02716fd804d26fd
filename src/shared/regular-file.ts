import { readFileSync, statSync, type Stats } from 'node:fs'

/** Above any configuration, key, certificate or list of certificate authorities. */
const bytesMax = 1024 * 1024

/** Tells whether there is a named pipe, a socket or a device, which may never answer who opens it. */
export function isPipeOrDevice(path: string): boolean {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats !== undefined && isSpecial(stats)
}

const isSpecial = (stats: Stats) => !stats.isFile() && !stats.isDirectory()

/**
 * Reads a regular file. A named pipe or a device is refused before it is opened, because reading it may never end; so is a
 * large file, such as a database named by mistake, which may not fit into memory.
 *
 * @throws the errors of `readFileSync`; an error with the code `ENOTREG` for what is neither a file nor a folder, and
 *   `EFBIG` for more than 1 MiB
 */
export function readRegularFile(path: string): Buffer<ArrayBuffer> {
  const stats = statSync(path)
  if (isSpecial(stats)) throw Object.assign(new Error(`${path} is not a regular file`), { code: 'ENOTREG' })
  if (stats.isFile() && stats.size > bytesMax)
    throw Object.assign(new Error(`${path} is over 1 MiB`), { code: 'EFBIG' })
  return readFileSync(path)
}
