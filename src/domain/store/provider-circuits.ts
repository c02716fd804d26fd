import type { OpenCircuit } from '../model/delivery.ts'

/** Open circuits of each node, published for commands in other processes. Each node has circuits of its own. */
export type ProviderCircuitStore = {
  put(circuit: OpenCircuit): Promise<void>
  remove(circuit: Pick<OpenCircuit, 'node' | 'name'>): Promise<void>
  /** Lists the circuits by provider, then by node. */
  list(): Promise<OpenCircuit[]>
  /** Deletes the circuits of all other nodes. */
  clearAllBut(nodes: readonly string[]): Promise<void>
}
