import { createLocalJWKSet, exportJWK, generateKeyPair, SignJWT } from 'jose'
import type { Clock } from '../domain/model/clock.ts'
import { firebaseIssuer, type ProofIssuers } from './firebase-proofs.ts'

const issuer = firebaseIssuer('otpd-dev')
const keyId = 'otpd-dev'
const lifetimeSeconds = 3600

/** Issues tokens for any phone number, as Firebase does for that of a SIM card. */
export type TestProofs = ProofIssuers & {
  issue(claims: { phone: string; nonce?: string | undefined }): Promise<string>
}

/**
 * Creates an issuer of test proofs for the development mode, so that a backend is built without a telephone. Its key is
 * made at the first use and never stored.
 *
 * @param newTokenId makes each token another one
 */
export function createTestProofs(clock: Clock, newTokenId: () => string): TestProofs {
  let made: ReturnType<typeof makeKey> | undefined
  const key = () => (made ??= makeKey())
  return {
    issuers: [issuer],
    keys: {
      find: async (...token) => {
        const { find } = await key()
        return { key: await find(...token), set: { find, loadedAtMs: clock.now() } }
      },
    },
    async issue({ phone, nonce }) {
      const { privateKey } = await key()
      const nowSeconds = Math.floor(clock.now() / 1000)
      const claims = { jti: newTokenId(), ...(nonce !== undefined && { nonce }) }
      return await new SignJWT(claims)
        .setProtectedHeader({ alg: 'ES256', typ: 'JWT', kid: keyId })
        .setIssuer(issuer)
        .setAudience([issuer])
        .setSubject(phone)
        .setIssuedAt(nowSeconds)
        .setExpirationTime(nowSeconds + lifetimeSeconds)
        .sign(privateKey)
    },
  }
}

async function makeKey() {
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  const jwk = { ...(await exportJWK(publicKey)), kid: keyId, alg: 'ES256', use: 'sig' }
  return { privateKey, find: createLocalJWKSet({ keys: [jwk] }) }
}
