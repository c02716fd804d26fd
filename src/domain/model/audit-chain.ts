import { hash } from 'node:crypto'
import type { AuditEntry } from './audit.ts'
import { hmac } from '../../shared/hmac.ts'
import type { Keys } from './keys.ts'

// The audit trail is one hash chain per developer and one for the installation. A changed, deleted, inserted or moved
// entry breaks its chain; the head, which only the holder of the key can write, shows a missing end.

/** The chain of the installation itself. The other chains have the ids of their developers. */
export const hostChain = 'host'

/** Returns the name of the chain that an entry belongs to. */
export const chainName = ({ developerId }: Pick<AuditEntry, 'developerId'>) => developerId ?? hostChain

/** An entry with its place in its chain. */
export type ChainedEntry = AuditEntry & {
  /** Number in its chain, from 1. */
  position: number
  /** Newest entry of another chain at that time, as `formatWitness` writes it; null if this chain had the newest. */
  witness: string | null
  hash: string
}

/** Current state of a chain. The fields before `keyVersion` are authenticated by `mac`. */
export type ChainHead = {
  chain: string
  /** Position of the last entry. */
  entries: number
  lastHash: string
  /** Position of the last entry that retention deleted; 0 if none. */
  deleted: number
  deletedHash: string
  /** Number of chains that were ever started, in the head of the installation's chain; 0 in all others. */
  chains: number
  /** Time from which on the chain proves its entries. */
  startedAt: number
  keyVersion: number
  mac: string
}

/** Hash that the first entry of a chain follows. */
export const firstHash = ''

/** All fields but that which names the chain. A missing one does not compile. */
const hashedFields: Record<Exclude<keyof AuditEntry, 'developerId'>, true> = {
  id: true,
  action: true,
  actorId: true,
  targetId: true,
  targetName: true,
  detail: true,
  source: true,
  ip: true,
  userAgent: true,
  traceId: true,
  tokenId: true,
  at: true,
}
// The names of an object literal.
const hashedNames = Object.keys(hashedFields).toSorted() as Array<keyof typeof hashedFields>

/**
 * Hashes an entry and the hash of the entry before it with SHA-256. The encoding is unambiguous: JSON, with the fields that
 * are not null, in the order of their names, so that a nullable field can be added later.
 */
export function hashEntry(entry: Omit<ChainedEntry, 'hash'>, previousHash: string): string {
  const fields = hashedNames.flatMap((name) => (entry[name] === null ? [] : [name, entry[name]]))
  const place = [previousHash, chainName(entry), entry.position, entry.witness]
  return hash('sha256', encode('otpd audit entry v1', [...place, ...fields]), 'base64url')
}

/** Tells whether an entry is the unchanged successor of the entry at `position` with `hash`. */
export const isSuccessor = (
  entry: ChainedEntry,
  { position, hash }: Pick<ChainedEntry, 'position' | 'hash'>,
) => entry.position === position + 1 && entry.hash === hashEntry(entry, hash)

type AuditKeys = Pick<Keys, 'audit'>

/** Adds the version of the current key and the MAC of all other fields. */
export function signHead({ audit }: AuditKeys, head: Omit<ChainHead, 'keyVersion' | 'mac'>): ChainHead {
  const { version, key } = audit
  return { ...head, keyVersion: version, mac: headMac(key, head, version) }
}

/** Tells whether a holder of the current key wrote a head. */
export const isAuthenticHead = ({ audit }: AuditKeys, { keyVersion, mac, ...head }: ChainHead): boolean =>
  keyVersion === audit.version && mac === headMac(audit.key, head, keyVersion)

function headMac(key: Buffer, head: Omit<ChainHead, 'keyVersion' | 'mac'>, keyVersion: number): string {
  const { chain, entries, lastHash, deleted, deletedHash, chains, startedAt } = head
  const fields = [chain, entries, lastHash, deleted, deletedHash, chains, startedAt, keyVersion]
  return hmac(key).update(encode('otpd audit head v1', fields)).digest('base64url')
}

/** Databases store lone surrogates as U+FFFD, so a hash must not depend on them. */
const encode = (label: string, fields: ReadonlyArray<string | number | null>) =>
  JSON.stringify([
    label,
    ...fields.map((field) => (typeof field === 'string' ? field.toWellFormed() : field)),
  ])

type Witness = { chain: string; position: number; hash: string }

/** Formats a reference to an entry of another chain. */
export const formatWitness = ({ chain, position, hash }: Witness) => `${chain}/${position}/${hash}`

/** Parses a reference; undefined if the text is none. */
export function parseWitness(text: string): Witness | undefined {
  const [, chain, position, hash] = /^([^/]+)\/(\d{1,15})\/([\w-]{43})$/.exec(text) ?? []
  return chain !== undefined && hash !== undefined ? { chain, position: Number(position), hash } : undefined
}
