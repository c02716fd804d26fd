import { createIdTokenSigner, idTokenSeconds } from '../auth/built-in-issuer.ts'
import { createAccounts, type IdentityNeeds } from '../auth/identity.ts'
import { createSigningKeys } from '../auth/signing-keys.ts'
import type { Config } from '../config/config.ts'
import { hostOrigin, recordAudit, type AuditDetails } from '../domain/accounts/audit.ts'
import {
  createDeveloperService,
  isAnonymized,
  type Developer,
  type DeveloperChanges,
} from '../domain/accounts/developers.ts'
import { cleanEmail } from '../domain/model/email.ts'
import { invalidField, ServiceError } from '../domain/model/errors.ts'
import type { Stores } from '../domain/store/store.ts'
import { OperationRefused } from '../store/files/data-dir.ts'

/** A developer as the operator sees it: the API's profile, and what only the operator may know. */
export type HostDeveloper = {
  id: string
  email: string | null
  name: string | null
  company: string | null
  plan: string
  virtualPhoneNumber: string
  /**
   * `invited`: made by the operator for an external provider, and not yet logged in. `deleted`: nobody's any more, and
   * still the owner of what was made under it.
   */
  status: 'active' | 'disabled' | 'invited' | 'deleted'
  createdAt: string
  updatedAt: string
}

/** What stays of an account that was deleted. */
export type HostDeletedAccount = { id: string; projects: number; applications: number }

export type HostToken = { idToken: string; expiresAt: string }

export type HostSetupToken = { token: string; expiresAt: string }

