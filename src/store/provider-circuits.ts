import { and, asc, eq, notInArray } from 'drizzle-orm'
import type { FailureClass } from '../domain/model/delivery.ts'
import type { ProviderCircuitStore } from '../domain/store/provider-circuits.ts'
import type { Connection } from './engine/connection.ts'
import { onTable } from './engine/on-table.ts'

/** Stores the open provider circuits, which operators can inspect. */
export function createProviderCircuitStore({ database, executor }: Connection): ProviderCircuitStore {
  const { providerCircuits: table } = database.tables
  const circuits = onTable(executor, table)
  return {
    async put(circuit) {
      const { failure, openUntil } = circuit
      await circuits.put(circuit, { target: [table.node, table.name], set: { failure, openUntil } })
    },
    remove: ({ node, name }) => circuits.delete(and(eq(table.node, node), eq(table.name, name))),
    async list() {
      const rows = await circuits.list(undefined, asc(table.name), asc(table.node))
      // `put` is the only writer.
      return rows.map((row) => ({ ...row, failure: row.failure as FailureClass }))
    },
    clearAllBut: (nodes) =>
      circuits.delete(nodes.length === 0 ? undefined : notInArray(table.node, [...nodes])),
  }
}
