import type { FailureClass } from '../model/delivery.ts'

/** A provider that gets no messages for a while, because it refused several in a row. */
export type RestingProvider = { name: string; failure: FailureClass; restingUntil: number }

/** What the running server says of its providers, for commands that run beside it. */
export type RestingProviderStore = {
  put(provider: RestingProvider): Promise<void>
  remove(name: string): Promise<void>
  list(): Promise<RestingProvider[]>
  clear(): Promise<void>
}
