import type { FailureClass } from '../model/delivery.ts'

/** A provider that gets no messages for a while, because it refused several in a row. */
export type OpenCircuit = { name: string; failure: FailureClass; openUntil: number }

/** What the running server says of its providers, for commands that run beside it. */
export type ProviderCircuitStore = {
  put(circuit: OpenCircuit): Promise<void>
  remove(name: string): Promise<void>
  list(): Promise<OpenCircuit[]>
  clear(): Promise<void>
}
