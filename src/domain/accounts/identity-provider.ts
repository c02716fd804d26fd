import type { Client } from '../model/audit.ts'

/** Successful response of the token endpoint (RFC 6749 §5.1; OpenID Connect Core 1.0 §3.1.3.3). */
export type TokenResponse = {
  id_token: string
  refresh_token: string
  token_type: 'Bearer'
  /** Seconds. */
  expires_in: number
  /** Seconds until the session ends if the refresh token is not used. */
  refresh_token_expires_in: number
}

/** Error response of the token endpoint (RFC 6749 §5.2). */
export type TokenErrorResponse = {
  error:
    | 'invalid_request'
    | 'invalid_client'
    | 'invalid_grant'
    | 'unsupported_grant_type'
    | 'unsupported_token_type'
    | 'mfa_required'
  error_description: string
}

/** Form parameters, without duplicates and empty values. */
export type GrantForm = Readonly<Record<string, string | undefined>>

/** The built-in identity provider, as served over HTTP. */
export type IdentityProvider = {
  /**
   * Handles a token request.
   *
   * @param client for the limit of failed logins and the audit trail
   * @throws INVALID_ARGUMENT; CONFLICT (EMAIL_TAKEN); RATE_LIMITED (LOGIN_ATTEMPTS); UNAVAILABLE
   */
  grant(form: GrantForm, client: Client): Promise<TokenResponse | TokenErrorResponse>
  /**
   * Ends the session of a refresh token; an unknown token is not an error (RFC 7009 §2.2).
   *
   * @returns unsupported_token_type for an ID token or an API token, which would stay valid
   */
  revoke(token: string, client: Client): Promise<TokenErrorResponse | undefined>
  /** Returns the JSON Web Key Set: the signing key, and retired keys whose tokens are still valid. */
  publicKeys(): Promise<{ keys: PublicKey[] }>
  /** OpenID Connect Discovery 1.0 §3. */
  discovery(): ProviderMetadata
}

/** Public elliptic curve key as a JSON Web Key (RFC 7517). */
export type PublicKey = {
  kty: string
  crv: string
  x: string
  y: string
  kid: string
  alg: string
  use: 'sig'
}

type ProviderMetadata = {
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

/** Settings with which the command line logs in to this server. */
export type LoginSettings = {
  kind: 'built_in' | 'oidc'
  issuer: string
  /** OAuth client id, and audience of the tokens. */
  clientId: string
  /** Null: read from the issuer's discovery document. */
  tokenEndpoint: string | null
  revocationEndpoint: string | null
  /** There is no account yet; a setup token creates the first. */
  setupTokenAwaited: boolean
}
