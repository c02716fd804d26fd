import { deleteRules } from '../domain/guard/list-rules.ts'
import { createIdTokenSigner, idTokenSeconds } from '../auth/built-in-issuer.ts'
import { createAccounts, type IdentityNeeds, type IdentityTables } from '../auth/identity.ts'
import { createSigningKeys } from '../auth/signing-keys.ts'
import type { Config } from '../config/config.ts'
import { hostOrigin } from '../domain/model/audit.ts'
import { recordAudit, type AuditDetails } from '../domain/accounts/audit.ts'
import { createDeveloperService, validFromNextSecond } from '../domain/accounts/developers.ts'
import { isAnonymized, type Developer, type DeveloperChanges } from '../domain/model/developer.ts'
import { cleanEmail } from '../domain/model/email.ts'
import { invalidField, ServiceError } from '../domain/model/errors.ts'
import type { Store, Stores } from '../domain/store/store.ts'
import { OperationRefused } from '../store/data-dir/data-dir.ts'

/** A developer as the operator sees it: the API's profile and the account status. */
export type HostDeveloper = {
  id: string
  email: string | null
  name: string | null
  company: string | null
  plan: string
  virtualPhoneNumber: string
  /**
   * `invited`: created by the operator for an external provider, and not yet logged in. `deleted`: anonymized, and still
   * the owner of its projects and applications.
   */
  status: 'active' | 'disabled' | 'invited' | 'deleted'
  createdAt: string
  updatedAt: string
}

/** Remains of a deleted account: its id and how many projects and applications it owns. */
type HostDeletedAccount = { id: string; projects: number; applications: number }

type HostToken = { idToken: string; expiresAt: string }

type HostSetupToken = { token: string; expiresAt: string }

/** As the server's identity needs, and the stores from which a deleted account's remains are counted. */
type HostAccountNeeds = Omit<IdentityNeeds, 'store'> & {
  store: Store<IdentityTables | 'apiTokens' | 'applications' | 'listRules' | 'projects'>
}

