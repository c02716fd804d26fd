import {
  chainName,
  firstHash,
  formatWitness,
  hostChain,
  isAuthenticHead,
  isSuccessor,
  parseWitness,
  type ChainedEntry,
  type ChainHead,
} from '../../domain/model/audit-chain.ts'
import { query, type SqlSteps } from '../engine/sql-steps.ts'
import type { OnStep } from '../../shared/progress.ts'
import type { Keys } from '../../domain/model/keys.ts'

type AuditKeys = Pick<Keys, 'audit'>
type ChainEnd = Pick<ChainedEntry, 'position' | 'hash'>

export const chainStart: ChainEnd = { position: 0, hash: firstHash }

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
type AuditBreakKind =
  'entry_changed' | 'entry_missing' | 'entry_added' | 'head_changed' | 'chain_missing' | 'chain_set_back'

/** The first broken place of a chain. */
type AuditBreak = {
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

const headColumns = `chain, entries, last_hash as "lastHash", deleted, deleted_hash as "deletedHash", chains,
  started_at as "startedAt", key_version as "keyVersion", mac`
const entryColumns = `id, developer_id as "developerId", action, actor_id as "actorId", target_id as "targetId",
  target_name as "targetName", detail, source, ip, user_agent as "userAgent", trace_id as "traceId",
  token_id as "tokenId", at, position, hash, witness`

/** Verifies all chains of a migrated database. The caller runs the steps in one snapshot. */
export function* verifyChains(keys: AuditKeys, onStep: OnStep = () => {}): SqlSteps<AuditVerification> {
  const heads = new Map((yield* listHeads()).map((head) => [head.chain, head]))
  const ends = new Map<string, ChainEnd>(
    [...heads].map(([chain, { deleted, deletedHash }]) => [chain, { position: deleted, hash: deletedHash }]),
  )
  /** Chains whose entries are not in the order of their ids: of a clock that was set back, or tampered with. */
  const unordered = new Set<string>()
  const witnesses = openWitnessCheck(heads)
  let entries = 0
  const total = sum([...heads.values()].map((head) => head.entries - head.deleted))
  // In the order of ids, in which the table is stored: a chain at a time would read a million entries 20 times slower.
  for (let after = ''; ;) {
    const page = yield* listEntries(after)
    for (const entry of page) {
      entries++
      const chain = chainName(entry)
      const end = ends.get(chain)
      if (end && isSuccessor(entry, end)) ends.set(chain, entry)
      else unordered.add(chain)
      yield* witnesses.check(entry)
    }
    onStep({ step: 'verifying the audit trail', done: entries, total, unit: 'entries' })
    const last = page.at(-1)
    if (last === undefined || page.length < pageRows) break
    after = last.id
  }
  const breaks = new Map<string | null, AuditBreak>()
  const report = (found: AuditBreak | undefined) => {
    if (found && !breaks.has(found.chain)) breaks.set(found.chain, found)
  }
  for (const [chain, head] of heads) {
    const end = ends.get(chain) ?? chainStart
    const isOrdered = !unordered.has(chain) && end.position <= head.entries
    report(isOrdered ? findBreakAtEnd(end, head, keys) : yield* findBreak(head, keys))
  }
  ;(yield* findMissingChains(heads)).forEach(report)
  witnesses.found.forEach(report)
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
function openWitnessCheck(heads: ReadonlyMap<string, ChainHead>) {
  const found: AuditBreak[] = []
  let previous: string | undefined
  return {
    found,
    /** @param entry called for each entry in the order of ids, in which most follow the one that they have seen */
    *check(entry: ChainedEntry): SqlSteps<void> {
      const isKnown = entry.witness === null || entry.witness === previous
      previous = formatWitness({ ...entry, chain: chainName(entry) })
      // A text that is no witness was changed, which the hash of the entry tells.
      const witness = isKnown || entry.witness === null ? undefined : parseWitness(entry.witness)
      if (!witness) return
      const { chain, position, hash } = witness
      if (position <= (heads.get(chain)?.deleted ?? 0)) return
      const [seen] = yield* query<{ hash: string }>(
        `select hash from audit_entries where ${isOwner(chain)} and position = ?`,
        ...ownerValues(chain),
        position,
      )
      if (seen?.hash === hash) return
      found.push({ chain, kind: 'chain_set_back', position, entryId: null })
    },
  }
}

/** Condition on the owner of a chain, without `is`, whose meaning differs. */
const isOwner = (chain: string) => (chain === hostChain ? 'developer_id is null' : 'developer_id = ?')
const ownerValues = (chain: string) => (chain === hostChain ? [] : [chain])

/** Finds the first break of a chain in the order of its positions. */
function* findBreak(head: ChainHead, keys: AuditKeys): SqlSteps<AuditBreak | undefined> {
  let end: ChainEnd = { position: head.deleted, hash: head.deletedHash }
  let after = { position: positionMin, id: '' }
  for (;;) {
    const page = yield* query<ChainedEntry>(
      `select ${entryColumns} from audit_entries
       where ${isOwner(head.chain)} and (position, id) > (?, ?) order by position, id limit ${pageRows}`,
      ...ownerValues(head.chain),
      after.position,
      after.id,
    )
    for (const entry of page) {
      const found = findBreakAt(entry, end, head)
      if (found) return found
      end = entry
    }
    const last = page.at(-1)
    if (last === undefined || page.length < pageRows) return findBreakAtEnd(end, head, keys)
    after = last
  }
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
function* findMissingChains(heads: ReadonlyMap<string, ChainHead>): SqlSteps<AuditBreak[]> {
  const expected = new Set([...(yield* listOwners()), hostChain])
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
export function* listOwners(): SqlSteps<string[]> {
  const owners = yield* query<{ chain: string }>(
    'select id as chain from developers union select coalesce(developer_id, ?) from audit_entries',
    hostChain,
  )
  return owners.map(({ chain }) => chain)
}

export const listHeads = () => query<ChainHead>(`select ${headColumns} from audit_chains order by chain`)

export const pageRows = 1000
/** Smallest integer of both databases. */
const positionMin = -2_147_483_648

/** Lists the next entries in the order of their ids. */
export const listEntries = (after: string) =>
  query<ChainedEntry>(
    `select ${entryColumns} from audit_entries where id > ? order by id limit ${pageRows}`,
    after,
  )

const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0)
