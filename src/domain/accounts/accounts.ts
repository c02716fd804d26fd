import { selfActor, recordAudit } from './audit.ts'
import { hostOrigin, serverOrigin, type Actor, type Client, type Origin } from '../model/audit.ts'
import { builtInIssuer, cleanName, insertDeveloper } from './developers.ts'
import type { Developer } from '../model/developer.ts'
import { cleanEmail, emailTaken, requireEmail } from '../model/email.ts'
import { invalidField, ServiceError } from '../model/errors.ts'
import type { NewId } from '../model/ids.ts'
import type { LoginAttempts } from './login-attempts.ts'
import type { Clock } from '../model/clock.ts'
import type { Random } from '../model/random.ts'
import type { SetupTokens } from './setup-tokens.ts'
import type { Store, Stores } from '../store/store.ts'

/** Password hashing, deliberately slow and with bounded concurrency; implemented in `auth/passwords.ts`. */
export type PasswordHashing = {
  /** @throws UNAVAILABLE the hashing queue is full */
  hash(password: string): Promise<string>
  /** Returns false for an undefined hash, in the same time. @throws UNAVAILABLE the hashing queue is full */
  verify(password: string, hash: string | undefined): Promise<boolean>
  isAcceptable(password: string): boolean
}

export type NewAccount = { email: string; name?: string | undefined; password: string }

export type AccountService = ReturnType<typeof createAccountService>

/** Creates the service for accounts of the built-in identity provider. Passwords never appear in errors. */
export function createAccountService(needs: {
  store: Store<'accounts' | 'audit' | 'developers' | 'refreshTokens' | 'setupTokens'>
  clock: Clock
  newId: NewId
  random: Random
  passwords: PasswordHashing
  loginAttempts: LoginAttempts
  setupTokens: SetupTokens
}) {
  const { store, clock, newId, random, passwords, loginAttempts, setupTokens } = needs

  const insert = async (
    tx: Pick<Stores, 'accounts' | 'audit' | 'developers' | 'setupTokens'>,
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
    // The setup token of the first start must not work once there is an account.
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
    /** Creates an account for the operator. @throws INVALID_ARGUMENT; CONFLICT (EMAIL_TAKEN); UNAVAILABLE */
    async create(input: NewAccount): Promise<Developer> {
      const account = await prepare(input)
      return store.write((tx) => insert(tx, account, hostOrigin))
    },

    /**
     * Creates the account from the server's configuration unless the address has one already.
     *
     * @throws INVALID_ARGUMENT; UNAVAILABLE
     */
    async ensure(input: NewAccount): Promise<void> {
      if (await store.read.accounts.findByEmail(cleanEmail(input.email))) return
      const account = await prepare(input)
      try {
        await store.write((tx) => insert(tx, account, serverOrigin))
      } catch (error) {
        // Another process created it concurrently.
        if (!(error instanceof ServiceError && error.reason === 'EMAIL_TAKEN')) throw error
      }
    },

    /**
     * Creates an account with a setup token. The token is consumed in the same transaction, so that only one of several
     * concurrent calls gets an account.
     *
     * @returns undefined if the token is unknown, used or expired
     * @throws INVALID_ARGUMENT; CONFLICT (EMAIL_TAKEN); UNAVAILABLE
     */
    async createWithSetupToken(
      token: string,
      input: NewAccount,
      origin: Origin,
    ): Promise<Developer | undefined> {
      // Checked before hashing, which is expensive, so that unauthenticated callers cannot load the server.
      if (!(await setupTokens.isValid(token))) return undefined
      const account = await prepare(input)
      return store.write(async (tx) => {
        if (!(await setupTokens.use(tx, token))) return undefined
        return insert(tx, account, origin)
      })
    },

    /**
     * Verifies a password. After five failed attempts within 15 minutes, further ones for the same account from the
     * same network are rejected. An attempt counts before the password is compared, so that parallel guesses gain
     * nothing.
     *
     * @returns undefined for a wrong password, an unknown address or a disabled account
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

    /** Sets a password for the operator and ends all sessions of the account. @throws NOT_FOUND; INVALID_ARGUMENT */
    async resetPassword(email: string, password: string): Promise<Developer> {
      if (!passwords.isAcceptable(password)) throw invalidField('body', 'password', passwordRule)
      const account = await store.read.accounts.findByEmail(cleanEmail(email))
      const developer = account && (await store.read.developers.find(account.developerId))
      if (!developer)
        throw new ServiceError('NOT_FOUND', 'There is no account with this email address. Check the address.')
      await setPassword(developer.id, await passwords.hash(password), undefined)
      return developer
    },

    /**
     * Changes a developer's own password and ends all sessions of the account.
     *
     * @throws INVALID_ARGUMENT the current password is wrong or the new one is not acceptable; NOT_FOUND the developer
     *   logs in with an external provider; RATE_LIMITED (LOGIN_ATTEMPTS)
     */
    async changePassword(
      developer: Actor,
      currentPassword: string,
      newPassword: string,
      network: string,
    ): Promise<void> {
      if (!passwords.isAcceptable(newPassword)) throw invalidField('body', 'newPassword', passwordRule)
      const account = await store.read.accounts.find(developer.id)
      if (!account) throw new ServiceError('NOT_FOUND', 'This account has no password to change.')
      const client = { network, origin: developer.origin }
      const attempt = await loginAttempts.begin(account.email, client, 'password.change_failed')
      if (!(await passwords.verify(currentPassword, account.passwordHash))) {
        throw invalidField('body', 'currentPassword', 'The current password is wrong. Enter it again.')
      }
      await attempt.markSucceeded()
      await setPassword(developer.id, await passwords.hash(newPassword), developer)
    },
  }
}

const passwordRule = 'Expected at least 12 characters and at most 1,024 bytes.'
