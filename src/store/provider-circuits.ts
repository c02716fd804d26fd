import { and, asc, eq, notInArray } from 'drizzle-orm'
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
    list: () => circuits.list(undefined, asc(table.name), asc(table.node)),
    clearAllBut: (nodes) =>
      circuits.delete(nodes.length === 0 ? undefined : notInArray(table.node, [...nodes])),
  }
}
