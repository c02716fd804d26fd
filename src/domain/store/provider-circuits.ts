import type { OpenCircuit } from '../model/delivery.ts'

/** Open circuits, published by the running server for commands in other processes. */
export type ProviderCircuitStore = {
  put(circuit: OpenCircuit): Promise<void>
  remove(name: string): Promise<void>
  list(): Promise<OpenCircuit[]>
  clear(): Promise<void>
}
