import type { Failure } from '../domain/model/delivery.ts'
import type { SendOutcome } from './kit/provider.ts'
import { minuteMs } from '../shared/durations.ts'

const consecutiveFailuresMax = 5
const backoffMinMs = 5_000
const backoffMaxMs = 5 * minuteMs
/** Pause after a `throttled` failure that names no delay. */
const throttlePauseMs = 1_000
/** How long other messages wait before they look again whether the probe has ended. */
const probePollMs = 1_000

/** Failures that count against the provider as a whole, not against one number, text or country. */
const providerFailureClasses: ReadonlySet<string> = new Set([
  'provider_down',
  'auth_failed',
  'no_credit',
  // The provider hangs: the fate of the message is unknown, and its caller waited for the whole timeout.
  'uncertain',
])

/**
 * ```mermaid
 * stateDiagram-v2
 *   [*] --> closed
 *   [*] --> half-open: it was open when the server ended
 *   closed --> open: 5 consecutive failures, or throttled
 *   open --> half-open: backoff elapsed
 *   half-open --> closed: probe succeeds
 *   half-open --> open: probe fails
 *   open --> closed: an earlier send succeeds late, unless the provider asked for the pause
 * ```
 */
type CircuitState = 'closed' | 'open' | 'half-open'

/** A change that an outcome causes; `half-open` begins by itself when the backoff has elapsed. */
export type CircuitTransition = Exclude<CircuitState, 'half-open'>

export type OpenState = { openUntilMs: number; failure: Failure }

export type CircuitBreaker = {
  /** Why the provider must not be tried now, and until when; undefined when it may be. */
  openState(now: number): OpenState | undefined
  /** Neither open nor half-open. */
  isClosed(): boolean
  /**
   * Call before each send, and `recordOutcome` after it: while the circuit is half-open, only one send (the
   * probe) runs at a time.
   */
  beginSend(now: number): void
  /**
   * Opens the circuit because the provider's connection could not be made, so that messages do not wait for it; or until now,
   * so that the next message is a probe.
   */
  open(failure: Failure, untilMs: number): void
  /** Call after each send, or when the provider's connection was made. @returns the transition that it caused, if any */
  recordOutcome(outcome: SendOutcome, now: number): CircuitTransition | undefined
}

/**
 * Circuit breaker: opens after 5 consecutive failures, backs off 5 s doubling to 5 min, then half-opens for
 * one probe.
 *
 * A `throttled` failure opens it at once, for as long as the provider asks (at most 5 min), without raising
 * the backoff, unless only the phone number had too many messages.
 */
export function createCircuitBreaker(): CircuitBreaker {
  let consecutiveFailures = 0
  let backoffMs = backoffMinMs
  let openCircuit: OpenState | undefined
  let isProbing = false

  const stateAt = (now: number): CircuitState => {
    if (!openCircuit) return 'closed'
    return openCircuit.openUntilMs > now ? 'open' : 'half-open'
  }

  return {
    openState(now) {
      if (stateAt(now) !== 'half-open') return openCircuit
      return openCircuit && isProbing ? { ...openCircuit, openUntilMs: now + probePollMs } : undefined
    },

    isClosed: () => openCircuit === undefined,

    beginSend(now) {
      if (stateAt(now) === 'half-open') isProbing = true
    },

    open(failure, openUntilMs) {
      openCircuit = { openUntilMs, failure }
    },

    recordOutcome(outcome, now) {
      isProbing = false
      const failure = outcome.kind === 'accepted' ? undefined : outcome.failure
      const isOpen = stateAt(now) === 'open'
      if (failure?.class === 'throttled' && failure.at !== 'number') {
        const pauseMs = (failure.retryAfterSeconds ?? 0) * 1000 || throttlePauseMs
        const openUntilMs = now + Math.min(backoffMaxMs, pauseMs)
        // An earlier send that ends late must not shorten a longer pause.
        if (isOpen && openCircuit && openCircuit.openUntilMs >= openUntilMs) return undefined
        openCircuit = { openUntilMs, failure }
        return 'open'
      }
      if (!failure || !providerFailureClasses.has(failure.class)) {
        consecutiveFailures = 0
        backoffMs = backoffMinMs
        // A pause that the provider asked for does not end because it took a message before.
        if (!openCircuit || (isOpen && openCircuit.failure.class === 'throttled')) return undefined
        openCircuit = undefined
        return 'closed'
      }
      if (++consecutiveFailures < consecutiveFailuresMax) return undefined
      // Sends that were in flight when the circuit opened must not extend the backoff.
      if (isOpen) return undefined
      openCircuit = { openUntilMs: now + backoffMs, failure }
      backoffMs = Math.min(backoffMaxMs, backoffMs * 2)
      return 'open'
    },
  }
}
