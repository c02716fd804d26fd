import type { Failure } from '../domain/model/delivery.ts'
import type { SendOutcome } from './kit/provider.ts'

/** So many failures in a row are no accident of single messages. */
const failuresMax = 5
const restMinMs = 5_000
const restMaxMs = 5 * 60_000
/** Where a provider asks for a pause and does not say for how long. */
const throttleMs = 1_000

/** What speaks against the provider as a whole, and not against a number, a text or a country. */
const faultsOfProviders: ReadonlySet<string> = new Set([
  'provider_down',
  'auth_failed',
  'no_credit',
  // It hangs: nobody knows of the message, and everybody waited for nothing.
  'uncertain',
])

export type Rest = { untilMs: number; failure: Failure }

export type Breaker = {
  /** Why the provider is not to be asked now. */
  rest(now: number): Rest | undefined
  /** Called before a message is offered: of those that follow a rest only one goes at a time, until it is known. */
  begin(now: number): void
  /** @returns what changed by it */
  end(outcome: SendOutcome, now: number): 'rests' | 'works' | undefined
}

/**
 * Lets a provider rest that fails again and again: for 5 s, then twice as long each time, up to 5 minutes. After a rest
 * one message tries. A provider that asks for a pause gets it without that.
 */
export function createBreaker(): Breaker {
  let failures = 0
  let restMs = restMinMs
  let resting: Rest | undefined
  let probing = false

  return {
    rest(now) {
      if (!resting) return undefined
      if (resting.untilMs > now) return resting
      return probing ? { ...resting, untilMs: now + throttleMs } : undefined
    },

    begin(now) {
      if (resting && resting.untilMs <= now) probing = true
    },

    end(outcome, now) {
      probing = false
      const failure = outcome.kind === 'accepted' ? undefined : outcome.failure
      if (failure?.class === 'throttled') {
        const pauseMs = (failure.retryAfterSeconds ?? 0) * 1000 || throttleMs
        resting = { untilMs: now + Math.min(restMaxMs, pauseMs), failure }
        return 'rests'
      }
      if (!failure || !faultsOfProviders.has(failure.class)) {
        const changed = resting ? ('works' as const) : undefined
        failures = 0
        restMs = restMinMs
        resting = undefined
        return changed
      }
      if (++failures < failuresMax) return undefined
      // Those that were under way when the rest began prove nothing new.
      if (resting && resting.untilMs > now) return undefined
      resting = { untilMs: now + restMs, failure }
      restMs = Math.min(restMaxMs, restMs * 2)
      return 'rests'
    },
  }
}
