import { restrictAccess } from '../shared/restrict-access.ts'
import { tryReadFile } from './paths.ts'
import type { ConfigInput, ResolvedSetting, Reader } from './reader.ts'
import type { Parsed } from './values.ts'

/** Reports a file that other users can read, except where the system mounts secrets. */
export function reportExposed(
  reader: Reader,
  input: ConfigInput,
  file: ResolvedSetting<string | null>,
): void {
  if (file.value === null || !isExposed(input, file.value)) return
  reader.report(
    file.source ?? 'default',
    `Other users can read ${file.value}.`,
    restrictAccess([file.value], { keepsGroup: true }),
  )
}

/** Group access is not refused: Kubernetes gives a secret to a user other than root by its group. */
function isExposed({ env, readMode }: ConfigInput, path: string): boolean {
  const exempt = ['/run/secrets', env['CREDENTIALS_DIRECTORY'] ?? '/run/secrets']
  if (exempt.some((directory) => path.startsWith(`${directory}/`))) return false
  try {
    return (readMode(path) & 0o007) !== 0
  } catch {
    // Reading it says why it cannot be read.
    return false
  }
}

/** Without the path: it may be the secret itself, such as a URL with a password. */
const missingFile = {
  fault: 'There is no file of that name.',
  remedy: 'Correct the path. If it is the secret itself, put it into a file of its own, and replace it.',
}

/** Reads a secret from the file that a setting names; null, with the fault reported, if it cannot be read. */
export function readSecretFile<T>(
  reader: Reader,
  input: ConfigInput,
  file: ResolvedSetting<string | null>,
  decode: (bytes: Uint8Array) => Parsed<T>,
): T | null {
  if (file.value === null) return null
  const content = tryReadFile(input, file.value)
  const decoded =
    'bytes' in content
      ? decode(content.bytes)
      : 'missing' in content
        ? missingFile
        : { fault: content.fault, remedy: 'Correct the path or the permissions of the file.' }
  if ('value' in decoded) return decoded.value
  reader.report(file.source ?? 'default', decoded.fault, decoded.remedy)
  return null
}
