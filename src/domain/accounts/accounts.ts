import {
  selfActor,
  hostOrigin,
  serverOrigin,
  recordAudit,
  type Actor,
  type Client,
  type Origin,
} from './audit.ts'
import { builtInIssuer, cleanName, insertDeveloper, type Developer } from './developers.ts'
import { cleanEmail, emailTaken, requireEmail } from '../model/email.ts'
import { invalidField, ServiceError } from '../model/errors.ts'
import type { NewId } from '../model/ids.ts'
import type { LoginAttempts } from './login-attempts.ts'
import type { Clock, Random } from '../model/clock.ts'
import type { SetupTokens } from './setup-tokens.ts'
import type { Store, Stores } from '../store/store.ts'

/** What the built-in identity provider knows of a developer. */
export type Account = {
  developerId: string
  /** In lower case; unique. */
  email: string
  passwordHash: string
  createdAt: number
  updatedAt: number
}

export type AccountStore = {
  /** Whether anybody has an account. */
  hasAny(): Promise<boolean>
  find(developerId: string): Promise<Account | undefined>
  findByEmail(email: string): Promise<Account | undefined>
  /** One statement. False when the address is taken. */
  insert(account: Account): Promise<boolean>
  updatePassword(developerId: string, passwordHash: string, now: number): Promise<void>
  delete(developerId: string): Promise<void>
}

/** Slow and bounded, as `auth/passwords.ts` does it. */
export type PasswordHashing = {
  /** @throws UNAVAILABLE too many wait */
  hash(password: string): Promise<string>
  /** False for an absent hash, at the same cost. @throws UNAVAILABLE too many wait */
  verify(password: string, hash: string | undefined): Promise<boolean>
  isAcceptable(password: string): boolean
}

export type NewAccount = { email: string; name?: string | undefined; password: string }

export type AccountService = ReturnType<typeof createAccountService>

