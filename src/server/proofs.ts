import { createRemoteKeys } from '../auth/discovery.ts'
import { createFirebaseProofs, firebaseIssuer, firebaseKeysUrl } from '../auth/firebase-proofs.ts'
import { createKeySource } from '../auth/jwks.ts'
import { createTestProofs, type TestProofs } from '../auth/test-proofs.ts'
import type { Config } from '../config/config.ts'
import type { Clock } from '../domain/model/clock.ts'
import type { NewId } from '../domain/model/ids.ts'
import type { CheckProof } from '../domain/model/proof.ts'
import type { World } from '../world/world.ts'

/** Creates the check of proofs by the configured issuers, and in development mode by one for tests. */
export function createProofs(
  { proofs, dev }: Pick<Config, 'dev' | 'proofs'>,
  needs: {
    /** Times the loads of keys: never falls. */
    clock: Clock
    /** Compared with the times of tokens. */
    wall: Clock
    world: World
    newId: NewId
    onKeysFailed: ((owner: 'Firebase', cause: unknown) => void) | undefined
  },
): { check: CheckProof; test: TestProofs | undefined } {
  const { clock, wall, world, newId, onKeysFailed } = needs
  const issuers = proofs.firebaseProjects.map(firebaseIssuer)
  const load = createRemoteKeys({ issuer: firebaseKeysUrl, jwksUri: firebaseKeysUrl, world })
  const keys = createKeySource({
    load,
    clock,
    onLoadFailed: (cause) => onKeysFailed?.('Firebase', cause),
  })
  const test = dev ? createTestProofs(wall, () => newId('req')) : undefined
  const trusted = [...(issuers.length > 0 ? [{ issuers, keys }] : []), ...(test ? [test] : [])]
  return { check: createFirebaseProofs(trusted, wall), test }
}
