import { and, asc, eq, notInArray } from 'drizzle-orm'
import type { FailureClass } from '../domain/model/delivery.ts'
import type { ProviderCircuitStore } from '../domain/store/provider-circuits.ts'
import type { QueryExecutor, Database } from './engine/database.ts'

/** Stores the open provider circuits, which operators can inspect. */
export function createProviderCircuitStore(
  database: Database,
  executor: QueryExecutor,
): ProviderCircuitStore {
  const { providerCircuits: circuits } = database.tables
  return {
    async put(circuit) {
      const { failure, openUntil } = circuit
      await executor
        .insert(circuits)
        .values(circuit)
        .onConflictDoUpdate({ target: [circuits.node, circuits.name], set: { failure, openUntil } })
    },
    async remove({ node, name }) {
      await executor.delete(circuits).where(and(eq(circuits.node, node), eq(circuits.name, name)))
    },
    async list() {
      const rows = await executor.select().from(circuits).orderBy(asc(circuits.name), asc(circuits.node))
      // `put` is the only writer.
      return rows.map((row) => ({ ...row, failure: row.failure as FailureClass }))
    },
    async clear(node) {
      await executor.delete(circuits).where(eq(circuits.node, node))
    },
    async clearAllBut(nodes) {
      await executor
        .delete(circuits)
        .where(nodes.length === 0 ? undefined : notInArray(circuits.node, [...nodes]))
    },
  }
}
