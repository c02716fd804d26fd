import { expect, test } from 'bun:test'
import { SignJWT } from 'jose'
import { firebaseIssuer } from '../../src/auth/firebase-proofs.ts'
import { createProofs } from '../../src/server/proofs.ts'
import { makeSigningKey, type SigningKey } from '../helpers/oidc.ts'
import { testWorld } from '../helpers/world.ts'

const startMs = Date.UTC(2026, 10, 20, 12)
const hourMs = 3_600_000
const issuer = firebaseIssuer('123456789012')

test('a system clock that is set back does not keep a withdrawn key', async () => {
  let nowMs = startMs
  let wallAheadMs = 5 * hourMs
  const withdrawn = await makeSigningKey('ES256', 'g1')
  let key = withdrawn
  const clock = { now: () => nowMs }
  const wall = { now: () => nowMs + wallAheadMs }
  const fetch = async () => Response.json({ keys: [key.publicJwk] })
  const { check } = createProofs(
    { dev: false, proofs: { firebaseProjects: ['123456789012'] } },
    { clock, wall, world: { ...testWorld, fetch }, newId: () => '', onKeysFailed: undefined },
  )
  const prove = async (by: SigningKey) => {
    const seconds = Math.floor(wall.now() / 1000)
    const token = await new SignJWT({ sub: '+14155550100', iat: seconds, exp: seconds + 3600, iss: issuer })
      .setAudience([issuer])
      .setProtectedHeader({ alg: 'ES256', typ: 'JWT', kid: by.kid })
      .sign(by.privateKey)
    return check({ type: 'firebase-pnv', token, nonce: undefined })
  }
  const accepted = { phone: '+14155550100' }
  expect(await prove(withdrawn)).toMatchObject(accepted)
  wallAheadMs = 0
  key = await makeSigningKey('ES256', 'g2')
  nowMs += 600_000
  expect(await prove(withdrawn)).toMatchObject({ rejected: { reason: 'PROOF_SIGNATURE' } })
  expect(await prove(key)).toMatchObject(accepted)
})
