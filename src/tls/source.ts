import type { Clock } from '../domain/model/clock.ts'
import type { LogFields } from '../log/log.ts'
import type { InspectedPair } from './pair.ts'

export type SourceNeeds = {
  log: Record<'info' | 'warn' | 'error', (msg: string, fields: LogFields) => void>
  /** Wall clock, comparable with the times of a certificate. */
  wall: Clock
  /** Called with the next certificate. @throws Error it cannot be served; the one before stays */
  onPair(inspected: InspectedPair): void
  /** Called after each change, and each that failed. */
  onOutcome(outcome: 'renewed' | 'failed'): void
}

/** Where certificates come from. */
export type CertificateSource = {
  /** Certificate of the start; undefined while there is none. */
  first: InspectedPair | undefined
  intervalMs: number
  /**
   * Looks whether there is, or must be, a new certificate; called every `intervalMs`, and one call at a time.
   *
   * @param isAsked the operator asked for it, so it does not wait for the time of the next attempt
   */
  look(isAsked: boolean): Promise<void>
  /** Aborts a look. */
  stop(): void
}
