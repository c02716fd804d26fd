import { selfActor, recordAudit, type Actor, type AuditDetails, type Origin } from './audit.ts'
import { cleanEmail, emailTaken, requireEmail } from '../model/email.ts'
import { ServiceError } from '../model/errors.ts'
import type { NewId } from '../model/ids.ts'
import { makeVirtualPhone } from '../model/phone.ts'
import { resolvePlan, type Plan, type Plans } from '../model/plans.ts'
import type { Clock, Random } from '../model/clock.ts'
import type { Store, Stores } from '../store/store.ts'

/** Somebody with an account: the owner of projects and of all that is in them. */
export type Developer = {
  id: string
  /** Null while an account that the operator made waits for its first login. */
  issuer: string | null
  subject: string | null
  /** In lower case. Only an address that its issuer vouches for, as operators name accounts by it. */
  email: string | null
  name: string | null
  company: string | null
  plan: string
  /** `+999` and ten digits; belongs to this developer alone. */
  virtualPhone: string
  status: 'active' | 'disabled'
  createdAt: number
  updatedAt: number
}

export type DeveloperStore = {
  find(id: string): Promise<Developer | undefined>
  findBySubject(issuer: string, subject: string): Promise<Developer | undefined>
  findByVirtualPhone(phone: string): Promise<Developer | undefined>
  /** External addresses are not unique: one person may come from two subjects. */
  findByEmail(email: string): Promise<Developer[]>
  /** All, oldest first. */
  list(): Promise<Developer[]>
  /** One statement. False when the subject, the virtual number or the awaited address is taken. */
  insert(developer: Developer): Promise<boolean>
  /** Binds the account that waits for this address to a subject. Of several callers at once exactly one gets it. */
  claimInvitation(
    email: string,
    login: { issuer: string; subject: string; name: string | null },
    now: number,
  ): Promise<Developer | undefined>
  update(id: string, changes: DeveloperChanges, now: number): Promise<Developer | undefined>
  /**
   * Takes from a developer what says who it was and lets nobody in any more. The row stays as the owner of what it made;
   * a later login of the same person, or an account of the same address, is somebody new.
   */
  anonymize(id: string, now: number): Promise<void>
  /** Holds the developer until the transaction ends, so that what is counted for a limit stays true. */
  lock(id: string): Promise<void>
}

export type DeveloperChanges = {
  name?: string | undefined
  company?: string | null | undefined
  plan?: string
  status?: Developer['status']
}

/** What the operator's sight of a person is made of, whoever vouches for it. */
export type Login = {
  issuer: string
  subject: string
  email?: string | undefined
  emailVerified?: boolean | undefined
  name?: string | undefined
}

/** Only `forget` leaves neither a subject nor an address. */
export const isAnonymized = ({ issuer, email }: Pick<Developer, 'issuer' | 'email'>) =>
  issuer === null && email === null

/** A developer and the numbers of the plan. */
export type Profile = Developer & { limits: Plan }

/**
 * The issuer under which accounts of the built-in provider are kept. Not its URL, which changes with the address
 * that the server is reached at.
 */
export const builtInIssuer = 'built-in'

export const developerNameMax = 80

export type DeveloperService = ReturnType<typeof createDeveloperService>

/** @param needs.signUp whether an unknown subject of an external provider becomes a developer at first sight */
export function createDeveloperService(needs: {
  store: Store
  clock: Clock
  newId: NewId
  random: Random
  plans: Plans
  signUp: 'open' | 'closed'
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
      // Somebody else may have been here with the same token in the meantime.
      const existing = await tx.developers.findBySubject(login.issuer, login.subject)
      if (existing) return existing
      if (signUp === 'closed' || login.issuer === builtInIssuer) return undefined
      const { issuer, subject } = login
      const newDeveloper = { id: newId('dev'), issuer, subject, email, name, now }
      return auditFirstLogin(await insertDeveloper(tx, newDeveloper, random), 'account.created')
    })

  const toProfile = (developer: Developer): Profile => ({
    ...developer,
    limits: resolvePlan(plans, developer.plan),
  })

  return {
    /**
     * The developer that a verified login belongs to, made at first sight where sign-up is open. An account that the
     * operator made is bound by its verified e-mail address, once. Atomic: logins at once yield one developer.
     *
     * @param origin of the call, for the audit trail
     * @throws FORBIDDEN (ACCOUNT_NOT_ALLOWED) unknown while sign-up is closed, or disabled
     */
    async resolveLogin(login: Login, origin: Origin): Promise<Developer> {
      const existing = await store.read.developers.findBySubject(login.issuer, login.subject)
      const developer = existing ?? (await provision(login, origin))
      if (developer?.status !== 'active') throw notAllowed()
      return developer
    },

    toProfile,

    /**
     * Makes an account of an external provider that waits for its first login, for whoever proves that address.
     *
     * @throws INVALID_ARGUMENT; CONFLICT (EMAIL_TAKEN) somebody has or awaits it
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

    /** @param changes at least one @throws FORBIDDEN (ACCOUNT_NOT_ALLOWED) disabled or deleted meanwhile */
    async update(
      developer: Actor,
      changes: { name?: string | undefined; company?: string | null | undefined },
    ): Promise<Profile> {
      const changed = await store.write(async (tx) => {
        await tx.developers.lock(developer.id)
        // A name must not come back to an account that was deleted since the call was let in.
        if ((await tx.developers.find(developer.id))?.status !== 'active') return undefined
        const now = clock.now()
        const detail = Object.keys(changes).join(',')
        const details = { action: 'account.updated', targetId: developer.id, detail } as const
        await recordAudit(tx, newId, selfActor(developer), details, now)
        return tx.developers.update(developer.id, changes, now)
      })
      if (!changed) throw notAllowed()
      return toProfile(changed)
    },
  }
}

/** What a new developer starts from. */
export type NewDeveloper = {
  id: string
  issuer: string | null
  subject: string | null
  email: string | null
  name: string | null
  plan?: string
  now: number
}

/**
 * Stores a developer with a virtual number that nobody else has. Of two for the same subject, the first stands and is
 * returned to both.
 *
 * @returns undefined when the awaited e-mail address is taken
 */
export async function insertDeveloper(
  tx: Stores,
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

/** A provider's name for a person within the bounds that the profile allows; null when nothing is left of it. */
export function cleanName(name: string): string | null {
  const printable = name.replaceAll(/\p{Cc}+/gu, ' ').trim()
  return [...printable].slice(0, developerNameMax).join('') || null
}

export const notAllowed = () =>
  new ServiceError('FORBIDDEN', 'This account may not use the service. Ask its operator.', {
    reason: 'ACCOUNT_NOT_ALLOWED',
  })
