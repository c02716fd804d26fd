import { and, asc, desc, eq, isNull, lte, sql } from 'drizzle-orm'
import {
  chainName,
  firstHash,
  formatWitness,
  hashEntry,
  hostChain,
  isAuthenticHead,
  isSuccessor,
  signHead,
  type ChainedEntry,
  type ChainHead,
} from '../domain/model/audit-chain.ts'
import type { AuditEntry } from '../domain/model/audit.ts'
import type { Keys } from '../domain/model/keys.ts'
import type { Connection } from './engine/connection.ts'
import { unavailable } from './engine/errors.ts'
import { onTable, prepareFind } from './engine/on-table.ts'
import { orderByLimit } from './engine/query-params.ts'

/** A head with this MAC was never authentic. */
const missingMac = ''

export type AuditChains = ReturnType<typeof createAuditChains>

/**
 * Appends entries to the hash chains of the audit trail, and deletes old ones from their beginnings.
 *
 * Lock order: the head of a chain is locked after all other rows of its transaction, the event sequence included, and
 * heads in the order of their names, the installation's last. So a transaction that has a head waits for nothing but
 * heads that come later, and writers of different developers do not wait for each other. A head of the installation is
 * also locked when a chain starts, which it counts.
 *
 * A head with a wrong MAC keeps it when entries are appended or deleted: tampering stays visible, and the service goes on.
 */
