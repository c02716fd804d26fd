import { masterKeyBytes } from '../domain/model/keys.ts'
import type { Parsed } from './values.ts'

/** Nothing here ever repeats what it read: a message may end in a log. */

/** 32 bytes as 64 hexadecimal digits or as base64, also in its URL alphabet and without padding. */
export function parseMasterKey(text: string): Parsed<Uint8Array> {
  const bytes = /^[0-9a-f]{64}$/i.test(text)
    ? Buffer.from(text, 'hex')
    : /^[a-z0-9+/_-]{43}=?$/i.test(text)
      ? Buffer.from(text, 'base64')
      : undefined
  return bytes ? checkMasterKey(bytes) : { fault: 'This is not a master key.', remedy: keyRemedy }
}

/** As in the variable, or the 32 bytes themselves, as in the `master.key` of a data directory. */
export function decodeMasterKeyFile(bytes: Uint8Array): Parsed<Uint8Array> {
  const text = decodeText(bytes)?.trim()
  // 32 letters are a password that somebody typed, not 32 random bytes.
  if (bytes.length === masterKeyBytes && !/^[\x20-\x7e]*$/.test(text ?? '\n')) return checkMasterKey(bytes)
  return parseMasterKey(text ?? '')
}

/** The first line of a password file; the line break that an editor leaves is not part of the password. */
export function decodePasswordFile(bytes: Uint8Array): Parsed<string> {
  const password = decodeText(bytes)?.replace(/\r?\n$/, '')
  if (password === undefined) return { fault: 'The password file is not UTF-8 text.', remedy: passwordRemedy }
  if (password === '') return { fault: 'The password file is empty.', remedy: passwordRemedy }
  if (/\p{Cc}/u.test(password)) {
    return { fault: 'The password file holds more than one line.', remedy: passwordRemedy }
  }
  return { value: password }
}

const keyRemedy = 'Give 32 random bytes in hexadecimal or base64, as `openssl rand -base64 32` makes them.'
const passwordRemedy = 'Put the password on a line of its own, and nothing else.'

function checkMasterKey(bytes: Uint8Array): Parsed<Uint8Array> {
  if (new Set(bytes).size > 1) return { value: new Uint8Array(bytes) }
  return { fault: 'Every byte of the master key is the same.', remedy: keyRemedy }
}

export function decodeText(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}
