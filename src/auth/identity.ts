import { createAccountService, type AccountService } from '../domain/accounts/accounts.ts'
import { createDeveloperService, type DeveloperService } from '../domain/accounts/developers.ts'
import { cleanEmail } from '../domain/model/email.ts'
import type { IdentityProvider, LoginSettings } from '../domain/accounts/identity-provider.ts'
import type { NewId } from '../domain/model/ids.ts'
import type { Keys } from '../domain/model/keys.ts'
import { createLoginAttempts } from '../domain/accounts/login-attempts.ts'
import type { Plans } from '../domain/model/plans.ts'
import { serverOrigin } from '../domain/model/audit.ts'
import type { Clock } from '../domain/model/clock.ts'
import type { Random } from '../domain/model/random.ts'
import { createRefreshTokens } from '../domain/accounts/refresh-tokens.ts'
import { createSetupTokens, type SetupTokens } from '../domain/accounts/setup-tokens.ts'
import { createTotpService, type TotpService } from '../domain/accounts/totp.ts'
import type { Store } from '../domain/store/store.ts'
import { builtInClientId, createBuiltInIssuer, createBuiltInVerifier } from './built-in-issuer.ts'
import { createRemoteKeys } from './discovery.ts'
import { createIdTokenVerifier, type TokenLifetime, type VerifyLogin } from './id-token.ts'
import { createKeySource } from './jwks.ts'
import { createPasswords } from './passwords.ts'
import { createSigningKeys, type SigningKeys } from './signing-keys.ts'
import type { World } from '../world/world.ts'

/** Names of the stores that accounts, sessions and their keys use. */
export type IdentityTables =
  | 'accounts'
  | 'audit'
  | 'developers'
  | 'loginAttempts'
  | 'refreshTokens'
  | 'setupTokens'
  | 'signingKeys'
  | 'totpSecrets'

export type IdentityNeeds = {
  store: Store<IdentityTables>
  clock: Clock
  /** Wall clock, comparable with an external provider's clock; default: `clock`. */
  wall?: Clock | undefined
  newId: NewId
  random: Random
  keys: Pick<Keys, 'login' | 'signingKey' | 'refreshToken' | 'seals'>
  plans: Plans
  signUp: 'open' | 'closed'
  /** Called when a valid login of an external provider is refused because sign-up is closed. */
  onSignUpRefused?: (() => void) | undefined
  /** See `createTotpService`. */
  onTotpClockSetBack?: Parameters<typeof createTotpService>[0]['onTotpClockSetBack']
  world?: World | undefined
}

/** Settings of an external OpenID provider. */
type OidcSettings = {
  issuer: string
  /** At least one. */
  audience: readonly string[]
  /** Null: use the discovery document of the issuer. */
  jwksUri: string | null
  /** Client id of the CLI's logins; null: the first audience. */
  clientId: string | null
}

/** Authenticates developers, by the built-in or an external identity provider. */
type Identity = {
  verify: VerifyLogin
  developers: DeveloperService
  loginSettings(): Promise<LoginSettings>
  /**
   * Creates the first account that the operator's settings name, unless the e-mail address exists. With an
   * external provider it only invites the address, and ignores the password.
   *
   * @throws INVALID_ARGUMENT; UNAVAILABLE
   */
  ensureAccount(account: { email: string; password: string }): Promise<void>
  /** Undefined if an external OpenID provider is configured. */
  builtIn: BuiltInIdentity | undefined
}

export type BuiltInIdentity = {
  provider: IdentityProvider
  accounts: AccountService
  setupTokens: SetupTokens
  signingKeys: SigningKeys
  totp: TotpService
}

/**
 * Identity by an external OpenID provider.
 *
 * @param oidc.onKeysFailed called with the cause when loading the provider's keys fails, for the log
 */
export function createExternalIdentity(
  needs: IdentityNeeds & { lifetime: TokenLifetime },
  oidc: OidcSettings & { onKeysFailed?: (cause: unknown) => void },
): Identity {
  const { issuer, audience, jwksUri, clientId, onKeysFailed } = oidc
  const { clock, wall = clock, lifetime } = needs
  const load = createRemoteKeys({ issuer, world: needs.world, ...(jwksUri !== null && { jwksUri }) })
  const keys = createKeySource({
    load,
    clock,
    ...(onKeysFailed && { onLoadFailed: onKeysFailed }),
  })
  const settings: LoginSettings = {
    kind: 'oidc',
    issuer,
    clientId: clientId ?? audience[0] ?? '',
    tokenEndpoint: null,
    revocationEndpoint: null,
    setupTokenAwaited: false,
  }
  const developers = createDeveloperService(needs)
  const { verify } = createIdTokenVerifier({ issuer, audiences: audience, keys, clock: wall, lifetime })
  return {
    async verify(token) {
      // The provider's session is none of ours.
      const { sessionId: _, issuedAtMs, expiresAtMs, ...login } = await verify(token)
      // Converts the times from the wall clock to ours, which callers compare them with.
      const aheadMs = wall.now() - clock.now()
      return { ...login, issuedAtMs: issuedAtMs - aheadMs, expiresAtMs: expiresAtMs - aheadMs }
    },
    developers,
    loginSettings: async () => settings,
    async ensureAccount({ email }) {
      const existing = await needs.store.read.developers.findByEmail(cleanEmail(email))
      if (existing.length === 0) await developers.invite({ email }, serverOrigin)
    },
    builtIn: undefined,
  }
}

/**
 * Identity by the built-in provider.
 *
 * @param publicUrl public URL of the server, without a trailing slash; called each time
 */
export function createBuiltInIdentity(
  needs: IdentityNeeds & { lifetime: TokenLifetime },
  publicUrl: () => string,
): Identity {
  const { store, clock, lifetime } = needs
  const issuerUrl = () => `${publicUrl()}/v1/auth`
  const { accounts, setupTokens, totp } = createAccounts(needs)
  const refreshTokens = createRefreshTokens(needs)
  const signingKeys = createSigningKeys(needs)
  const provider = createBuiltInIssuer({ issuerUrl, accounts, refreshTokens, signingKeys, clock })
  return {
    verify: createBuiltInVerifier({ issuerUrl, signingKeys, clock, lifetime }).verify,
    developers: createDeveloperService(needs),
    async loginSettings() {
      const {
        issuer,
        token_endpoint: tokenEndpoint,
        revocation_endpoint: revocationEndpoint,
      } = provider.discovery()
      const setupTokenAwaited = !(await store.read.accounts.hasAny())
      return {
        kind: 'built_in',
        issuer,
        clientId: builtInClientId,
        tokenEndpoint,
        revocationEndpoint,
        setupTokenAwaited,
      }
    },
    ensureAccount: accounts.ensure,
    builtIn: { provider, accounts, setupTokens, signingKeys, totp },
  }
}

/** Accounts of the built-in provider, also for operator commands that run without a server. */
export function createAccounts(
  needs: Pick<
    IdentityNeeds,
    'store' | 'clock' | 'wall' | 'newId' | 'random' | 'keys' | 'onTotpClockSetBack' | 'world'
  >,
) {
  const { clock, wall = clock } = needs
  const setupTokens = createSetupTokens(needs)
  const totp = createTotpService({ ...needs, wall })
  const accounts = createAccountService({
    ...needs,
    passwords: createPasswords(clock, needs.world),
    loginAttempts: createLoginAttempts(needs),
    setupTokens,
    totp,
  })
  return { accounts, setupTokens, totp }
}
