/**
 * Scopes of API tokens; each includes the ones before it. `otp:read` reads codes, users, logs and analytics, `read`
 * everything but secrets, and `write` does what a login can do, except managing access to the account.
 */
export const apiTokenScopes = ['otp:read', 'read', 'write'] as const

export type ApiTokenScope = (typeof apiTokenScopes)[number]
