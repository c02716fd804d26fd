import { hmac, timingSafeEqualBytes } from '../../shared/hmac.ts'
import type { Keys } from '../model/keys.ts'

const callbackToken = (keys: Keys, provider: string) =>
  hmac(keys.callback).update(provider).digest('base64url')

/**
 * Path of a provider's delivery-receipt callback. It contains a secret token, since not every provider signs
 * its callbacks; derived from the provider's name, so that it is stable across restarts and need not be
 * stored.
 */
export const callbackPath = (keys: Keys, provider: string) =>
  `/v1/callbacks/${provider}/${callbackToken(keys, provider)}`

/** Compares a callback token in constant time. */
export function isCallbackToken(keys: Keys, provider: string, token: string): boolean {
  const expected = Buffer.from(callbackToken(keys, provider))
  const actual = Buffer.from(token)
  return timingSafeEqualBytes(actual, expected)
}
