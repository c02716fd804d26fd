import type { Failure } from '../domain/model/delivery.ts'
import type { SendOutcome } from './kit/provider.ts'

/** So many failures in a row are no accident of single messages. */
const consecutiveFailuresMax = 5
const backoffMinMs = 5_000
const backoffMaxMs = 5 * 60_000
/** Where a provider asks for a pause and does not say for how long. */
const throttlePauseMs = 1_000

/** What speaks against the provider as a whole, and not against a number, a text or a country. */
const providerFailureClasses: ReadonlySet<string> = new Set([
  'provider_down',
  'auth_failed',
  'no_credit',
  // It hangs: nobody knows of the message, and everybody waited for nothing.
  'uncertain',
])

export type OpenState = { openUntilMs: number; failure: Failure }

export type CircuitBreaker = {
  /** Why the provider is not to be asked now. */
  openState(now: number): OpenState | undefined
  /** Called before a message is offered: of those that follow a rest only one goes at a time, until it is known. */
  beginAttempt(now: number): void
  /** @returns what changed by it */
  recordOutcome(outcome: SendOutcome, now: number): 'open' | 'closed' | undefined
}

/**
 * Lets a provider rest that fails again and again: for 5 s, then twice as long each time, up to 5 minutes. After a rest
 * one message tries. A provider that asks for a pause gets it without that.
 */
export function createCircuitBreaker(): CircuitBreaker {
  let consecutiveFailures = 0
  let backoffMs = backoffMinMs
  let openCircuit: OpenState | undefined
  let isProbing = false

  return {
    openState(now) {
      if (!openCircuit) return undefined
      if (openCircuit.openUntilMs > now) return openCircuit
      return isProbing ? { ...openCircuit, openUntilMs: now + throttlePauseMs } : undefined
    },

    beginAttempt(now) {
      if (openCircuit && openCircuit.openUntilMs <= now) isProbing = true
    },

    recordOutcome(outcome, now) {
      isProbing = false
      const failure = outcome.kind === 'accepted' ? undefined : outcome.failure
      if (failure?.class === 'throttled') {
        const pauseMs = (failure.retryAfterSeconds ?? 0) * 1000 || throttlePauseMs
        openCircuit = { openUntilMs: now + Math.min(backoffMaxMs, pauseMs), failure }
        return 'open'
      }
      if (!failure || !providerFailureClasses.has(failure.class)) {
        const transition = openCircuit ? ('closed' as const) : undefined
        consecutiveFailures = 0
        backoffMs = backoffMinMs
        openCircuit = undefined
        return transition
      }
      if (++consecutiveFailures < consecutiveFailuresMax) return undefined
      // Those that were under way when the rest began prove nothing new.
      if (openCircuit && openCircuit.openUntilMs > now) return undefined
      openCircuit = { openUntilMs: now + backoffMs, failure }
      backoffMs = Math.min(backoffMaxMs, backoffMs * 2)
      return 'open'
    },
  }
}
