import { hkdfSync } from 'node:crypto'
import { hmac } from '../../shared/hmac.ts'
import type { Random } from './random.ts'
import { seal, unseal } from './sealed.ts'

/**
 * Subkeys, one per use, so that no two uses share a key. Their values change when keys are replaced while the
 * server runs: read them at each use, and inside the transaction that stores what they made.
 */
export type Keys = {
  /** Derives codes. */
  readonly code: Buffer
  /** Hashes codes for comparison. */
  readonly codeHash: Buffer
  /** Both keys of codes sent before the key was replaced, newest first, until those codes have been ended. */
  readonly endedCodes: readonly { code: Buffer; codeHash: Buffer }[]
  /** Derives client IDs. */
  readonly clientId: Buffer
  /** Hashes the configurations of nodes, which have secrets, so that they can be compared. */
  readonly configuration: Buffer
  /** Hashes phone numbers for tables that look them up without storing them. */
  readonly phone: IndexKey
  /** Derives the pseudonyms of phone numbers in old records. */
  readonly pseudonym: IndexKey
  /** Hashes the phone prefixes and client addresses that the guard counts by. */
  readonly guard: IndexKey
  /** Signs the challenges that otpd makes itself. */
  readonly challenge: Buffer
  /** Signs the cookie and the forms of the ready page. */
  readonly page: Buffer
  /** Derives the tokens of callback URLs. */
  readonly callback: Buffer
  /** Encrypts the private keys of the built-in identity provider. */
  readonly signingKey: Buffer
  /** Opens the values of custom webhook headers that version 0.1.0 encrypted: always of the oldest version. */
  readonly webhookHeader: Buffer
  /** Derives the successors of refresh tokens. */
  readonly refreshToken: Buffer
  /** Encrypts the access tokens of applications. */
  readonly accessToken: Buffer
  /** Hashes the e-mail addresses and networks that failed logins are counted by. */
  readonly login: IndexKey
  /** Hashes the contexts of end users: networks and device IDs. */
  readonly context: IndexKey
  /** Encrypts sensitive columns at rest. */
  readonly seals: SealKeys
  /** Hashes the bodies of idempotent calls. */
  readonly idempotency: IndexKey
  /** Encrypts pagination cursors. */
  readonly cursor: Buffer
  /** Authenticates the heads of the audit chains. A head names the version of its key: see `resignHeads`. */
  readonly audit: { readonly version: number; readonly key: Buffer }
}

/** Versions of the key that seals columns. A sealed text names the version that it was sealed with. */
type SealKeys = {
  /** Version that new texts are sealed with. */
  readonly version: number
  /** Finds the key of a version; undefined if it is unknown. */
  find(version: number): Buffer | undefined
}

/** All versions of a key whose hashes are stored without the hashed text, oldest first. See `indexHash`. */
type IndexKey = readonly Buffer[]

/** Purposes of data keys. Each has its own versions. */
export const purposes = [
  'codes',
  'seals',
  'signing',
  'phone-index',
  'pseudonyms',
  'callbacks',
  'client-ids',
] as const

export type Purpose = (typeof purposes)[number]

/**
 * The data key that each subkey is derived from, with its label, which is part of the derivation and never changes.
 * `isIn010`: version 0.1.0 derived it from the master key, and a database of that version keeps this very subkey.
 */
const subkeys = {
  code: { purpose: 'codes', label: 'code', isIn010: true },
  codeHash: { purpose: 'codes', label: 'code hash', isIn010: true },
  clientId: { purpose: 'client-ids', label: 'client id', isIn010: true },
  configuration: { purpose: 'client-ids', label: 'configuration', isIn010: false },
  phone: { purpose: 'phone-index', label: 'phone', isIn010: true },
  guard: { purpose: 'phone-index', label: 'guard', isIn010: true },
  login: { purpose: 'phone-index', label: 'login', isIn010: false },
  context: { purpose: 'phone-index', label: 'context', isIn010: false },
  idempotency: { purpose: 'phone-index', label: 'idempotency', isIn010: false },
  pseudonym: { purpose: 'pseudonyms', label: 'pseudonym', isIn010: true },
  callback: { purpose: 'callbacks', label: 'callback', isIn010: true },
  signingKey: { purpose: 'signing', label: 'signing key', isIn010: true },
  refreshToken: { purpose: 'signing', label: 'refresh token', isIn010: true },
  accessToken: { purpose: 'signing', label: 'access token', isIn010: false },
  audit: { purpose: 'signing', label: 'audit', isIn010: false },
  challenge: { purpose: 'signing', label: 'challenge', isIn010: false },
  page: { purpose: 'signing', label: 'page', isIn010: false },
  seals: { purpose: 'seals', label: 'seals', isIn010: false },
  webhookHeader: { purpose: 'seals', label: 'webhook header', isIn010: true },
  cursor: { purpose: 'seals', label: 'cursor', isIn010: false },
} as const satisfies Record<string, { purpose: Purpose; label: string; isIn010: boolean }>

