import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose'
import { ServiceError } from '../domain/model/errors.ts'
import type { Clock } from '../domain/model/clock.ts'
import { dayMs, minuteMs } from '../shared/durations.ts'

/** Loads the complete key set; rejects if the provider is unreachable or its response is invalid. */
export type LoadKeys = () => Promise<JSONWebKeySet>

/** Keys of one load. */
export type KeySet = { find: JWTVerifyGetKey; loadedAtMs: number }

export type KeySource = {
  /** Finds the public key for a token's header, and the key set that contains it. */
  find(...token: Parameters<JWTVerifyGetKey>): Promise<{ key: FoundKey; set: KeySet }>
  /**
   * The currently trusted key set, refreshed if it is due. Each load creates a new object, even with equal
   * keys.
   */
  trustedKeySet(): Promise<KeySet>
}

type FoundKey = Awaited<ReturnType<JWTVerifyGetKey>>

/** How often keys are loaded, and how long they are trusted while loading fails. */
type KeyLimits = {
  /** Age at which the keys are loaded again. */
  refreshMs: number
  /** Window of `loadsMax`, and the minimum time between loads while they fail. */
  cooldownMs: number
  /**
   * Loads within `cooldownMs`; limits the load that unknown key ids put on the provider. More than one, so that a key that
   * the provider rotates right after a load is found at once.
   */
  loadsMax: number
  /** Age at which cached keys are no longer trusted if loading keeps failing. */
  staleMs: number
}

const providerKeyLimits: KeyLimits = {
  refreshMs: 10 * minuteMs,
  cooldownMs: 30_000,
  loadsMax: 5,
  staleMs: dayMs,
}

type KeySourceOptions = {
  load: LoadKeys
  clock: Clock
  limits?: KeyLimits
  /** Cached keys are dropped when this value changes. */
  version?: () => unknown
  /** Called with the cause of each failed load, for the log. */
  onLoadFailed?: (cause: unknown) => void
}

/**
 * Caches a provider's signing keys. The cache survives outages of the provider, and tokens with unknown key
 * ids cannot cause a flood of requests to it: at most five loads in 30 seconds, and one while they fail. jose's own
 * remote key set lacks both: it drops known keys after ten minutes of outage, and during one it fetches for every
 * unknown key id.
 *
 * Loads are single-flight. Only the first failed load blocks callers; while the provider is down, retries run
 * in the background of calls that cached keys can serve (stale-while-revalidate).
 *
 * Both methods throw UNAVAILABLE (IDENTITY_PROVIDER_UNAVAILABLE, `Retry-After`) if there are no trusted keys,
 * or if the key id is unknown and the provider cannot be asked: a 401 would make the caller discard a valid
 * token. A key id that the provider does not publish throws jose's JWKSNoMatchingKey.
 */
export function createKeySource(options: KeySourceOptions): KeySource {
  const { load, clock, limits = providerKeyLimits, version = () => undefined, onLoadFailed } = options
  let currentKeySet: KeySet | undefined
  let loadedVersion: unknown
  /** Times of the loads within the cooldown, the newest last. */
  let loadsMs: number[] = []
  let isFailing = false
  let loading: Promise<void> | undefined

  const reload = async () => {
    loadsMs.push(clock.now())
    loadedVersion = version()
    try {
      currentKeySet = { find: createLocalJWKSet(await load()), loadedAtMs: clock.now() }
      isFailing = false
    } catch (cause) {
      isFailing = true
      onLoadFailed?.(cause)
    }
  }
  /** Joins the load in flight, or starts one if the limits allow it; undefined if neither is possible. */
  const tryReload = () => {
    loadsMs = loadsMs.filter((at) => clock.now() - at < limits.cooldownMs)
    if (!loading && loadsMs.length < (isFailing ? 1 : limits.loadsMax)) {
      loading = reload().finally(() => {
        loading = undefined
      })
    }
    return loading
  }
  const waitMs = () => (loadsMs.at(-1) ?? -Infinity) + limits.cooldownMs - clock.now()
  const ageMs = () => (currentKeySet ? clock.now() - currentKeySet.loadedAtMs : Infinity)

  const trustedKeySet = async () => {
    if (loadedVersion !== version()) currentKeySet = undefined
    if (ageMs() >= limits.refreshMs) {
      const attempt = tryReload()
      if (!isFailing || ageMs() >= limits.staleMs) await attempt
    }
    if (!currentKeySet || ageMs() >= limits.staleMs) throw providerUnavailable(waitMs())
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
        if (isFailing) throw providerUnavailable(waitMs())
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
