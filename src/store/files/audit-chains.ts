import type { Database as SqliteConnection } from 'bun:sqlite'
import {
  chainName,
  firstHash,
  formatWitness,
  hashEntry,
  hostChain,
  isAuthenticHead,
  isSuccessor,
  parseWitness,
  signHead,
  type ChainedEntry,
  type ChainHead,
} from '../../domain/model/audit-chain.ts'
import type { Keys } from '../../domain/model/keys.ts'

type AuditKeys = Pick<Keys, 'audit'>
type ChainEnd = Pick<ChainedEntry, 'position' | 'hash'>

const chainStart: ChainEnd = { position: 0, hash: firstHash }

/**
 * Kinds of breaks:
 *
 * - `entry_changed`: the entry differs from what was recorded, or another entry has its place;
 * - `entry_missing`: the entry was deleted, but not by retention;
 * - `entry_added`: the entry is not part of its chain;
 * - `head_changed`: the head was changed, or deleted and started again;
 * - `chain_missing`: the developer's chain was deleted as a whole;
 * - `chain_set_back`: the chain ends before an entry that another chain has seen in it.
 */
export type AuditBreakKind =
  'entry_changed' | 'entry_missing' | 'entry_added' | 'head_changed' | 'chain_missing' | 'chain_set_back'

/** The first broken place of a chain. */
export type AuditBreak = {
  /** Id of a developer, or `host`; null if the name of a missing chain is unknown. */
  chain: string | null
  kind: AuditBreakKind
  /** Number of the entry in its chain; null if the break is not at one entry. */
  position: number | null
  entryId: string | null
}

export type AuditVerification = {
  isUnbroken: boolean
  /** At most one per chain. */
  breaks: AuditBreak[]
  /** Entries that were read. */
  entries: number
  /** Entries that retention deleted. */
  deleted: number
  /** Start of the oldest chain in milliseconds, from which on entries are proved; null if there is none. */
  provedSince: number | null
  /** End of each chain; kept elsewhere, it also shows that a whole older database was put back. */
  heads: Array<Pick<ChainHead, 'chain' | 'entries' | 'lastHash'>>
}

const headColumns =
  'chain, entries, last_hash as lastHash, deleted, deleted_hash as deletedHash, chains, started_at as startedAt, key_version as keyVersion, mac'
const entryColumns =
  'id, developer_id as developerId, action, actor_id as actorId, target_id as targetId, target_name as targetName, detail, source, ip, user_agent as userAgent, trace_id as traceId, token_id as tokenId, at, position, hash, witness'

/**
 * Numbers and hashes the entries of a database of 0.1.0, and starts a chain for each developer and for the installation.
 * Runs in the transaction of the migration that adds the chains, and never again: from then on, an entry without a hash
 * is a break.
 */
export function startAuditChains(connection: SqliteConnection, keys: AuditKeys, now: number): void {
  const update = connection.prepare('update audit_entries set position = ?, hash = ? where id = ?')
  const ends = new Map<string, ChainEnd>()
  for (const entry of listEntries(connection)) {
    const chain = chainName(entry)
    const end = ends.get(chain) ?? chainStart
    const position = end.position + 1
    const hash = hashEntry({ ...entry, position }, end.hash)
    update.run(position, hash, entry.id)
    ends.set(chain, { position, hash })
  }
  update.finalize()
  const chains = new Set([...listOwners(connection), hostChain])
  for (const chain of chains) {
    const { position, hash } = ends.get(chain) ?? chainStart
    const start = { chain, entries: position, lastHash: hash, deleted: 0, deletedHash: firstHash }
    const count = chain === hostChain ? chains.size : 0
    insertHead(connection, signHead(keys, { ...start, chains: count, startedAt: now }))
  }
}

/** Authenticates the heads with a new key, in the transaction that replaces the old one; a broken head stays broken. */
export function resignHeads(connection: SqliteConnection, before: AuditKeys, after: AuditKeys): void {
  for (const head of listHeads(connection)) {
    if (!isAuthenticHead(before, head)) continue
    const { keyVersion, mac } = signHead(after, head)
    connection.run('update audit_chains set key_version = ?, mac = ? where chain = ?', [
      keyVersion,
      mac,
      head.chain,
    ])
  }
}