type SubkeyName = keyof typeof subkeys

/**
 * One version of a data key. `material` is 32 random bytes; version 1 in a database that 0.1.0 created has the
 * purpose's subkeys of 0.1.0 after them, in the order of `subkeys`.
 */
export type DataKey = { purpose: Purpose; version: number; material: Uint8Array }

export const masterKeyBytes = 32
const keyBytes = 32

const derive = (secret: Uint8Array, label: string, bytes = keyBytes) =>
  Buffer.from(hkdfSync('sha256', secret, '', `otpd ${label} v1`, bytes))

/** Names of the subkeys of a purpose that 0.1.0 had. */
const subkeysIn010 = (purpose: Purpose): SubkeyName[] =>
  (Object.keys(subkeys) as SubkeyName[]).filter(
    (name) => subkeys[name].purpose === purpose && subkeys[name].isIn010,
  )

/** Makes a version of a data key from random bytes. */
export function newDataKey(purpose: Purpose, version: number, random: Random): DataKey {
  const material = new Uint8Array(keyBytes)
  random(material)
  return { purpose, version, material }
}

/** Makes version 1 of each data key for a database of 0.1.0: what its keys made stays valid. */
export function dataKeysOf010(masterKey: Uint8Array, random: Random): DataKey[] {
  return purposes.map((purpose) => {
    const { material } = newDataKey(purpose, 1, random)
    const old = subkeysIn010(purpose).map((name) => derive(masterKey, subkeys[name].label))
    return { purpose, version: 1, material: Buffer.concat([material, ...old]) }
  })
}

function subkey(name: SubkeyName, { material, purpose }: DataKey): Buffer {
  const { label, isIn010 } = subkeys[name]
  if (!isIn010 || material.length === keyBytes) return derive(material.subarray(0, keyBytes), label)
  const offset = keyBytes * (1 + subkeysIn010(purpose).indexOf(name))
  return Buffer.from(material.subarray(offset, offset + keyBytes))
}

/** Keys that can be replaced while they are in use. */
export type Keyring = {
  readonly keys: Keys
  /** Newest version of a purpose. */
  newestVersion(purpose: Purpose): number
  /** Tells whether a purpose has more than one version. */
  hasOldVersions(purpose: Purpose): boolean
  /** Puts other data keys behind `keys`; all versions of all purposes. */
  replace(dataKeys: readonly DataKey[]): void
}

/**
 * Creates the keyring over a set of data keys.
 *
 * @param reload called when a text names an unknown version of a seal key: another process may have made it
 */