/** Accounts of the built-in identity provider. Passwords never stand in an error. */
export function createAccountService(needs: {
  store: Store
  clock: Clock
  newId: NewId
  random: Random
  passwords: PasswordHashing
  loginAttempts: LoginAttempts
  setupTokens: SetupTokens
}) {
  const { store, clock, newId, random, passwords, loginAttempts, setupTokens } = needs

  const insert = async (
    tx: Stores,
    input: { email: string; name: string | null; passwordHash: string },
    origin: Origin,
  ) => {
    const now = clock.now()
    const id = newId('dev')
    const { email, name, passwordHash } = input
    const newDeveloper = { id, issuer: builtInIssuer, subject: id, email, name, now }
    const developer = await insertDeveloper(tx, newDeveloper, random)
    const account = { developerId: id, email, passwordHash, createdAt: now, updatedAt: now }
    if (!developer || !(await tx.accounts.insert(account))) throw emailTaken()
    // Whoever still holds the token of the first start must not get in beside the first account.
    await tx.setupTokens.deleteFirstStartToken()
    const auditActor = { developerId: id, actorId: origin.source === 'api' ? id : null, origin }
    await recordAudit(tx, newId, auditActor, { action: 'account.created', targetId: id }, now)
    return developer
  }

  const prepare = async ({ email, name, password }: NewAccount) => {
    const address = requireEmail(email)
    if (!passwords.isAcceptable(password)) throw invalidField('body', 'password', passwordRule)
    const passwordHash = await passwords.hash(password)
    return { email: address, name: name === undefined ? null : cleanName(name), passwordHash }
  }

  const setPassword = async (developerId: string, passwordHash: string, actor: Actor | undefined) =>
    store.write(async (tx) => {
      await tx.developers.lock(developerId)
      await tx.accounts.updatePassword(developerId, passwordHash, clock.now())
      await tx.refreshTokens.deleteByDeveloper(developerId)
      const auditActor = actor ? selfActor(actor) : { developerId, actorId: null, origin: hostOrigin }
      const action = actor ? 'password.changed' : 'password.reset'
      await recordAudit(tx, newId, auditActor, { action, targetId: developerId }, clock.now())
    })

  return {
    /** For the operator. @throws INVALID_ARGUMENT; CONFLICT (EMAIL_TAKEN); UNAVAILABLE */
    async create(input: NewAccount): Promise<Developer> {
      const account = await prepare(input)
      return store.write((tx) => insert(tx, account, hostOrigin))
    },

    /** As the server's configuration wishes: makes the account unless there is one with that address already. @throws INVALID_ARGUMENT; UNAVAILABLE */
    async ensure(input: NewAccount): Promise<void> {
      if (await store.read.accounts.findByEmail(cleanEmail(input.email))) return
      const account = await prepare(input)
      try {
        await store.write((tx) => insert(tx, account, serverOrigin))
      } catch (error) {
        // Another process was faster.
        if (!(error instanceof ServiceError && error.reason === 'EMAIL_TAKEN')) throw error
      }
    },

    /**
     * Makes an account for whoever holds a setup token. The token is used up with the account and only with it: of
     * two calls with one token, one gets an account.
     *
     * @returns undefined when the token is unknown, used or expired
     * @throws INVALID_ARGUMENT; CONFLICT (EMAIL_TAKEN); UNAVAILABLE
     */
    async createWithSetupToken(
      token: string,
      input: NewAccount,
      origin: Origin,
    ): Promise<Developer | undefined> {
      // Strangers must not make the server hash.
      if (!(await setupTokens.isValid(token))) return undefined
      const account = await prepare(input)
      return store.write(async (tx) => {
        if (!(await setupTokens.use(tx, token))) return undefined
        return insert(tx, account, origin)
      })
    },

    /**
     * The developer with this password, if any. Five wrong ones in 15 minutes for one account from one address stop
     * that pair. The attempt is counted before the password is compared, so that many at once gain nothing.
     *
     * @returns undefined for a wrong password, an unknown address and a disabled account alike
     * @throws RATE_LIMITED (LOGIN_ATTEMPTS); UNAVAILABLE
     */
    async authenticate(email: string, password: string, client: Client): Promise<Developer | undefined> {
      const address = cleanEmail(email)
      const attempt = await loginAttempts.begin(address, client, 'login.failed')
      const account = await store.read.accounts.findByEmail(address)
      if (!(await passwords.verify(password, account?.passwordHash)) || !account) return undefined
      const developer = await store.read.developers.find(account.developerId)
      if (developer?.status !== 'active') return undefined
      await attempt.markSucceeded()
      return developer
    },

    /** Sets a password as the operator wishes and ends every session of the account. @throws NOT_FOUND; INVALID_ARGUMENT */
    async resetPassword(email: string, password: string): Promise<Developer> {
      if (!passwords.isAcceptable(password)) throw invalidField('body', 'password', passwordRule)
      const account = await store.read.accounts.findByEmail(cleanEmail(email))
      const developer = account && (await store.read.developers.find(account.developerId))
      if (!developer) throw new ServiceError('NOT_FOUND', 'There is no account with that e-mail address.')
      await setPassword(developer.id, await passwords.hash(password), undefined)
      return developer
    },

    /**
     * Lets a developer choose another password; every session ends.
     *
     * @throws INVALID_ARGUMENT the current password is wrong or the new one not acceptable; NOT_FOUND the developer
     *   has no password here; RATE_LIMITED (LOGIN_ATTEMPTS)
     */
    async changePassword(
      developer: Actor,
      currentPassword: string,
      newPassword: string,
      network: string,
    ): Promise<void> {
      if (!passwords.isAcceptable(newPassword)) throw invalidField('body', 'newPassword', passwordRule)
      const account = await store.read.accounts.find(developer.id)
      if (!account) throw new ServiceError('NOT_FOUND', 'This account has no password here.')
      const client = { network, origin: developer.origin }
      const attempt = await loginAttempts.begin(account.email, client, 'password.change_failed')
      if (!(await passwords.verify(currentPassword, account.passwordHash))) {
        throw invalidField('body', 'currentPassword', 'This is not the current password.')
      }
      await attempt.markSucceeded()
      await setPassword(developer.id, await passwords.hash(newPassword), developer)
    },
  }
}

const passwordRule = 'Expected at least 12 characters and at most 1,024 bytes.'
