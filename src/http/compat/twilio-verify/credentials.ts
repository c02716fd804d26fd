import type { JoinedCredentials } from '../../../domain/apps/authentication.ts'
import { readAccountSid } from './resources.ts'

/** Reads the credentials of HTTP Basic (RFC 7617): a sid of the application, and its joined secrets. */
export function readCredentials(header: string | undefined): JoinedCredentials {
  const encoded = /^basic +([A-Za-z0-9+/]+={0,2})$/i.exec(header ?? '')?.[1] ?? ''
  const [sid = '', joinedSecrets = ''] = Buffer.from(encoded, 'base64').toString('latin1').split(':')
  return { applicationId: readAccountSid(sid), joinedSecrets }
}
