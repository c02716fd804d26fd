import type { FailureClass } from '../model/delivery.ts'

/** A provider whose circuit is open: it gets no messages until `openUntil`. */
export type OpenCircuit = { name: string; failure: FailureClass; openUntil: number }

/** Open circuits, published by the running server for commands in other processes. */
export type ProviderCircuitStore = {
  put(circuit: OpenCircuit): Promise<void>
  remove(name: string): Promise<void>
  list(): Promise<OpenCircuit[]>
  clear(): Promise<void>
}
