import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose'
import { ServiceError } from '../domain/model/errors.ts'
import type { Clock } from '../domain/model/clock.ts'

/** Loads the whole key set afresh; throws when the provider cannot be asked or answers nonsense. */
export type LoadKeys = () => Promise<JSONWebKeySet>

/** The keys of one load. */
export type KeySet = { find: JWTVerifyGetKey; loadedAtMs: number }

export type KeySource = {
  /** Finds the public key that a token names, and tells of which set it is. */
  find(...token: Parameters<JWTVerifyGetKey>): Promise<{ key: FoundKey; set: KeySet }>
  /** The set that is trusted now, loaded first where it is time: another one after each load, whatever is in it. */
  trustedKeySet(): Promise<KeySet>
}

type FoundKey = Awaited<ReturnType<JWTVerifyGetKey>>

/** How often keys may be loaded, and how long those already known are trusted without it. */
export type KeyLimits = {
  /** Age at which the keys are loaded again. */
  refreshMs: number
  /** Least time between two loads, failed ones included: what an unknown key id may cost the provider. */
  cooldownMs: number
  /** Age at which known keys stop being trusted when every load fails. */
  staleMs: number
}

export const providerKeyLimits: KeyLimits = {
  refreshMs: 600_000,
  cooldownMs: 30_000,
  staleMs: 24 * 3_600_000,
}

export type KeySourceOptions = {
  load: LoadKeys
  clock: Clock
  limits?: KeyLimits
  /** Told of every load that failed, for the server's log. */
  onLoadFailed?: (cause: unknown) => void
}

/**
 * A cache of a provider's signing keys that outlives the provider's outages and that strangers cannot turn
 * into a flood against it. jose's own remote set does neither: it forgets known keys after ten minutes of
 * outage, and during one it fetches for every unknown key id.
 *
 * Concurrent calls share one load. Only the first failed load keeps callers waiting; while the provider is
 * known to be down the next tries run beside the calls that known keys can serve.
 *
 * Both members throw UNAVAILABLE (IDENTITY_PROVIDER_UNAVAILABLE, `Retry-After`) when no key can be
 * had, or when the key is unknown and the provider cannot be asked whether it is new: a 401 would make the
 * caller throw a good token away. A key that the provider does not publish is jose's JWKSNoMatchingKey.
 */
export function createKeySource(options: KeySourceOptions): KeySource {
  const { load, clock, limits = providerKeyLimits, onLoadFailed } = options
  let currentKeySet: KeySet | undefined
  let lastAttemptMs = -Infinity
  let isFailing = false
  let loading: Promise<void> | undefined

  const reload = async () => {
    lastAttemptMs = clock.now()
    try {
      currentKeySet = { find: createLocalJWKSet(await load()), loadedAtMs: clock.now() }
      isFailing = false
    } catch (cause) {
      isFailing = true
      onLoadFailed?.(cause)
    }
  }
  /** Joins the load under way or starts one if the gap allows; undefined where neither is possible. */
  const tryReload = () => {
    if (!loading && clock.now() - lastAttemptMs >= limits.cooldownMs) {
      loading = reload().finally(() => {
        loading = undefined
      })
    }
    return loading
  }
  const ageMs = () => (currentKeySet ? clock.now() - currentKeySet.loadedAtMs : Infinity)

  const trustedKeySet = async () => {
    if (ageMs() >= limits.refreshMs) {
      const attempt = tryReload()
      if (!isFailing || ageMs() >= limits.staleMs) await attempt
    }
    if (!currentKeySet || ageMs() >= limits.staleMs)
      throw providerUnavailable(lastAttemptMs + limits.cooldownMs - clock.now())
    return currentKeySet
  }

  return {
    trustedKeySet,
    async find(...token) {
      const set = await trustedKeySet()
      try {
        return { key: await set.find(...token), set }
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
        await tryReload()
        const reloaded = currentKeySet
        if (reloaded && reloaded !== set) return { key: await reloaded.find(...token), set: reloaded }
        if (isFailing) throw providerUnavailable(lastAttemptMs + limits.cooldownMs - clock.now())
        throw error
      }
    },
  }
}

function providerUnavailable(waitMs: number): ServiceError {
  return new ServiceError('UNAVAILABLE', 'The identity provider cannot be reached. Try again shortly.', {
    reason: 'IDENTITY_PROVIDER_UNAVAILABLE',
    retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)),
  })
}