/** Verifies all chains of a migrated database in one snapshot, and reads nothing else. */
export function verifyAuditTrail(connection: SqliteConnection, keys: AuditKeys): AuditVerification {
  connection.run('BEGIN')
  try {
    return verifySnapshot(connection, keys)
  } finally {
    connection.run('ROLLBACK')
  }
}

function verifySnapshot(connection: SqliteConnection, keys: AuditKeys): AuditVerification {
  const heads = new Map(listHeads(connection).map((head) => [head.chain, head]))
  const ends = new Map<string, ChainEnd>(
    [...heads].map(([chain, { deleted, deletedHash }]) => [chain, { position: deleted, hash: deletedHash }]),
  )
  /** Chains whose entries are not in the order of their ids: of a clock that was set back, or tampered with. */
  const unordered = new Set<string>()
  const witnesses = openWitnessCheck(connection, heads)
  let entries = 0
  // In the order of ids, in which the table is stored: a chain at a time would read a million entries 20 times slower.
  for (const entry of listEntries(connection)) {
    entries++
    const chain = chainName(entry)
    const end = ends.get(chain)
    if (end && isSuccessor(entry, end)) ends.set(chain, entry)
    else unordered.add(chain)
    witnesses.check(entry)
  }
  const breaks = new Map<string | null, AuditBreak>()
  const report = (found: AuditBreak | undefined) => {
    if (found && !breaks.has(found.chain)) breaks.set(found.chain, found)
  }
  for (const [chain, head] of heads) {
    const end = ends.get(chain) ?? chainStart
    const isOrdered = !unordered.has(chain) && end.position <= head.entries
    report(isOrdered ? findBreakAtEnd(end, head, keys) : findBreak(connection, head, keys))
  }
  findMissingChains(connection, heads).forEach(report)
  witnesses.finish().forEach(report)
  return {
    isUnbroken: breaks.size === 0,
    breaks: [...breaks.values()],
    entries,
    deleted: sum([...heads.values()].map(({ deleted }) => deleted)),
    provedSince: heads.size === 0 ? null : Math.min(...[...heads.values()].map(({ startedAt }) => startedAt)),
    heads: [...heads.values()].map(({ chain, entries: count, lastHash }) => ({
      chain,
      entries: count,
      lastHash,
    })),
  }
}

/** Checks that a chain still has the entries that other chains saw in it. */
function openWitnessCheck(connection: SqliteConnection, heads: ReadonlyMap<string, ChainHead>) {
  const findHash = connection.prepare<{ hash: string }, [string | null, number]>(
    'select hash from audit_entries where developer_id is ? and position = ?',
  )
  const found: AuditBreak[] = []
  let previous: string | undefined
  return {
    /** @param entry called for each entry in the order of ids, in which most follow the one that they have seen */
    check(entry: ChainedEntry) {
      const isKnown = entry.witness === null || entry.witness === previous
      previous = formatWitness({ ...entry, chain: chainName(entry) })
      // A text that is no witness was changed, which the hash of the entry tells.
      const witness = isKnown || entry.witness === null ? undefined : parseWitness(entry.witness)
      if (!witness) return
      const { chain, position, hash } = witness
      if (position <= (heads.get(chain)?.deleted ?? 0)) return
      if (findHash.get(chain === hostChain ? null : chain, position)?.hash === hash) return
      found.push({ chain, kind: 'chain_set_back', position, entryId: null })
    },
    finish() {
      findHash.finalize()
      return found
    },
  }
}

/** Finds the first break of a chain in the order of its positions. */
function findBreak(connection: SqliteConnection, head: ChainHead, keys: AuditKeys): AuditBreak | undefined {
  let end: ChainEnd = { position: head.deleted, hash: head.deletedHash }
  for (const entry of listChain(connection, head.chain)) {
    const found = findBreakAt(entry, end, head)
    if (found) return found
    end = entry
  }
  return findBreakAtEnd(end, head, keys)
}