export function createKeyring(dataKeys: readonly DataKey[], reload: () => void = () => {}): Keyring {
  let newest = new Map<Purpose, number>()
  let counts = new Map<Purpose, number>()
  let sealKeys = new Map<number, Buffer>()
  function findSealKey(version: number): Buffer | undefined {
    if (!sealKeys.has(version)) reload()
    return sealKeys.get(version)
  }

  function derived(all: readonly DataKey[]): Keys {
    const versions = (purpose: Purpose) =>
      all.filter((key) => key.purpose === purpose).toSorted((a, b) => a.version - b.version)
    const everyVersion = (name: SubkeyName) =>
      versions(subkeys[name].purpose).map((dataKey) => subkey(name, dataKey))
    const one = (name: SubkeyName, index: 0 | -1 = -1) => {
      const key = everyVersion(name).at(index)
      if (key === undefined) throw new Error(`there is no data key for ${subkeys[name].purpose}`)
      return key
    }
    newest = new Map(purposes.map((purpose) => [purpose, versions(purpose).at(-1)?.version ?? 0]))
    counts = new Map(purposes.map((purpose) => [purpose, versions(purpose).length]))
    sealKeys = new Map(versions('seals').map((dataKey) => [dataKey.version, subkey('seals', dataKey)]))
    return {
      code: one('code'),
      codeHash: one('codeHash'),
      endedCodes: versions('codes')
        .slice(0, -1)
        .map((dataKey) => ({ code: subkey('code', dataKey), codeHash: subkey('codeHash', dataKey) }))
        .toReversed(),
      clientId: one('clientId'),
      configuration: one('configuration'),
      phone: everyVersion('phone'),
      pseudonym: everyVersion('pseudonym'),
      guard: everyVersion('guard'),
      challenge: one('challenge'),
      page: one('page'),
      callback: one('callback'),
      signingKey: one('signingKey'),
      webhookHeader: one('webhookHeader', 0),
      refreshToken: one('refreshToken'),
      accessToken: one('accessToken'),
      login: everyVersion('login'),
      context: everyVersion('context'),
      seals: { version: newest.get('seals') ?? 0, find: findSealKey },
      idempotency: everyVersion('idempotency'),
      cursor: one('cursor'),
      audit: { version: newest.get('signing') ?? 0, key: one('audit') },
    }
  }

  const keys = derived(dataKeys)
  return {
    keys,
    newestVersion: (purpose) => newest.get(purpose) ?? 0,
    hasOldVersions: (purpose) => (counts.get(purpose) ?? 0) > 1,
    replace: (all) => void Object.assign(keys, derived(all)),
  }
}

const wrapContext = ({ purpose, version }: Pick<DataKey, 'purpose' | 'version'>) => `${purpose} ${version}`

/** Encrypts a data key under the master key, bound to its purpose and version. */
export const wrapDataKey = (masterKey: Uint8Array, dataKey: DataKey, random: Random): string =>
  seal(
    derive(masterKey, 'wrap'),
    wrapContext(dataKey),
    Buffer.from(dataKey.material).toString('base64url'),
    random,
  )

/** Opens a wrapped data key. Throws if it was wrapped by another master key, or is another data key. */
export const unwrapDataKey = (
  masterKey: Uint8Array,
  id: Pick<DataKey, 'purpose' | 'version'>,
  wrapped: string,
): DataKey => ({
  ...id,
  material: Buffer.from(unseal(derive(masterKey, 'wrap'), wrapContext(id), wrapped), 'base64url'),
})

// Backups are authenticated and encrypted without a database, so with keys from the master key itself.
export const backupMacKey = (masterKey: Uint8Array) => derive(masterKey, 'backup-mac')
export const backupSealKey = (masterKey: Uint8Array) => derive(masterKey, 'backup-seal')

/** Derives the check value that is stored: it detects a wrong master key and does not reveal the right one. */
export const masterKeyCheck = (masterKey: Uint8Array) => derive(masterKey, 'check', 16).toString('hex')

/** Turns a digest into the text that is stored, for example a shorter one. */
export type HashForm = (digest: Buffer) => string
const wholeDigest: HashForm = (digest) => digest.toString('base64url')

/**
 * Hashes a text that is looked up or counted by, and not stored itself, with all versions of a key, at least one: version
 * 1 hashes the text, version n the hash of the version before, and appends `~n`. A stored hash can so be brought to a new
 * version without the text, and one who has an old version alone cannot compute the new hash.
 */
export const indexHash = (key: IndexKey, text: string, form: HashForm = wholeDigest): string =>
  key.reduce((value, version, index) => hashVersion(version, index, value, form), text)

/** As `indexHash`, in all versions, newest first: for look-ups while stored hashes are brought to a new version. */
export function indexHashes(key: IndexKey, text: string, form: HashForm = wholeDigest): string[] {
  const hashes: string[] = []
  let value = text
  for (const [index, version] of key.entries()) {
    value = hashVersion(version, index, value, form)
    hashes.unshift(value)
  }
  return hashes
}

/** Brings a stored hash to the newest version; the same text if it already is. */
export function upgradeHash(key: IndexKey, stored: string, form: HashForm = wholeDigest): string {
  const version = Number(/~(\d+)$/.exec(stored)?.[1] ?? 1)
  let value = stored
  for (let index = version; index < key.length; index++) {
    const next = key[index]
    if (next) value = hashVersion(next, index, value, form)
  }
  return value
}

const hashVersion = (key: Buffer, index: number, text: string, form: HashForm) =>
  form(hmac(key).update(text).digest()) + (index === 0 ? '' : `~${index + 1}`)
