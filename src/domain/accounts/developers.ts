import { isAuditRepeated, selfActor, recordAudit, type AuditDetails } from './audit.ts'
import type { Actor, Origin } from '../model/audit.ts'
import { cleanEmail, emailTaken, requireEmail } from '../model/email.ts'
import { ServiceError } from '../model/errors.ts'
import type { NewId } from '../model/ids.ts'
import { makeVirtualPhone } from '../model/phone.ts'
import { resolvePlan, type Plan, type Plans } from '../model/plans.ts'
import type { Clock } from '../model/clock.ts'
import type { Random } from '../model/random.ts'
import type { Store, Stores } from '../store/store.ts'
import type { Developer } from '../model/developer.ts'
import { secondMs } from '../../shared/durations.ts'

/**
 * Claims of a verified login, from any identity provider. A person is identified by issuer and subject, never by e-mail
 * address.
 */
export type Login = {
  issuer: string
  subject: string
  email?: string | undefined
  emailVerified?: boolean | undefined
  name?: string | undefined
}

/** A login by a verified ID token, with the facts that decide whether the token is still valid. */
export type TokenLogin = Login & {
  issuedAtMs: number
  expiresAtMs: number
  /** Session at the issuer (OpenID Connect Back-Channel Logout 1.0 §2.1); undefined for a token that has none. */
  sessionId?: string | undefined
}

/** A developer with the limits of their plan. */
export type Profile = Developer & { limits: Plan }

/** Issuer stored for accounts of the built-in provider. Not its URL, which changes with the server's public URL. */
export const builtInIssuer = 'built-in'

const developerNameMax = 80

export type DeveloperService = ReturnType<typeof createDeveloperService>

/**
 * Creates the service that manages developers.
 *
 * @param needs.signUp `open`: an unknown subject of an external provider becomes a developer at its first login
 */
export function createDeveloperService(needs: {
  store: Store<'audit' | 'developers'>
  clock: Clock
  newId: NewId
  random: Random
  plans: Plans
  signUp: 'open' | 'closed'
  /** Called when a valid login of an external provider is refused because sign-up is closed. */
  onSignUpRefused?: (() => void) | undefined
}) {
  const { store, clock, newId, random, plans, signUp } = needs

  const provision = (login: Login, origin: Origin) =>
    store.write(async (tx) => {
      const now = clock.now()
      const auditFirstLogin = async (developer: Developer | undefined, action: AuditDetails['action']) => {
        if (!developer) return undefined
        const details = { action, targetId: developer.id, detail: 'first_login' }
        await recordAudit(tx, newId, selfActor({ ...developer, origin }), details, now)
        return developer
      }
      const name = login.name === undefined ? null : cleanName(login.name)
      const email = login.email !== undefined && login.emailVerified === true ? cleanEmail(login.email) : null
      if (email !== null) {
        const claimed = await tx.developers.claimInvitation(email, { ...login, name }, now)
        if (claimed) return auditFirstLogin(claimed, 'login.succeeded')
      }
      // A concurrent request with the same token may have created the developer.
      const existing = await tx.developers.findBySubject(login.issuer, login.subject)
      if (existing) return existing
      if (login.issuer === builtInIssuer) return undefined
      if (signUp === 'closed') {
        needs.onSignUpRefused?.()
        return undefined
      }
      const { issuer, subject } = login
      const newDeveloper = { id: newId('dev'), issuer, subject, email, name, now }
      return auditFirstLogin(await insertDeveloper(tx, newDeveloper, random), 'account.created')
    })

  /**
   * Finds the developer of a login. One read, so that a token costs no more than before: the end of a session, a new
   * password and a disabled account take effect on the next request, on every node.
   *
   * @returns undefined if there is no developer yet
   */
  const findActive = async (login: TokenLogin): Promise<Developer | undefined> => {
    const { issuer, subject, sessionId = null, issuedAtMs } = login
    const found = await store.read.developers.findLogin(issuer, subject, sessionId)
    if (!found) return undefined
    const { developer, hasSession } = found
    if (developer.status !== 'active') throw notAllowed()
    if ((sessionId !== null && !hasSession) || issuedAtMs < developer.tokensValidFrom) throw tokenRevoked()
    return developer
  }

  const toProfile = (developer: Developer): Profile => ({
    ...developer,
    limits: resolvePlan(plans, developer.plan),
  })

  return {
    /**
     * Returns the developer of a verified login, and creates it at the first login if sign-up is open. An invited
     * account is bound once, by its verified e-mail address. Atomic: concurrent logins yield one developer.
     *
     * @param origin origin of the request, for the audit trail
     * @throws UNAUTHENTICATED (TOKEN_REVOKED) the session has ended; FORBIDDEN (ACCOUNT_NOT_ALLOWED) the developer is
     *   disabled, or unknown while sign-up is closed
     */
    async resolveLogin(login: TokenLogin, origin: Origin): Promise<Developer> {
      const developer = (await findActive(login)) ?? (await provision(login, origin))
      if (developer?.status !== 'active') throw notAllowed()
      return developer
    },

    /** Checks again that a resolved login is valid. @throws UNAUTHENTICATED (TOKEN_REVOKED); FORBIDDEN */
    async revalidateLogin(login: TokenLogin): Promise<void> {
      if (!(await findActive(login))) throw notAllowed()
    },

    toProfile,

    /**
     * Creates an account without a subject; the first login of an external provider with that verified address claims
     * it.
     *
     * @throws INVALID_ARGUMENT; CONFLICT (EMAIL_TAKEN) an account or invitation has the address
     */
    async invite(input: { email: string; name?: string | undefined }, origin: Origin): Promise<Developer> {
      const email = requireEmail(input.email)
      const name = input.name === undefined ? null : cleanName(input.name)
      const invited = await store.write(async (tx) => {
        if ((await tx.developers.findByEmail(email)).length > 0) return undefined
        const now = clock.now()
        const newDeveloper = { id: newId('dev'), issuer: null, subject: null, email, name, now }
        const developer = await insertDeveloper(tx, newDeveloper, random)
        if (!developer) return undefined
        const auditActor = { developerId: developer.id, actorId: null, origin }
        const details = { action: 'account.created', targetId: developer.id, detail: 'invited' } as const
        await recordAudit(tx, newId, auditActor, details, now)
        return developer
      })
      if (!invited) throw emailTaken()
      return invited
    },

    /**
     * Updates a developer's own profile. Changes of the same fields within a minute share one audit entry.
     *
     * @param changes at least one
     * @throws FORBIDDEN (ACCOUNT_NOT_ALLOWED) the account was disabled or deleted concurrently
     */
    async update(
      developer: Actor,
      changes: { name?: string | undefined; company?: string | null | undefined },
    ): Promise<Profile> {
      const changed = await store.write(async (tx) => {
        await tx.developers.lock(developer.id)
        // Must not restore a name to an account that was deleted after the request was authenticated.
        if ((await tx.developers.find(developer.id))?.status !== 'active') return undefined
        const now = clock.now()
        const detail = Object.keys(changes).join(',')
        const details = { action: 'account.updated', targetId: developer.id, detail } as const
        const actor = { ...selfActor(developer), developerId: developer.id }
        if (!(await isAuditRepeated(tx, actor, details, now)))
          await recordAudit(tx, newId, actor, details, now)
        return tx.developers.update(developer.id, changes, now)
      })
      if (!changed) throw notAllowed()
      return toProfile(changed)
    },
  }
}