function findBreakAt(
  entry: ChainedEntry,
  end: ChainEnd,
  { chain, entries }: ChainHead,
): AuditBreak | undefined {
  const { position, id: entryId } = entry
  if (position > entries || position <= end.position) return { chain, kind: 'entry_added', position, entryId }
  if (position > end.position + 1)
    return { chain, kind: 'entry_missing', position: end.position + 1, entryId: null }
  return isSuccessor(entry, end) ? undefined : { chain, kind: 'entry_changed', position, entryId }
}

function findBreakAtEnd(end: ChainEnd, head: ChainHead, keys: AuditKeys): AuditBreak | undefined {
  const { chain } = head
  if (end.position < head.entries)
    return { chain, kind: 'entry_missing', position: end.position + 1, entryId: null }
  if (isAuthenticHead(keys, head) && end.hash === head.lastHash) return undefined
  return { chain, kind: 'head_changed', position: null, entryId: null }
}

/** Every developer has a chain, every entry is in one, and the installation's head counts all of them. */
function findMissingChains(
  connection: SqliteConnection,
  heads: ReadonlyMap<string, ChainHead>,
): AuditBreak[] {
  const expected = new Set([...listOwners(connection), hostChain])
  const missing = [...expected.difference(heads)].map(missingChain)
  const counted = heads.get(hostChain)?.chains
  return missing.length === 0 && counted !== heads.size ? [missingChain(null)] : missing
}

const missingChain = (chain: string | null): AuditBreak => ({
  chain,
  kind: 'chain_missing',
  position: null,
  entryId: null,
})

/** Lists the names of the chains that must exist: those of all developers and of all entries. */
const listOwners = (connection: SqliteConnection) =>
  connection
    .query<{ chain: string }, [string]>(
      'select id as chain from developers union select coalesce(developer_id, ?) from audit_entries',
    )
    .all(hostChain)
    .map(({ chain }) => chain)

const listHeads = (connection: SqliteConnection) =>
  connection.query<ChainHead, []>(`select ${headColumns} from audit_chains order by chain`).all()

const pageRows = 1000

/** Yields all entries in the order of their ids, page by page, so that the caller may change them. */
function* listEntries(connection: SqliteConnection): Generator<ChainedEntry> {
  const page = connection.prepare<ChainedEntry, [string]>(
    `select ${entryColumns} from audit_entries where id > ? order by id limit ${pageRows}`,
  )
  yield* pages(
    (after: string) => page.all(after),
    '',
    ({ id }) => id,
  )
  page.finalize()
}

/** Yields the entries of a chain in the order of their positions. */
function* listChain(connection: SqliteConnection, chain: string): Generator<ChainedEntry> {
  const page = connection.prepare<ChainedEntry, [string | null, number, string]>(
    `select ${entryColumns} from audit_entries
     where developer_id is ? and (position, id) > (?, ?) order by position, id limit ${pageRows}`,
  )
  const owner = chain === hostChain ? null : chain
  type Place = { position: number; id: string }
  const before: Place = { position: Number.MIN_SAFE_INTEGER, id: '' }
  const list = ({ position, id }: Place) => page.all(owner, position, id)
  try {
    yield* pages(list, before, (entry) => entry)
  } finally {
    page.finalize()
  }
}

/** Yields rows page by page (keyset pagination). */
function* pages<Row, Key>(list: (after: Key) => Row[], start: Key, keyOf: (row: Row) => Key): Generator<Row> {
  for (let after = start; ;) {
    const rows = list(after)
    yield* rows
    const last = rows.at(-1)
    if (last === undefined || rows.length < pageRows) return
    after = keyOf(last)
  }
}

function insertHead(connection: SqliteConnection, head: ChainHead): void {
  const { chain, entries, lastHash, deleted, deletedHash, chains, startedAt, keyVersion, mac } = head
  connection.run(
    `insert into audit_chains (chain, entries, last_hash, deleted, deleted_hash, chains, started_at, key_version, mac)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [chain, entries, lastHash, deleted, deletedHash, chains, startedAt, keyVersion, mac],
  )
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0)