/** What the operator does with accounts, of the built-in provider or of an external one. */
export function createHostAccounts(config: Config, needs: IdentityNeeds) {
  const { oidc, plans } = config
  const { store, clock, newId, keys } = needs
  const { accounts, setupTokens } = createAccounts(needs)
  const developers = createDeveloperService(needs)
  const signingKeys = createSigningKeys({ ...needs, key: keys.signingKey })

  const find = async (idOrEmail: string): Promise<Developer> => {
    const byId = await store.read.developers.find(idOrEmail)
    if (byId && !isAnonymized(byId)) return byId
    const [match, duplicate] = await store.read.developers.findByEmail(cleanEmail(idOrEmail))
    if (!match) throw new ServiceError('NOT_FOUND', 'There is no such developer.')
    if (duplicate)
      throw new ServiceError('CONFLICT', 'Several developers have that address. Name one by its id.')
    return match
  }
  const addAuditEntry = (tx: Stores, developerId: string, details: AuditDetails) => {
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
      if (changes.status === 'disabled') await tx.refreshTokens.deleteByDeveloper(id)
      await addAuditEntry(tx, id, details)
      return tx.developers.update(id, changes, clock.now())
    })
    if (!changed) throw new ServiceError('NOT_FOUND', 'There is no such developer.')
    return toHostDeveloper(changed)
  }
  const requireBuiltIn = () => {
    if (!oidc) return
    throw new ServiceError(
      'CONFLICT',
      'Passwords and setup tokens are for the built-in provider, and another is configured.',
      {
        reason: 'EXTERNAL_PROVIDER',
      },
    )
  }

  return {
    /**
     * With the built-in provider an account with a password; with an external one an account that waits for whoever
     * proves that address there, and no password.
     *
     * @throws INVALID_ARGUMENT; CONFLICT (EMAIL_TAKEN, EXTERNAL_PROVIDER a password was given)
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

    /** All, oldest first. */
    listAccounts: async (): Promise<HostDeveloper[]> =>
      (await store.read.developers.list()).map(toHostDeveloper),

    /** One account more, for whoever holds the token within 30 minutes. @throws CONFLICT (EXTERNAL_PROVIDER) */
    async createSetupToken(): Promise<HostSetupToken> {
      requireBuiltIn()
      const { token, expiresAt } = await setupTokens.issue()
      return { token, expiresAt: new Date(expiresAt).toISOString() }
    },

    /** @throws INVALID_ARGUMENT no such plan; NOT_FOUND; CONFLICT the address is several developers' */
    async setPlan(idOrEmail: string, plan: string): Promise<HostDeveloper> {
      if (!Object.hasOwn(plans, plan)) {
        throw invalidField('body', 'plan', `Expected one of ${Object.keys(plans).join(', ')}.`)
      }
      return updateDeveloper(idOrEmail, { plan }, { action: 'account.plan_changed', detail: plan })
    },

    /** Holds from the next request on, and ends the sessions. @throws NOT_FOUND; CONFLICT */
    disable: (idOrEmail: string) =>
      updateDeveloper(idOrEmail, { status: 'disabled' }, { action: 'account.disabled' }),

    /** @throws NOT_FOUND; CONFLICT */
    enable: (idOrEmail: string) =>
      updateDeveloper(idOrEmail, { status: 'active' }, { action: 'account.enabled' }),

    /**
     * Removes the account: its password, its name and address, its sessions. Nobody gets in any more, from the next
     * request on. Projects, applications, which are refused like those of a disabled account, and records stay. Atomic.
     *
     * @throws NOT_FOUND; CONFLICT
     */
    async deleteAccount(idOrEmail: string): Promise<HostDeletedAccount> {
      const { id } = await find(idOrEmail)
      return store.write(async (tx) => {
        await tx.developers.lock(id)
        await tx.accounts.delete(id)
        await tx.refreshTokens.deleteByDeveloper(id)
        await tx.developers.anonymize(id, clock.now())
        await addAuditEntry(tx, id, { action: 'account.deleted' })
        return { id, projects: await tx.projects.count(id), applications: await tx.applications.count(id) }
      })
    },

    /** @throws NOT_FOUND; CONFLICT */
    findAccount: async (idOrEmail: string): Promise<HostDeveloper> => toHostDeveloper(await find(idOrEmail)),

    /**
     * An ID token as a login would give, without a session: it cannot be renewed.
     *
     * @param server the address under which the server is reached, for where no public one is configured
     * @throws NOT_FOUND; CONFLICT (ACCOUNT_DISABLED, EXTERNAL_PROVIDER); OperationRefused SERVER_UNKNOWN
     */
    async issueToken(idOrEmail: string, server?: string): Promise<HostToken> {
      requireBuiltIn()
      const issuerUrl = `${config.publicUrl ?? server ?? listenUrl(config)}/v1/auth`
      const developer = await find(idOrEmail)
      if (developer.status !== 'active') {
        throw new ServiceError('CONFLICT', 'That account is disabled.', { reason: 'ACCOUNT_DISABLED' })
      }
      const sign = createIdTokenSigner({ issuerUrl: () => issuerUrl, signingKeys, clock })
      const idToken = await sign(developer)
      await store.write((tx) => addAuditEntry(tx, developer.id, { action: 'token.issued' }))
      return { idToken, expiresAt: new Date(clock.now() + idTokenSeconds * 1000).toISOString() }
    },

    /** Ends the account's sessions too. @throws INVALID_ARGUMENT; NOT_FOUND; CONFLICT (EXTERNAL_PROVIDER) */
    async resetPassword(email: string, password: string): Promise<HostDeveloper> {
      requireBuiltIn()
      return toHostDeveloper(await accounts.resetPassword(email, password))
    },

    /** ID tokens are signed with a new key from now on; those of the old one live to their end. @returns its id */
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

function hostStatus(developer: Developer): HostDeveloper['status'] {
  if (isAnonymized(developer)) return 'deleted'
  return developer.issuer === null && developer.status === 'active' ? 'invited' : developer.status
}

/** As the server calls itself. */
function listenUrl({ listen: { host, port } }: Config): string {
  if (port !== 0) return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
  throw new OperationRefused(
    'SERVER_UNKNOWN',
    'the server listens on whatever port is free',
    'Say where it is reached: --server URL, or OTPD_PUBLIC_URL.',
  )
}
