import { createPrivateKey } from 'node:crypto'
import { SignJWT } from 'jose'
import { basicAuth } from '../kit/message-fields.ts'
import { uuidPattern, type ProviderNeeds } from '../kit/provider-kinds.ts'
import { isRsaPrivateKey } from '../kit/rsa-keys.ts'
import { secondMs } from '../../shared/durations.ts'

/** Settings of a Vonage application. Vonage reports to webhooks only what an application has sent. */
export const vonageApplicationFields = {
  applicationId: {
    description: 'the id of the Vonage application to send with; without it there are no receipts',
    pattern: uuidPattern,
    example: '78d335fa-323d-0114-9c3d-d6f0d48968cf',
  },
  privateKey: {
    description: 'the private key of that application, in PEM',
    secret: true,
    multiline: true,
    isValid: isRsaPrivateKey,
    example: '"""-----BEGIN PRIVATE KEY----- …"""',
  },
} as const

const lifetimeSeconds = 900
/** A token is replaced when it has less left. */
const leftMinSeconds = 60

/**
 * Creates the function that returns the header `authorization`: a JWT of the application (RS256), or key and secret of the account
 * without one (https://developer.vonage.com/en/getting-started/concepts/authentication).
 */
export function createVonageAuthorization(
  account: Record<'apiKey' | 'apiSecret', string> &
    Record<'applicationId' | 'privateKey', string | undefined>,
  { clock, world }: Pick<ProviderNeeds, 'clock' | 'world'>,
): () => Promise<string> {
  const { apiKey, apiSecret, applicationId, privateKey } = account
  if (applicationId === undefined || privateKey === undefined) {
    const basic = basicAuth(apiKey, apiSecret)
    return async () => basic
  }
  const key = createPrivateKey(privateKey)
  let token = { text: '', issuedAt: Infinity }

  return async () => {
    const now = Math.floor(clock.now() / secondMs)
    const age = now - token.issuedAt
    if (!(age >= 0 && age <= lifetimeSeconds - leftMinSeconds)) {
      const signed = await new SignJWT({ application_id: applicationId })
        .setProtectedHeader({ alg: 'RS256', typ: 'JWT' })
        .setIssuedAt(now)
        .setExpirationTime(now + lifetimeSeconds)
        .setJti(world.uuid())
        .sign(key)
      token = { text: `Bearer ${signed}`, issuedAt: now }
    }
    return token.text
  }
}
