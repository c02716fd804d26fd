import { hkdfSync } from 'node:crypto'
import type { Keys } from '../../domain/model/keys.ts'
import { createPhoneCipher, type PhoneCipher } from './phone-cipher.ts'
import { isPlainPhone, unreadablePhone } from '../../domain/model/pseudonyms.ts'
import type { Random } from '../../domain/model/random.ts'
import { seal, unseal } from '../../domain/model/sealed.ts'

/**
 * Columns that are sealed at rest. With the id of the row, the name is the associated data of a sealed value. A log
 * entry keeps the phone of its request as the request does, so both use the name of the request's column.
 */
export type SealedColumn =
  | 'applications.webhook_secret'
  | 'events.payload'
  | 'guard_rules.rules'
  | 'idempotency_keys.answer'
  | 'otp_requests.client_ip'
  | 'otp_requests.metadata'
  | 'otp_requests.own_text'
  | 'otp_requests.phone'
  | 'otp_requests.template'
  | 'otp_sessions.details'
  | 'phones.phone'
  | 'relayed_messages.client_ip'
  | 'relayed_messages.phone'
  | 'webhook_attempts.body'
  | 'webhook_endpoints.headers'

/** Encrypts and decrypts values of sealed columns. `row` is the id of the row: never a local integer. */
export type Sealing = {
  /** Encrypts a text with AES-256-GCM, as `s<version>.<base64url of nonce, tag and ciphertext>`. */
  sealText<T extends string | null>(column: SealedColumn, row: string, text: T): T
  /**
   * Decrypts a text. Plain texts, which a database of 0.1.0 holds until its conversion ends, are returned unchanged.
   *
   * @returns null if the value cannot be decrypted, or is null
   */
  openText(column: SealedColumn, row: string, stored: string | null): string | null
  /** Encrypts a phone number as `p<version>.<base64url>`; pseudonyms and other values are returned unchanged. */
  sealPhone<T extends string | null>(column: SealedColumn, row: string, phone: T): T
  /** Decrypts a phone number; other values are returned unchanged. @returns `unreadable` if it cannot be decrypted */
  openPhone<T extends string | null>(column: SealedColumn, row: string, stored: T): T | string
  /** Decrypts a header value of 0.1.0, which sealed each on its own. @returns null if it cannot be decrypted */
  openHeaderValue(endpointId: string, name: string, sealed: string): string | null
}

/**
 * Names the row of an entry's phone in the associated data: that of its request, so that both hold the same value. Entries
 * without a request do not share theirs, which would show that they are of one number.
 */
export const phoneRow = ({ requestId, at }: { requestId: string | null; at: number }) => requestId ?? `${at}`

/** Names an entry in the associated data of its sealed payload. */
export const payloadRow = ({ requestId, type, at }: { requestId: string | null; type: string; at: number }) =>
  `${requestId ?? ''} ${type} ${at}`

/** A column and the id of a row whose value cannot be decrypted. */
export type UnreadableValue = { column: SealedColumn; row: string }

/**
 * Creates the encryption of sealed columns. A value names the version of its key, and new values get the newest.
 *
 * @param keys read at each use, so that they can be replaced while the server runs
 * @param onUnreadable called for each value that was changed, moved to another row, or sealed with an unknown key
 */
