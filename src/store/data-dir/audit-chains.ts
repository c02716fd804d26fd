import type { Database as SqliteConnection } from 'bun:sqlite'
import {
  chainName,
  firstHash,
  hashEntry,
  hostChain,
  signHead,
  type ChainHead,
} from '../../domain/model/audit-chain.ts'
import { runOnSqlite } from '../engine/sql-steps.ts'
import type { OnStep } from '../../shared/progress.ts'
import type { Keys } from '../../domain/model/keys.ts'
import {
  chainStart,
  listEntries,
  listOwners,
  pageRows,
  verifyChains,
  type AuditVerification,
} from './audit-verification.ts'

/**
 * Numbers and hashes the entries of a database of 0.1.0, and starts a chain for each developer and for the installation.
 * Runs in the transaction of the migration that adds the chains, and never again: from then on, an entry without a hash
 * is a break.
 */
export function startAuditChains(connection: SqliteConnection, keys: Pick<Keys, 'audit'>, now: number): void {
  const update = connection.prepare('update audit_entries set position = ?, hash = ? where id = ?')
  const ends = new Map<string, typeof chainStart>()
  for (let after = ''; ;) {
    const page = runOnSqlite(connection, listEntries(after))
    for (const entry of page) {
      const chain = chainName(entry)
      const end = ends.get(chain) ?? chainStart
      const position = end.position + 1
      const hash = hashEntry({ ...entry, position }, end.hash)
      update.run(position, hash, entry.id)
      ends.set(chain, { position, hash })
    }
    const last = page.at(-1)
    if (last === undefined || page.length < pageRows) break
    after = last.id
  }
  update.finalize()
  const chains = new Set([...runOnSqlite(connection, listOwners()), hostChain])
  for (const chain of chains) {
    const { position, hash } = ends.get(chain) ?? chainStart
    const start = { chain, entries: position, lastHash: hash, deleted: 0, deletedHash: firstHash }
    const count = chain === hostChain ? chains.size : 0
    insertHead(connection, signHead(keys, { ...start, chains: count, startedAt: now }))
  }
}

/** Verifies all chains of a migrated database in one snapshot, and reads nothing else. */
export function verifyAuditTrail(
  connection: SqliteConnection,
  keys: Pick<Keys, 'audit'>,
  onStep?: OnStep,
): AuditVerification {
  connection.run('BEGIN')
  try {
    return runOnSqlite(connection, verifyChains(keys, onStep))
  } finally {
    connection.run('ROLLBACK')
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
