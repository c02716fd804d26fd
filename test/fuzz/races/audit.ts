import { expect } from 'bun:test'
import { asc } from 'drizzle-orm'
import { recordAudit } from '../../../src/domain/accounts/audit.ts'
import {
  chainName,
  firstHash,
  isAuthenticHead,
  isSuccessor,
  type ChainedEntry,
} from '../../../src/domain/model/audit-chain.ts'
import { hostOrigin, type AuditAction } from '../../../src/domain/model/audit.ts'
import type { Database } from '../../../src/store/engine/database.ts'
import { testKeys } from '../../helpers/keys.ts'
import { createTestService } from '../../helpers/service.ts'
import { concurrentCalls, runConcurrently, type Race } from './race.ts'

/**
 * Reads the length of each chain. @throws Error a chain is broken, or its head says something else
 *
 * @param authentic chains whose heads must be authentic. Those of other tests start without the creation of an account.
 */
async function readChainLengths(
  database: Database,
  authentic: readonly string[],
): Promise<Map<string, number>> {
  const { auditEntries, auditChains } = database.tables
  const rows = await database.read.select().from(auditEntries).orderBy(asc(auditEntries.position))
  // Written from an AuditAction.
  const entries = rows.map((row): ChainedEntry => ({ ...row, action: row.action as AuditAction }))
  const heads = await database.read.select().from(auditChains)
  const entriesByChain = Map.groupBy(entries, chainName)
  for (const head of heads) {
    let last = { position: 0, hash: firstHash }
    for (const entry of entriesByChain.get(head.chain) ?? []) {
      expect(isSuccessor(entry, last)).toBe(true)
      last = entry
    }
    expect({ entries: head.entries, lastHash: head.lastHash }).toEqual({
      entries: last.position,
      lastHash: last.hash,
    })
    if (authentic.includes(head.chain)) expect(isAuthenticHead(testKeys, head)).toBe(true)
  }
  expect(heads.find(({ chain }) => chain === 'host')?.chains ?? 0).toBe(heads.length)
  return new Map(heads.map(({ chain, entries: count }) => [chain, count]))
}

export const auditRaces: Race[] = [
  {
    name: `${concurrentCalls} changes of new developers and of the installation: every chain holds all its entries`,
    async open(database) {
      const service = await createTestService({ database })
      const { store, clock } = service
      const { newId } = service.services
      const record = (developerIds: Array<string | null>, lockFirst: boolean) =>
        store.write(async (tx) => {
          const [locked] = developerIds.filter((id) => id !== null)
          if (locked !== undefined && lockFirst) await tx.developers.lock(locked)
          for (const developerId of developerIds) {
            const operator = { developerId, actorId: null, origin: hostOrigin }
            await recordAudit(tx, newId, operator, { action: 'account.created' }, clock.now())
          }
          // As a change that locks its own rows after it has recorded its entry.
          if (locked !== undefined && !lockFirst) await tx.developers.lock(locked)
        })
      return {
        close: service.dispose,
        async round(_, random) {
          // Created without an entry, so that the calls race for the start of their chains too.
          const ids = await Promise.all(
            [1, 2, 3].map(async () => (await service.createDeveloper()).developer.id),
          )
          const before = await readChainLengths(database, ids)
          const recorded = new Map<string, number>()
          await runConcurrently(concurrentCalls, random, (index) => {
            const owners = [...ids, null].filter(() => random() < 0.4).toSorted(() => random() - 0.5)
            for (const owner of owners) {
              const chain = owner ?? 'host'
              recorded.set(chain, (recorded.get(chain) ?? 0) + 1)
            }
            return record(owners, index % 2 === 0)
          })
          const after = await readChainLengths(database, ids)
          for (const [chain, count] of recorded)
            expect((after.get(chain) ?? 0) - (before.get(chain) ?? 0)).toBe(count)
        },
      }
    },
  },
]
