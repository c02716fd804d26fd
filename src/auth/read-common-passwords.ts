import { gzipSync } from 'node:zlib'
import { dictionary } from '@zxcvbn-ts/language-common'

const lengthMin = 4

/**
 * Reads the list of common passwords of zxcvbn-ts (MIT license), without digits and signs at the end of an entry, since
 * `findPasswordFault` removes them too. Runs as a macro, when Bun transpiles or bundles the caller, so that the binary
 * has the list, compressed to 110 kB.
 *
 * @returns one entry per line, compressed with gzip, in base64
 */
export function readCommonPasswords(): string {
  const entries = dictionary['passwords-common']
  if (!Array.isArray(entries)) throw new Error('the package has no list of common passwords')
  const stems = entries.map((entry) => String(entry).replace(/[^\p{L}]+$/u, ''))
  const lines = [...new Set(stems)].filter((stem) => stem.length >= lengthMin).toSorted()
  return gzipSync(lines.join('\n'), { level: 9 }).toString('base64')
}
