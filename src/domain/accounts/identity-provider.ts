import type { Client } from './audit.ts'

/** What the token endpoint answers when a grant succeeds (RFC 6749 §5.1; OpenID Connect Core 1.0 §3.1.3.3). */
export type TokenResponse = {
  id_token: string
  refresh_token: string
  token_type: 'Bearer'
  /** Seconds. */
  expires_in: number
}

/** What the token endpoint answers when it does not (RFC 6749 §5.2). */
export type TokenErrorResponse = {
  error: 'invalid_request' | 'invalid_client' | 'invalid_grant' | 'unsupported_grant_type'
  error_description: string
}

/** The parameters of a form, each at most once, empty ones left out. */
export type GrantForm = Readonly<Record<string, string | undefined>>

/** The built-in provider as HTTP serves it. */
export type IdentityProvider = {
  /**
   * @param client bounds failed logins, and stands in the audit trail
   * @throws INVALID_ARGUMENT; CONFLICT (EMAIL_TAKEN); RATE_LIMITED (LOGIN_ATTEMPTS); UNAVAILABLE
   */
  grant(form: GrantForm, client: Client): Promise<TokenResponse | TokenErrorResponse>
  /** Ends the session that a refresh token belongs to; an unknown one is no error (RFC 7009 §2.2). */
  revoke(token: string, client: Client): Promise<void>
  /** A JSON Web Key Set: the key that signs, and those whose tokens still live. */
  publicKeys(): Promise<{ keys: PublicKey[] }>
  /** OpenID Connect Discovery 1.0 §3. */
  discovery(): ProviderMetadata
}

/** RFC 7517: the public half of a key on an elliptic curve. */
export type PublicKey = {
  kty: string
  crv: string
  x: string
  y: string
  kid: string
  alg: string
  use: 'sig'
}

export type ProviderMetadata = {
  issuer: string
  token_endpoint: string
  revocation_endpoint: string
  jwks_uri: string
  grant_types_supported: string[]
  response_types_supported: string[]
  subject_types_supported: string[]
  id_token_signing_alg_values_supported: string[]
  token_endpoint_auth_methods_supported: string[]
  claims_supported: string[]
}

/** How a command line logs in here. */
export type LoginSettings = {
  kind: 'built_in' | 'oidc'
  issuer: string
  /** The client to log in as, and the audience of its tokens. */
  clientId: string
  /** Null: as the issuer's discovery document says. */
  tokenEndpoint: string | null
  revocationEndpoint: string | null
  /** Nobody has an account yet: a setup token makes the first. */
  setupTokenAwaited: boolean
}
