import { createHmac } from 'node:crypto'
import { isSameBytes } from './signing.ts'

/**
 * What stands in the callback URL of each provider, so that nobody else can find it: not every provider signs what it
 * posts. Derived from its name, so that it stays the same over restarts and need not be kept.
 *
 * @param key a sub-key of the master key
 */
export function createCallbackTokens(key: Uint8Array) {
  const tokenOf = (provider: string) => createHmac('sha256', key).update(provider).digest('base64url')
  return {
    tokenOf,
    isToken: (provider: string, token: string) =>
      isSameBytes(Buffer.from(tokenOf(provider)), Buffer.from(token)),
  }
}