/** Creates the operator's account commands, for the built-in identity provider and external ones. */
export function createHostAccounts(config: Config, needs: HostAccountNeeds) {
  const { oidc, plans } = config
  const { store, clock, newId } = needs
  const { accounts, setupTokens, totp } = createAccounts(needs)
  const developers = createDeveloperService(needs)
  const signingKeys = createSigningKeys(needs)

  const find = async (idOrEmail: string): Promise<Developer> => {
    const byId = await store.read.developers.find(idOrEmail)
    if (byId && !isAnonymized(byId)) return byId
    const [match, duplicate] = await store.read.developers.findByEmail(cleanEmail(idOrEmail))
    if (!match) throw notFoundAccount()
    if (duplicate)
      throw new ServiceError(
        'CONFLICT',
        'Several accounts have this e-mail address. Use the id: otpd admin list',
      )
    return match
  }
  const addAuditEntry = (tx: Pick<Stores, 'audit'>, developerId: string, details: AuditDetails) => {
    const operator = { developerId, actorId: null, origin: hostOrigin }
    return recordAudit(tx, newId, operator, { targetId: developerId, ...details }, clock.now())
  }
  const updateDeveloper = async (
    idOrEmail: string,
    changes: DeveloperChanges,
    details: AuditDetails,
  ): Promise<HostDeveloper> => {
    const { id } = await find(idOrEmail)
    const changed = await store.write(async (tx) => {
      await tx.developers.lock(id)
      if (changes.status === 'disabled') {
        await tx.refreshTokens.deleteByDeveloper(id)
        await tx.developers.setTokensValidFrom(id, validFromNextSecond(clock.now()))
      }
      await addAuditEntry(tx, id, details)
      return tx.developers.update(id, changes, clock.now())
    })
    if (!changed) throw notFoundAccount()
    return toHostDeveloper(changed)
  }
  const requireBuiltIn = () => {
    if (!oidc) return
    throw new ServiceError(
      'CONFLICT',
      'An external identity provider is configured, which has the passwords. Manage the account there.',
      { reason: 'EXTERNAL_PROVIDER' },
    )
  }

  return {
    /**
     * Creates an account: with a password for the built-in provider, or without one for an external provider, where the
     * first person to log in with that verified e-mail address gets the account.
     *
     * @throws INVALID_ARGUMENT; CONFLICT (EMAIL_TAKEN, EXTERNAL_PROVIDER when a password was given)
     */
    async createAccount(input: { email: string; name?: string; password?: string }): Promise<HostDeveloper> {
      const { email, name, password } = input
      if (password === undefined) {
        if (!oidc)
          throw invalidField('body', 'password', 'An account of the built-in provider needs a password.')
        return toHostDeveloper(await developers.invite({ email, name }, hostOrigin))
      }
      requireBuiltIn()
      return toHostDeveloper(await accounts.create({ email, name, password }))
    },

    /** Lists all accounts, oldest first. */
    listAccounts: async (): Promise<HostDeveloper[]> =>
      (await store.read.developers.list()).map(toHostDeveloper),

    /** Issues a token that creates one account within 30 minutes. @throws CONFLICT (EXTERNAL_PROVIDER) */
    async createSetupToken(): Promise<HostSetupToken> {
      requireBuiltIn()
      const { token, expiresAt } = await setupTokens.issue()
      return { token, expiresAt: new Date(expiresAt).toISOString() }
    },

    /** Moves a developer to a plan. @throws INVALID_ARGUMENT no such plan; NOT_FOUND; CONFLICT ambiguous address */
    async setPlan(idOrEmail: string, plan: string): Promise<HostDeveloper> {
      if (!Object.hasOwn(plans, plan)) {
        throw invalidField('body', 'plan', `Expected one of ${Object.keys(plans).join(', ')}.`)
      }
      return updateDeveloper(idOrEmail, { plan }, { action: 'account.plan_changed', detail: plan })
    },

    /** Disables an account from the next request on and ends its sessions. @throws NOT_FOUND; CONFLICT */
    disable: (idOrEmail: string) =>
      updateDeveloper(idOrEmail, { status: 'disabled' }, { action: 'account.disabled' }),

    /** Enables a disabled account. @throws NOT_FOUND; CONFLICT */
    enable: (idOrEmail: string) =>
      updateDeveloper(idOrEmail, { status: 'active' }, { action: 'account.enabled' }),

    /**
     * Deletes an account with its password, name, e-mail address and sessions; access ends with the next request. Its
     * projects and records stay, and its applications are refused like those of a disabled account. Atomic.
     *
     * @throws NOT_FOUND; CONFLICT
     */
    async deleteAccount(idOrEmail: string): Promise<HostDeletedAccount> {
      const { id } = await find(idOrEmail)
      return store.write(async (tx) => {
        await tx.developers.lock(id)
        await tx.accounts.delete(id)
        await tx.refreshTokens.deleteByDeveloper(id)
        await tx.apiTokens.deleteByDeveloper(id)
        await deleteRules(tx, id, () => true)
        await tx.developers.anonymize(id, clock.now())
        await addAuditEntry(tx, id, { action: 'account.deleted' })
        return { id, projects: await tx.projects.count(id), applications: await tx.applications.count(id) }
      })
    },

    /** Finds an account by id or e-mail address. @throws NOT_FOUND; CONFLICT */
    findAccount: async (idOrEmail: string): Promise<HostDeveloper> => toHostDeveloper(await find(idOrEmail)),

    /**
     * Issues the ID token that a login would return, but without a session, so it cannot be renewed.
     *
     * @param urls.running public URL of the running server, which accepts tokens of no other issuer
     * @param urls.named URL of the server, if none runs and no public URL is configured
     * @throws NOT_FOUND; CONFLICT (ACCOUNT_DISABLED, EXTERNAL_PROVIDER); OperationRefused SERVER_UNKNOWN
     */
    async issueToken(
      idOrEmail: string,
      { running, named }: { running?: string | undefined; named?: string | undefined } = {},
    ): Promise<HostToken> {
      requireBuiltIn()
      const issuerUrl = `${running ?? config.publicUrl ?? named ?? listenUrl(config)}/v1/auth`
      const developer = await find(idOrEmail)
      if (developer.status !== 'active') {
        throw new ServiceError('CONFLICT', 'This account is disabled. Enable it first: otpd admin enable', {
          reason: 'ACCOUNT_DISABLED',
        })
      }
      const sign = createIdTokenSigner({ issuerUrl: () => issuerUrl, signingKeys, clock })
      const idToken = await sign(developer)
      await store.write((tx) => addAuditEntry(tx, developer.id, { action: 'token.issued' }))
      return { idToken, expiresAt: new Date(clock.now() + idTokenSeconds * 1000).toISOString() }
    },

    /**
     * Sets a password, ends the sessions and forgets failed logins. @throws INVALID_ARGUMENT; NOT_FOUND; CONFLICT
     * (EXTERNAL_PROVIDER)
     */
    async resetPassword(email: string, password: string): Promise<HostDeveloper> {
      requireBuiltIn()
      return toHostDeveloper(await accounts.resetPassword(email, password))
    },

    /** Removes the second factor of an account. @throws NOT_FOUND; CONFLICT (TOTP_NOT_ENABLED, EXTERNAL_PROVIDER) */
    async resetTotp(idOrEmail: string): Promise<HostDeveloper> {
      requireBuiltIn()
      const developer = await find(idOrEmail)
      await totp.reset(developer.id)
      return toHostDeveloper(developer)
    },

    /** Signs ID tokens with a new key from now on; existing tokens stay valid until they expire. @returns the key's id */
    async rotateSigningKey(): Promise<{ kid: string }> {
      requireBuiltIn()
      return { kid: await signingKeys.rotate() }
    },
  }
}

const toHostDeveloper = (developer: Developer): HostDeveloper => ({
  id: developer.id,
  email: developer.email,
  name: developer.name,
  company: developer.company,
  plan: developer.plan,
  virtualPhoneNumber: developer.virtualPhone,
  status: hostStatus(developer),
  createdAt: new Date(developer.createdAt).toISOString(),
  updatedAt: new Date(developer.updatedAt).toISOString(),
})

const notFoundAccount = () =>
  new ServiceError(
    'NOT_FOUND',
    'There is no account with this e-mail address or id. List them: otpd admin list',
  )

function hostStatus(developer: Developer): HostDeveloper['status'] {
  if (isAnonymized(developer)) return 'deleted'
  return developer.issuer === null && developer.status === 'active' ? 'invited' : developer.status
}

/** Default URL of the server, derived from its listening address. @throws OperationRefused SERVER_UNKNOWN for port 0 */
function listenUrl({ listen: { host, port } }: Config): string {
  if (port !== 0) return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
  throw new OperationRefused(
    'SERVER_UNKNOWN',
    'the server listens on a random port, so its URL is unknown',
    'Set --server URL or OTPD_PUBLIC_URL.',
  )
}
