import { readFileSync, statSync } from 'node:fs'

/**
 * Reads a regular file. A named pipe or a device is refused before it is opened: reading it may never end.
 *
 * @throws the errors of `readFileSync`; an error with the code `ENOTREG` for what is neither a file nor a folder
 */
export function readRegularFile(path: string): Buffer<ArrayBuffer> {
  const stats = statSync(path)
  if (!stats.isFile() && !stats.isDirectory())
    throw Object.assign(new Error(`${path} is not a regular file`), { code: 'ENOTREG' })
  return readFileSync(path)
}
