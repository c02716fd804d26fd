import { afterAll, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { jwtVerify } from 'jose'
import { createVonageAuthorization } from '../../../src/delivery/providers/vonage-authorization.ts'
import { vonageMessages } from '../../../src/delivery/providers/vonage-messages.ts'
import { vonageVerify } from '../../../src/delivery/providers/vonage-verify.ts'
import { findSettingFaults } from '../../../src/delivery/kit/provider-kinds.ts'
import { systemWorld } from '../../../src/world/system.ts'
import { testClock } from '../../helpers/clock.ts'
import { makeProvider, sendTo, startProviderServer } from '../../helpers/provider-server.ts'

const server = startProviderServer()
afterAll(server.stop)

const keys = generateKeyPairSync('rsa', { modulusLength: 2048 })
const privateKey = String(keys.privateKey.export({ type: 'pkcs8', format: 'pem' }))
const applicationId = '78d335fa-323d-0114-9c3d-d6f0d48968cf'
const account = { apiKey: 'abcd1234', apiSecret: 'secret' }

const claimsOf = async (header: string, at: number) => {
  const token = header.replace(/^Bearer /, '')
  const { payload } = await jwtVerify(token, keys.publicKey, {
    algorithms: ['RS256'],
    typ: 'JWT',
    currentDate: new Date(at),
  })
  return payload
}

test('an application signs in with a JWT, which is replaced before it expires or when the clock is set back', async () => {
  const clock = testClock()
  const authorize = createVonageAuthorization(
    { ...account, applicationId, privateKey },
    { clock, world: systemWorld },
  )
  const first = await authorize()
  const iat = Math.floor(clock.now() / 1000)
  expect(await claimsOf(first, clock.now())).toEqual({
    application_id: applicationId,
    iat,
    exp: iat + 900,
    jti: expect.stringMatching(/^[0-9a-f-]{36}$/),
  })
  clock.advance(840_000)
  expect(await authorize()).toBe(first)
  clock.advance(1_000)
  const second = await authorize()
  expect(await claimsOf(second, clock.now())).toMatchObject({ iat: iat + 841 })
  clock.advance(-600_000)
  expect(await claimsOf(await authorize(), clock.now())).toMatchObject({ iat: iat + 241 })
})

test.each([
  ['vonage-messages', vonageMessages, { from: 'Acme' }, { message_uuid: 'm1' }],
  ['vonage-verify', vonageVerify, { brand: 'Acme' }, { request_id: 'r1' }],
] as const)('%s sends as the application if it has one', async (_, kind, settings, response) => {
  server.setResponse(202, response)
  const withApplication = { ...account, ...settings, applicationId, privateKey, baseUrl: server.url }
  expect(await sendTo(makeProvider(kind, withApplication))).toMatchObject({ kind: 'accepted' })
  const header = server.takeCall().headers['authorization'] ?? ''
  expect(await claimsOf(header, testClock().now())).toMatchObject({ application_id: applicationId })
})

test.each([
  ['that is damaged', privateKey.replace('MII', 'AAA')],
  [
    'of another kind',
    String(generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' })),
  ],
  ['that is public', String(keys.publicKey.export({ type: 'spki', format: 'pem' }))],
])('a key %s is refused', (_, key) => {
  const values = { ...account, brand: 'Acme', applicationId, privateKey: key }
  expect(findSettingFaults(vonageVerify, values)).toMatchObject([
    { name: 'privateKey', fault: 'does not look right' },
  ])
})