/** Input for a new developer. */
type NewDeveloper = {
  id: string
  issuer: string | null
  subject: string | null
  email: string | null
  name: string | null
  plan?: string
  now: number
}

/**
 * Inserts a developer with a unique virtual number. If two are inserted for the same subject, both calls return the
 * first.
 *
 * @returns undefined if another invitation has the e-mail address
 * @throws Error no free virtual number was found in 8 tries
 */
export async function insertDeveloper(
  tx: Pick<Stores, 'developers'>,
  { now, plan = 'free', ...newDeveloper }: NewDeveloper,
  random: Random,
): Promise<Developer | undefined> {
  for (let tries = 0; tries < 8; tries += 1) {
    const developer: Developer = {
      ...newDeveloper,
      company: null,
      plan,
      virtualPhone: makeVirtualPhone(random),
      status: 'active',
      tokensValidFrom: 0,
      createdAt: now,
      updatedAt: now,
    }
    if (await tx.developers.insert(developer)) return developer
    if (newDeveloper.issuer === null || newDeveloper.subject === null) {
      const sameAddress =
        newDeveloper.email === null ? [] : await tx.developers.findByEmail(newDeveloper.email)
      if (sameAddress.some(({ issuer }) => issuer === null)) return undefined
    } else {
      const existing = await tx.developers.findBySubject(newDeveloper.issuer, newDeveloper.subject)
      if (existing) return existing
    }
  }
  throw new Error('no free virtual number was found')
}

/**
 * Locks a developer, and checks that no access ended since the call was authenticated by an ID token: a stolen session must
 * not survive a reset in what it was just about to change.
 *
 * @throws UNAUTHENTICATED (TOKEN_REVOKED) all sessions were ended; FORBIDDEN (ACCOUNT_NOT_ALLOWED) the account was disabled
 *   or deleted
 */
export async function lockLogin(
  tx: Pick<Stores, 'developers'>,
  { id, tokensValidFrom }: Developer,
): Promise<void> {
  await tx.developers.lock(id)
  const current = await tx.developers.find(id)
  if (current?.status !== 'active') throw notAllowed()
  if (current.tokensValidFrom !== tokensValidFrom) throw tokenRevoked()
}

/** Removes control characters from a provider's name and truncates it; null if nothing is left. */
export function cleanName(name: string): string | null {
  const printable = name.replaceAll(/\p{Cc}+/gu, ' ').trim()
  return [...printable].slice(0, developerNameMax).join('') || null
}

/**
 * Returns the `tokensValidFrom` that refuses every ID token issued until now: the next whole second, because `iat` has
 * no fractions. The built-in provider issues no token before it.
 */
export const validFromNextSecond = (now: number) => (Math.floor(now / secondMs) + 1) * secondMs

const tokenRevoked = () =>
  new ServiceError('UNAUTHENTICATED', 'The session of this ID token has ended. Log in again.', {
    reason: 'TOKEN_REVOKED',
  })

/** Builds the error for a disabled or unknown account. */
export const notAllowed = () =>
  new ServiceError(
    'FORBIDDEN',
    'This account is not allowed to use the service. Ask the operator for access.',
    { reason: 'ACCOUNT_NOT_ALLOWED' },
  )
