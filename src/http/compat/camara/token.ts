import { tokenSeconds, type AppAuth, type JoinedCredentials } from '../../../domain/apps/authentication.ts'
import { ServiceError } from '../../../domain/model/errors.ts'
import { readForm } from '../../oauth.ts'
import { readBasic } from '../../basic.ts'
import { discoveryPath, tokenPath } from './errors.ts'

const scope = 'one-time-password-sms:send-validate'

/** The document in which clients find the token endpoint (OpenID Connect Discovery 1.0 §4). */
export const presentDiscovery = (publicUrl: string) => ({
  issuer: publicUrl + discoveryPath.replace(/\/\.well-known.*$/, ''),
  token_endpoint: publicUrl + tokenPath,
  grant_types_supported: ['client_credentials'],
  token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
  scopes_supported: [scope],
  response_types_supported: [],
})

/**
 * Grants a token for client credentials (RFC 6749 §4.4). Nothing is stored.
 *
 * @throws UNAUTHENTICATED, FORBIDDEN; INVALID_ARGUMENT (GRANT_TYPE, SCOPE); as `readForm`
 */
export async function grantToken(appAuth: AppAuth, request: Request) {
  const form = await readForm(request)
  const header = request.headers.get('authorization')
  // More than one method in a request is not allowed (RFC 6749 §2.3).
  if (header !== null && form['client_secret'] !== undefined) throw invalid('Expected one secret.')
  const credentials: JoinedCredentials =
    header === null
      ? { clientId: form['client_id'], joinedSecrets: form['client_secret'] ?? '' }
      : readClient(header)
  const application = await appAuth.authenticate(credentials)
  if (form['grant_type'] === undefined) throw invalid('Expected a grant type.')
  if (form['grant_type'] !== 'client_credentials') throw invalid('Unknown grant type.', 'GRANT_TYPE')
  if (form['scope'] !== undefined && form['scope'] !== scope) throw invalid('Unknown scope.', 'SCOPE')
  return {
    access_token: appAuth.issueToken(application),
    token_type: 'Bearer',
    expires_in: tokenSeconds,
    scope,
  }
}

const invalid = (message: string, reason?: string) =>
  new ServiceError('INVALID_ARGUMENT', message, { reason })

/** Reads HTTP Basic. Name and password are encoded as in a form before (RFC 6749 §2.3.1). */
function readClient(header: string): JoinedCredentials {
  const { name, password } = readBasic(header)
  return { clientId: decode(name), joinedSecrets: decode(password) }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return ''
  }
}

/** Reads the token of a call (RFC 6750 §2.1); an empty one is never valid. */
export const readBearer = (header: string | undefined): { accessToken: string } => ({
  accessToken: /^bearer +([A-Za-z0-9_-]{1,512})$/i.exec(header ?? '')?.[1] ?? '',
})
