import { createHash } from 'node:crypto'

const machO64 = 0xfeedfacf
const codeSignatureCommand = 0x1d
const codeDirectoryMagic = 0xfade0c02

/**
 * Checks that the code signature of a macOS executable covers the file as it is: the digest of every page must be right.
 * Apple silicon starts nothing else.
 *
 * @returns the number of pages
 * @throws Error if the file has no signature, or one of another file
 * @see https://github.com/apple-oss-distributions/xnu/blob/main/osfmk/kern/cs_blobs.h
 */
export function checkMachSignature(file: Buffer): number {
  if (file.readUInt32LE(0) !== machO64) throw new Error('This is no 64-bit executable for macOS.')
  const signature = findSignature(file)
  if (signature === null) throw new Error('The executable has no code signature.')
  const blobs = file.readUInt32BE(signature + 8)
  for (let index = 0; index < blobs; index++) {
    const blob = signature + file.readUInt32BE(signature + 16 + 8 * index)
    if (file.readUInt32BE(blob) === codeDirectoryMagic) return checkPages(file, blob)
  }
  throw new Error('The code signature has no directory of pages.')
}

function findSignature(file: Buffer): number | null {
  const commands = file.readUInt32LE(16)
  for (let index = 0, at = 32; index < commands; index++, at += file.readUInt32LE(at + 4)) {
    if (file.readUInt32LE(at) === codeSignatureCommand) return file.readUInt32LE(at + 8)
  }
  return null
}

function checkPages(file: Buffer, directory: number): number {
  const hashes = directory + file.readUInt32BE(directory + 16)
  const pages = file.readUInt32BE(directory + 28)
  const end = file.readUInt32BE(directory + 32)
  const digestBytes = file.readUInt8(directory + 36)
  const pageBytes = 2 ** file.readUInt8(directory + 39)
  let wrong = 0
  for (let page = 0; page < pages; page++) {
    const content = file.subarray(page * pageBytes, Math.min((page + 1) * pageBytes, end))
    const expected = file.subarray(hashes + page * digestBytes, hashes + (page + 1) * digestBytes)
    if (!createHash('sha256').update(content).digest().equals(expected)) wrong++
  }
  if (wrong > 0) throw new Error(`The code signature is of another file: ${wrong} of ${pages} pages differ.`)
  return pages
}
