import { timingSafeEqual } from 'node:crypto'
import { hmac, type Keys } from '../model/keys.ts'

const callbackToken = (keys: Keys, provider: string) =>
  hmac(keys.callback).update(provider).digest('base64url')

/**
 * Where a provider tells of receipts. Nobody else can find it, as not every provider signs what it posts; derived from
 * its name, so that it stays the same over restarts and need not be kept.
 */
export const callbackPath = (keys: Keys, provider: string) =>
  `/v1/callbacks/${provider}/${callbackToken(keys, provider)}`

/** Takes as long for a token that is nearly right as for one that is not. */
export function isCallbackToken(keys: Keys, provider: string, token: string): boolean {
  const expected = Buffer.from(callbackToken(keys, provider))
  const actual = Buffer.from(token)
  return actual.length === expected.length && timingSafeEqual(actual, expected)
}
