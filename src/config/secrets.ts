import { masterKeyBytes } from '../domain/model/keys.ts'
import { decodeMasterKey } from '../domain/model/master-key-text.ts'
import type { Parsed } from './values.ts'

/** Messages in this file never quote what was read, since a message may end up in a log. */

/** Parses 32 bytes as text. */
export function parseMasterKey(text: string): Parsed<Uint8Array> {
  const bytes = decodeMasterKey(text)
  return bytes ? checkMasterKey(bytes) : { fault: 'This is not a valid master key.', remedy: keyRemedy }
}

/** Decodes a key file: text as in the variable, or 32 raw bytes like `master.key` in a data directory. */
export function decodeMasterKeyFile(bytes: Uint8Array): Parsed<Uint8Array> {
  const text = decodeText(bytes)?.trim()
  // 32 printable characters are a typed password, not 32 random bytes.
  if (bytes.length === masterKeyBytes && !/^[\x20-\x7e]*$/.test(text ?? '\n')) return checkMasterKey(bytes)
  return parseMasterKey(text ?? '')
}

/** Decodes a one-line password file; the trailing line break that editors add is not part of the password. */
export function decodePasswordFile(bytes: Uint8Array): Parsed<string> {
  const password = decodeText(bytes)?.replace(/\r?\n$/, '')
  if (password === undefined) return { fault: 'The password file is not UTF-8 text.', remedy: passwordRemedy }
  if (password === '') return { fault: 'The password file is empty.', remedy: passwordRemedy }
  if (/\p{Cc}/u.test(password)) {
    return {
      fault: 'The password file contains a control character or more than one line.',
      remedy: passwordRemedy,
    }
  }
  return { value: password }
}

const keyRemedy = 'Use 32 random bytes in hexadecimal or base64, for example from: openssl rand -base64 32'
const passwordRemedy = 'Write the password on a single line, and nothing else.'

function checkMasterKey(bytes: Uint8Array): Parsed<Uint8Array> {
  if (new Set(bytes).size > 1) return { value: new Uint8Array(bytes) }
  return { fault: 'All bytes of the master key are the same.', remedy: keyRemedy }
}

/** Decodes UTF-8; undefined if the bytes are not valid UTF-8. */
export function decodeText(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}