export function createSealing(
  keys: Pick<Keys, 'seals' | 'webhookHeader'>,
  random: Random,
  onUnreadable: (value: UnreadableValue) => void = () => {},
): Sealing {
  const ciphersByKey = new WeakMap<Uint8Array, Ciphers>()
  // A send seals the same number of the same row for the request and its log entry; a call saves the record it loaded.
  // Entries of a log page often are of the same request.
  const recentPhones: RecentPhone[] = []

  function ciphersOf(version: number): Ciphers | undefined {
    const key = keys.seals.find(version)
    if (!key) return undefined
    let ciphers = ciphersByKey.get(key)
    if (!ciphers) {
      const textKey = new Uint8Array(hkdfSync('sha256', key, '', 'otpd seals text v1', 32))
      ciphersByKey.set(key, (ciphers = { version, textKey, phones: createPhoneCipher(key) }))
    }
    return ciphers
  }

  function currentCiphers(): Ciphers {
    const { version } = keys.seals
    const ciphers = ciphersOf(version)
    if (!ciphers) throw new Error(`the seal key of version ${version} is missing`)
    return ciphers
  }

  return {
    sealText(column, row, text) {
      if (text === null) return text
      const { version, textKey } = currentCiphers()
      return `s${version}.${seal(textKey, `${column} ${row}`, text, random)}` as typeof text
    },

    openText(column, row, stored) {
      const sealed = stored === null ? null : parseSealed(stored, 's')
      if (!sealed) return stored
      const ciphers = ciphersOf(sealed.version)
      try {
        if (ciphers && stored !== null)
          return unseal(ciphers.textKey, `${column} ${row}`, stored.slice(sealed.start))
      } catch {
        // Not authentic: reported below.
      }
      onUnreadable({ column, row })
      return null
    },

    sealPhone(column, row, phone) {
      if (!isPlainPhone(phone)) return phone
      const { version } = keys.seals
      const slot = recentSlot(row)
      const recent = recentPhones[slot]
      const isSame = recent?.row === row && recent.column === column && recent.version === version
      if (isSame && recent.phone === phone) return recent.stored as typeof phone
      if (!e164.test(phone)) throw new TypeError('a phone number must be in E.164')
      const stored = `p${version}.${currentCiphers().phones.seal(column, row, phone)}`
      recentPhones[slot] = { column, row, phone, version, stored }
      return stored as typeof phone
    },

    openPhone(column, row, stored) {
      const sealed = stored === null ? null : parseSealed(stored, 'p')
      if (stored === null || !sealed) return stored
      const { version, start } = sealed
      const slot = recentSlot(row)
      const recent = recentPhones[slot]
      const isSame = recent?.row === row && recent.column === column && recent.version === version
      if (isSame && recent.stored === stored) return recent.phone
      const phone = ciphersOf(version)?.phones.open(column, row, stored, start)
      if (phone !== undefined) {
        recentPhones[slot] = { column, row, phone, version, stored }
        return phone
      }
      onUnreadable({ column, row })
      return unreadablePhone
    },

    openHeaderValue(endpointId, name, sealed) {
      try {
        return unseal(keys.webhookHeader, `${endpointId} ${name}`, sealed)
      } catch {
        onUnreadable({ column: 'webhook_endpoints.headers', row: endpointId })
        return null
      }
    },
  }
}

type RecentPhone = { column: SealedColumn; row: string; phone: string; version: number; stored: string }

/** More than the rows of a batch of calls; a power of two. */
const recentPhonesMax = 1024

/** Chooses the place of a row's phone by the end of the row's id, which is random. Another row takes it over. */
const recentSlot = (row: string) =>
  ((row.charCodeAt(row.length - 2) << 5) ^ row.charCodeAt(row.length - 3)) & (recentPhonesMax - 1)

type Ciphers = { version: number; textKey: Uint8Array; phones: PhoneCipher }

/** The number fits 50 bits, and so a JavaScript number, because E.164 has at most 15 digits. */
const e164 = /^\+[1-9]\d{0,14}$/

/**
 * Reads the version of `<letter><version>.<sealed text>`, and where the text starts. Values of 0.1.0 have other forms: an
 * address, JSON, `whsec_…`, `+…`, `anon_…` or `erased`.
 */
function parseSealed(stored: string, letter: 's' | 'p'): { version: number; start: number } | undefined {
  if (!stored.startsWith(letter)) return undefined
  let version = 0
  let dot = 1
  for (; dot < stored.length; dot++) {
    const digit = stored.charCodeAt(dot) - 0x30
    if (digit < 0 || digit > 9) break
    version = 10 * version + digit
  }
  return dot > 1 && stored.charAt(dot) === '.' ? { version, start: dot + 1 } : undefined
}

/** Tells whether a stored value is sealed with a version of the key. */
export const isSealedWith = (version: number, stored: string) =>
  stored.startsWith(`s${version}.`) || stored.startsWith(`p${version}.`)

/** Tells whether a stored value is sealed with any version of the key. */
export const isSealed = (stored: string) =>
  (parseSealed(stored, 's') ?? parseSealed(stored, 'p')) !== undefined
