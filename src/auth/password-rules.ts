import { readFileSync } from 'node:fs'
import commonList from '@zxcvbn-ts/language-common/src/passwords.json' with { type: 'file' }
import type { PasswordOwner } from '../domain/accounts/password-hashing.ts'

/** OWASP ASVS 5.0 §6.2.1 requires 8 and recommends 15. */
const passwordLengthMin = 12
/** Bounds the cost of Unicode normalization; argon2id accepts any length. */
const passwordBytesMax = 1024
const stemLengthMin = 4

let commonPasswords: Set<string> | undefined

/**
 * Finds what is wrong with a new password (NIST SP 800-63B §3.1.1.2: length, and a list of common passwords; no rules
 * about kinds of characters). Upper and lower case are the same here. White space counts as it is and is never removed.
 *
 * @returns a sentence for the person who chose it; undefined if the password is accepted
 */
export function findPasswordFault(password: string, owner: PasswordOwner): string | undefined {
  if (!isWithinBounds(password) || [...normalizePassword(password)].length < passwordLengthMin)
    return `Expected at least ${passwordLengthMin} characters and at most 1,024 bytes.`
  const text = normalizePassword(password).toLowerCase()
  if (isCommon(text)) return `This is a common password, which attackers try first. ${advice}`
  if (isSequence(text)) return `This is a sequence of keys, numbers or letters. ${advice}`
  if (isOwn(text, owner)) return `This consists of your name, your e-mail address or the product. ${advice}`
  return undefined
}

const advice = 'Choose another one, such as four random words.'

/** Whether a password is not empty and at most 1,024 bytes long. */
export const isWithinBounds = (password: string) =>
  password !== '' && Buffer.byteLength(password) <= passwordBytesMax

/** NIST SP 800-63B-4 §3.1.1.2: the same characters typed on different systems must give the same bytes. */
export const normalizePassword = (password: string) => password.normalize('NFKC')

/** Whether a text is an entry of the list, also repeated, and also with digits or signs at its end. */
function isCommon(text: string): boolean {
  commonPasswords ??= readCommonPasswords()
  const stem = toStem(text)
  return commonPasswords.has(stem) || commonPasswords.has(repeatedPart(stem))
}

const toStem = (text: string) => text.replace(/[^\p{L}]+$/u, '')

/** Reads the list of zxcvbn-ts (MIT license), a file of the executable: 30 ms, when the first password is set. */
function readCommonPasswords(): Set<string> {
  // Imported as a file, a module is its path, which its type does not say.
  const entries: unknown[] = JSON.parse(readFileSync(String(commonList), 'utf8'))
  return new Set(entries.map((entry) => toStem(String(entry))).filter((stem) => stem.length >= stemLengthMin))
}

/** Returns `abc` for `abcabc`, and other texts as they are. */
const repeatedPart = (text: string) => text.slice(0, (text + text).indexOf(text, 1))

const rows = [
  '1234567890',
  'qwertyuiop',
  'asdfghjkl',
  'zxcvbnm',
  'qwertzuiop',
  'azertyuiop',
  'abcdefghijklmnopqrstuvwxyz',
]
/** Pairs of characters that follow one another on a row, in either direction or around its end. */
const neighbors = new Set(
  rows.flatMap((row) => [...row].map((character, index) => character + row[(index + 1) % row.length])),
)
const runLengthMin = 3
const remainderMax = 3

/** Whether at most three characters are left when runs such as `qwertz`, `4321` and `aaa` are taken out. */
function isSequence(text: string): boolean {
  const characters = [...repeatedPart(text)]
  if (characters.length <= remainderMax) return true
  let remainder = 0
  let run = 1
  let lastStep = ''
  characters.forEach((character, index) => {
    const step = stepBetween(character, characters[index + 1])
    if (step !== '' && (run === 1 || step === lastStep)) run += 1
    else {
      if (run < runLengthMin) remainder += run
      run = 1
    }
    lastStep = step
  })
  return remainder <= remainderMax
}

/** Returns the direction in which one character follows another on a row; empty if it does not. */
function stepBetween(character: string, next: string | undefined): '' | 'same' | 'up' | 'down' {
  if (next === undefined) return ''
  if (character === next) return 'same'
  if (neighbors.has(character + next)) return 'up'
  return neighbors.has(next + character) ? 'down' : ''
}

/** Whether only digits and signs are left of a text without the owner's name and address and the product's name. */
function isOwn(text: string, { email, name }: PasswordOwner): boolean {
  const ownName = normalizePassword(name ?? '').toLowerCase()
  const words = [email, email.replace(/@.*/, ''), ownName, ...ownName.split(/[^\p{L}\p{N}]+/u), 'otpd']
    .map((word) => word.toLowerCase())
    .filter((word) => word !== '')
    .toSorted((one, other) => other.length - one.length)
  const rest = words.reduce((remaining, word) => remaining.replaceAll(word, ' '), text)
  return rest !== text && !/\p{L}/u.test(rest)
}
