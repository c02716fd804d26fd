/**
 * Scopes of API tokens. `otp:read` reads codes, users, logs and analytics; `support` also unlocks and erases phones;
 * `read` reads everything but secrets and codes; `write` does what a login can do, except managing access to the account.
 */
export const apiTokenScopes = ['otp:read', 'support', 'read', 'write'] as const

export type ApiTokenScope = (typeof apiTokenScopes)[number]

/** Scopes that each scope includes besides itself. */
export const includedScopes: Readonly<Record<ApiTokenScope, readonly ApiTokenScope[]>> = {
  'otp:read': [],
  support: ['otp:read'],
  read: ['otp:read'],
  write: ['otp:read', 'support', 'read'],
}
