import { gzipSync } from 'node:zlib'

export type ArchiveFile = { name: string; content: Uint8Array; isExecutable?: boolean }

const blockBytes = 512

/**
 * Packs files into a `.tar.gz` (ustar). The same files and the same time give the same bytes: owner and group are root, and
 * the head of the gzip stream names neither a time nor a machine.
 *
 * @param seconds modification time of every file, in seconds since 1970
 */
export function packArchive(files: readonly ArchiveFile[], seconds: number): Uint8Array {
  const parts = files.flatMap(({ name, content, isExecutable = false }) => [
    tarHeader(name, content.length, isExecutable ? 0o755 : 0o644, seconds),
    content,
    new Uint8Array(-content.length & (blockBytes - 1)),
  ])
  // Two empty blocks end an archive.
  const packed = gzipSync(Buffer.concat([...parts, new Uint8Array(2 * blockBytes)]), { level: 9 })
  // The operating system that packed it: unknown.
  packed[9] = 255
  return packed
}

function tarHeader(name: string, size: number, mode: number, seconds: number): Uint8Array {
  if (Buffer.byteLength(name) > 100) throw new Error(`The name ${name} is too long for an archive.`)
  const header = Buffer.alloc(blockBytes)
  const writeOctal = (value: number, offset: number, digits: number) =>
    header.write(`${value.toString(8).padStart(digits, '0')}\0`, offset)
  header.write(name, 0)
  writeOctal(mode, 100, 7)
  writeOctal(0, 108, 7)
  writeOctal(0, 116, 7)
  writeOctal(size, 124, 11)
  writeOctal(seconds, 136, 11)
  // The checksum counts its own field as spaces; 0 is the type of a file.
  header.write('        0', 148)
  header.write('ustar\x0000root', 257)
  header.write('root', 297)
  const checksum = header.reduce((sum, byte) => sum + byte, 0)
  header.write(`${checksum.toString(8).padStart(6, '0')}\0 `, 148)
  return header
}