export function createAuditChains(connection: Connection, keys: Pick<Keys, 'audit'>) {
  const { database, executor } = connection
  const { auditEntries: entries, auditChains: heads } = database.tables
  const entriesOf = (chain: string) =>
    chain === hostChain ? isNull(entries.developerId) : eq(entries.developerId, chain)
  const rows = onTable(executor, heads)
  const findHead = prepareFind(connection, heads, 'chain')
  const findNewest = database.prepare(() =>
    executor
      .select({ developerId: entries.developerId, position: entries.position, hash: entries.hash })
      .from(entries)
      .orderBy(orderByLimit(desc(entries.id), sql`1`)),
  )

  let added: AuditEntry[] = []

  /** Locks the head of a chain until the transaction ends. @throws UNAVAILABLE a newer key than ours wrote it */
  async function lockHead(chain: string): Promise<ChainHead | undefined> {
    // A head that another transaction inserts between the lock and the read would be read without the lock.
    if (!(await findHead({ chain }))) return undefined
    await database.lock(executor, heads, heads.chain, chain)
    const head = await findHead({ chain })
    // Another process has replaced the keys; this one is about to load the new ones.
    if (head && head.keyVersion > keys.audit.version) throw unavailable('AUDIT_KEY_NEWER')
    return head
  }

  /**
   * Starts a chain. The first entry about a developer is `account.created`; if it is another, the chain was deleted, and
   * the new one stays without a MAC.
   *
   * @returns undefined if another transaction started the chain first
   */
  async function startChain(chain: string, first: AuditEntry): Promise<ChainHead | undefined> {
    const empty = { entries: 0, lastHash: firstHash, deleted: 0, deletedHash: firstHash, chains: 0 }
    const signed = signHead(keys, { chain, startedAt: first.at, ...empty })
    const head =
      chain === hostChain || first.action === 'account.created' ? signed : { ...signed, mac: missingMac }
    return (await rows.insertMissing(head)) ? head : undefined
  }

  /** Appends to one chain. @returns the number of chains that started: 1 or 0 */
  async function append(
    chain: string,
    newEntries: readonly AuditEntry[],
    context: { witness: string | null; startedBefore: number; first: AuditEntry },
  ): Promise<number> {
    const existing = await lockHead(chain)
    const started = existing ? undefined : await startChain(chain, newEntries[0] ?? context.first)
    const head = existing ?? started ?? (await lockHead(chain))
    if (!head) throw new Error('the head of an audit chain has disappeared')
    const startedCount = started ? 1 : 0
    const rows: ChainedEntry[] = []
    for (const entry of newEntries) {
      const { position, hash } = rows.at(-1) ?? { position: head.entries, hash: head.lastHash }
      const row = { ...entry, position: position + 1, witness: context.witness }
      rows.push({ ...row, hash: hashEntry(row, hash) })
    }
    if (rows.length > 0) await executor.insert(entries).values(rows)
    const last = rows.at(-1)
    await changeHead(head, true, {
      ...(last && { entries: last.position, lastHash: last.hash }),
      ...(chain === hostChain && { chains: head.chains + context.startedBefore + startedCount }),
    })
    return startedCount
  }

  /** @param isIntact false: the entries of the chain were tampered with */
  async function changeHead(
    { keyVersion, mac, ...fields }: ChainHead,
    isIntact: boolean,
    changes: Partial<ChainHead>,
  ) {
    const isTrusted = isIntact && isAuthenticHead(keys, { keyVersion, mac, ...fields })
    const changed = { ...fields, ...changes }
    const signed = isTrusted ? signHead(keys, changed) : { ...changed, keyVersion, mac }
    await rows.update(signed, eq(heads.chain, fields.chain))
  }

  /** Deletes the entries of a chain up to a position. An entry that was tampered with is deleted, but not forgotten. */
  async function deleteUpTo(chain: string, position: number): Promise<void> {
    const head = await lockHead(chain)
    const condition = and(entriesOf(chain), lte(entries.position, position))
    const rows = await onTable(executor, entries).list(condition, asc(entries.position))
    const last = rows.at(-1)
    if (!last) return
    // The role of a node on PostgreSQL need not be allowed to delete entries.
    if (database.postgres) {
      const developer = chain === hostChain ? null : chain
      const deletion = sql`otpd_delete_audit_entries(${developer}, ${position}) as deleted`
      await executor.select({ deleted: sql`deleted` }).from(deletion)
    } else await executor.delete(entries).where(condition)
    if (!head) return
    const start = { position: head.deleted, hash: head.deletedHash }
    const isIntact = rows.every((row, index) => isSuccessor(row, rows[index - 1] ?? start))
    await changeHead(head, isIntact, { deleted: last.position, deletedHash: last.hash })
  }

  return {
    /** Adds an entry, to be written by `flush`. */
    add: (entry: AuditEntry) => void added.push(entry),

    /** Forgets the entries of a transaction that failed. */
    discard: () => void (added = []),

    /** Writes the added entries. It must be the last step of their transaction, because of the lock order. */
    async flush(): Promise<void> {
      const [first] = added
      if (!first) return
      const entriesByChain = Map.groupBy(added, chainName)
      added = []
      const [newest] = await findNewest()
      const newestChain = newest && chainName(newest)
      const witnessFor = (chain: string) =>
        newest && newestChain !== undefined && newestChain !== chain
          ? formatWitness({ ...newest, chain: newestChain })
          : null
      const context = { first, startedBefore: 0 }
      const hostEntries = entriesByChain.get(hostChain)
      entriesByChain.delete(hostChain)
      for (const [chain, chainEntries] of [...entriesByChain].toSorted(([a], [b]) => (a < b ? -1 : 1)))
        context.startedBefore += await append(chain, chainEntries, {
          ...context,
          startedBefore: 0,
          witness: witnessFor(chain),
        })
      if (hostEntries || context.startedBefore > 0)
        await append(hostChain, hostEntries ?? [], { ...context, witness: witnessFor(hostChain) })
    },

    /** Deletes a batch of the oldest entries, as `AuditStore.deleteOldest`. */
    async deleteOldest(until: number, batchSize: number): Promise<boolean> {
      const oldest = await executor
        .select({ developerId: entries.developerId, position: entries.position, at: entries.at })
        .from(entries)
        .orderBy(asc(entries.id))
        .limit(batchSize)
      const expired = oldest.filter(({ at }) => at <= until)
      const lastPositions = new Map<string, number>()
      for (const entry of expired) {
        const chain = chainName(entry)
        lastPositions.set(chain, Math.max(lastPositions.get(chain) ?? 0, entry.position))
      }
      for (const [chain, position] of [...lastPositions].toSorted(([a], [b]) => (a < b ? -1 : 1)))
        await deleteUpTo(chain, position)
      return expired.length > 0
    },
  }
}
