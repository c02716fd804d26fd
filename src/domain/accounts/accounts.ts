import { selfActor, recordAudit } from './audit.ts'
import {
  hostOrigin,
  serverOrigin,
  type Actor,
  type AuditAction,
  type Client,
  type Origin,
} from '../model/audit.ts'
import { builtInIssuer, cleanName, insertDeveloper, lockLogin, validFromNextSecond } from './developers.ts'
import type { Developer } from '../model/developer.ts'
import { cleanEmail, emailTaken, requireEmail } from '../model/email.ts'
import { invalidField, ServiceError } from '../model/errors.ts'
import type { NewId } from '../model/ids.ts'
import type { LoginAttempts } from './login-attempts.ts'
import type { PasswordHasher, PasswordHashing, PasswordOwner, Turn } from './password-hashing.ts'
import type { Clock } from '../model/clock.ts'
import type { Random } from '../model/random.ts'
import type { SetupTokens } from './setup-tokens.ts'
import { noPassword, totpNotEnabled, type TotpService } from './totp.ts'
import type { Store, Stores } from '../store/store.ts'

type NewAccount = { email: string; name?: string | undefined; password: string }

/** A verified login, and how it was proven, for the audit trail. */
type VerifiedLogin = { developer: Developer; method: string }

export type AccountService = ReturnType<typeof createAccountService>

/** Creates the service for accounts of the built-in identity provider. Passwords never appear in errors. */
export function createAccountService(needs: {
  store: Store<'accounts' | 'audit' | 'developers' | 'loginAttempts' | 'refreshTokens' | 'setupTokens'>
  clock: Clock
  newId: NewId
  random: Random
  passwords: PasswordHashing
  loginAttempts: LoginAttempts
  setupTokens: SetupTokens
  totp: TotpService
}) {
  const { store, clock, newId, random, passwords, loginAttempts, setupTokens, totp } = needs

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
    const account = {
      developerId: id,
      email,
      passwordHash,
      failedLogins: 0,
      createdAt: now,
      updatedAt: now,
    }
    if (!developer || !(await tx.accounts.insert(account))) throw emailTaken()
    // The setup token of the first start must not work once there is an account.
    await tx.setupTokens.deleteFirstStartToken()
    const auditActor = { developerId: id, actorId: origin.source === 'api' ? id : null, origin }
    await recordAudit(tx, newId, auditActor, { action: 'account.created', targetId: id }, now)
    return developer
  }

  const requireGoodPassword = (field: string, password: string, owner: PasswordOwner) => {
    const fault = passwords.findFault(password, owner)
    if (fault !== undefined) throw invalidField('body', field, fault)
  }

  const prepare = async ({ email, name, password }: NewAccount, turn: Turn) => {
    const owner = { email: requireEmail(email), name: name === undefined ? null : cleanName(name) }
    requireGoodPassword('password', password, owner)
    return { ...owner, passwordHash: await passwords.takeTurn(turn, ({ hash }) => hash(password)) }
  }

  /**
   * Checks a secret of an existing or unknown account in the network's turn, and counts the attempt before.
   *
   * @param hasSession as of `LoginAttempts.begin`
   * @param verify tells whether the secrets are right; `released` takes the attempt back
   */
  const attempt = async <T>(
    subject: { email: string; client: Client; failureAction: AuditAction; hasSession: boolean },
    verify: (hasher: PasswordHasher) => Promise<{ outcome: 'failed' | 'released' | 'succeeded'; value: T }>,
  ): Promise<T> => {
    const { email, client, failureAction, hasSession } = subject
    const turn = await passwords.takeCheckTurn(client.network, () => loginAttempts.check(email, client))
    // Counted when its turn has come: an attempt that the queue refuses is none.
    return passwords.takeTurn(turn, async (hasher) => {
      const counted = await loginAttempts.begin(email, client, failureAction, hasSession)
      const verified = await verify(hasher).catch(async (error: unknown) => {
        await counted.release()
        throw error
      })
      if (verified.outcome === 'failed') await counted.fail()
      else if (verified.outcome === 'released') await counted.release()
      else await counted.succeed()
      return verified.value
    })
  }

  const setPassword = async (
    { developerId, email }: { developerId: string; email: string },
    passwordHash: string,
    actor: Actor | undefined,
  ) =>
    store.write(async (tx) => {
      // A reset during the comparison wins.
      await (actor ? lockLogin(tx, actor) : tx.developers.lock(developerId))
      await tx.accounts.updatePassword(developerId, passwordHash, clock.now())
      if (!actor) await loginAttempts.forget(tx, email)
      await tx.refreshTokens.deleteByDeveloper(developerId)
      await tx.developers.setTokensValidFrom(developerId, validFromNextSecond(clock.now()))
      const auditActor = actor ? selfActor(actor) : { developerId, actorId: null, origin: hostOrigin }
      const action = actor ? 'password.changed' : 'password.reset'
      await recordAudit(tx, newId, auditActor, { action, targetId: developerId }, clock.now())
    })

  return {
    /** Creates an account for the operator. @throws INVALID_ARGUMENT; CONFLICT (EMAIL_TAKEN); UNAVAILABLE */
    async create(input: NewAccount): Promise<Developer> {
      const account = await prepare(input, hostTurn)
      return store.write((tx) => insert(tx, account, hostOrigin))
    },

    /**
     * Creates the account from the server's configuration unless the address has one already.
     *
     * @throws INVALID_ARGUMENT; UNAVAILABLE
     */
    async ensure(input: NewAccount): Promise<void> {
      if (await store.read.accounts.findByEmail(cleanEmail(input.email))) return
      const account = await prepare(input, hostTurn)
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
     * @throws INVALID_ARGUMENT; CONFLICT (EMAIL_TAKEN); RATE_LIMITED (LOGIN_ATTEMPTS); UNAVAILABLE
     */
    async createWithSetupToken(
      token: string,
      input: NewAccount,
      { network, origin }: Client,
    ): Promise<Developer | undefined> {
      // Checked before hashing, which is expensive, so that unauthenticated callers cannot load the server.
      if (!(await setupTokens.isValid(token))) return undefined
      const account = await prepare(input, { network, isKnown: false })
      return store.write(async (tx) => {
        if (!(await setupTokens.use(tx, token))) return undefined
        return insert(tx, account, origin)
      })
    },

    /**
     * Verifies a password, and the second factor of an account that has one. Failures are limited, see
     * `createLoginAttempts`.
     *
     * @param code of the authenticator app, or a recovery code
     * @returns undefined for a wrong password or code, an unknown address or a disabled account; `mfa_required` if only
     *   the code is missing, which does not count as a failure
     * @throws RATE_LIMITED (LOGIN_ATTEMPTS); UNAVAILABLE
     */
    async authenticate(
      email: string,
      password: string,
      client: Client,
      code?: string,
    ): Promise<VerifiedLogin | 'mfa_required' | undefined> {
      const address = cleanEmail(email)
      const subject = { email: address, client, failureAction: 'login.failed', hasSession: false } as const
      return attempt<VerifiedLogin | 'mfa_required' | undefined>(subject, async (hasher) => {
        const failed = { outcome: 'failed', value: undefined } as const
        const account = await store.read.accounts.findByEmail(address)
        // Read before the password is compared, so that `issue` notices a reset during the comparison.
        const developer = account && (await store.read.developers.find(account.developerId))
        if (!(await hasher.verify(password, account?.passwordHash)) || !account) return failed
        const { developerId, passwordHash } = account
        if (developer?.status !== 'active') return failed
        if (hasher.isOutdated(passwordHash)) {
          const newHash = await hasher.hash(password)
          await store.write((tx) => tx.accounts.rehash(developerId, passwordHash, newHash))
        }
        if (!(await totp.isEnabled(developerId)))
          return { outcome: 'succeeded', value: { developer, method: 'password' } }
        if (code === undefined) return { outcome: 'released', value: 'mfa_required' }
        const method = await totp.useCode(developerId, code)
        if (method === undefined) return failed
        return { outcome: 'succeeded', value: { developer, method: `password+${method}` } }
      })
    },

    /**
     * Sets a password for the operator, ends all sessions of the account and forgets its failed logins.
     *
     * @throws NOT_FOUND; INVALID_ARGUMENT
     */
    async resetPassword(email: string, password: string): Promise<Developer> {
      const address = cleanEmail(email)
      const account = await store.read.accounts.findByEmail(address)
      const developer = account && (await store.read.developers.find(account.developerId))
      requireGoodPassword('password', password, { email: address, name: developer?.name ?? null })
      if (!developer)
        throw new ServiceError(
          'NOT_FOUND',
          'There is no account with this e-mail address. Check the address.',
        )
      const passwordHash = await passwords.takeTurn(hostTurn, ({ hash }) => hash(password))
      await setPassword(account, passwordHash, undefined)
      return developer
    },

    /**
     * Changes a developer's own password and ends all sessions of the account.
     *
     * @throws INVALID_ARGUMENT the current password is wrong or the new one is not acceptable; NOT_FOUND the developer
     *   logs in with an external provider; RATE_LIMITED (LOGIN_ATTEMPTS); UNAVAILABLE; as `lockLogin`
     */
    async changePassword(
      developer: Actor,
      currentPassword: string,
      newPassword: string,
      network: string,
    ): Promise<void> {
      const account = await store.read.accounts.find(developer.id)
      if (!account) throw noPassword()
      const { email, passwordHash } = account
      requireGoodPassword('newPassword', newPassword, { email, name: developer.name })
      const client = { network, origin: developer.origin }
      const subject = { email, client, failureAction: 'password.change_failed', hasSession: true } as const
      const newHash = await attempt<string | undefined>(subject, async (hasher) =>
        (await hasher.verify(currentPassword, passwordHash))
          ? { outcome: 'succeeded', value: await hasher.hash(newPassword) }
          : { outcome: 'failed', value: undefined },
      )
      if (newHash === undefined)
        throw invalidField('body', 'currentPassword', 'The current password is wrong. Enter it again.')
      await setPassword(account, newHash, developer)
    },

    /**
     * Removes a developer's own second factor.
     *
     * @param proof the password, or a code as at a login; a wrong one counts as a failed login
     * @throws INVALID_ARGUMENT the proof is wrong; CONFLICT (TOTP_NOT_ENABLED); NOT_FOUND the developer logs in with an
     *   external provider; RATE_LIMITED (LOGIN_ATTEMPTS); UNAVAILABLE; as `lockLogin`
     */
    async disableTotp(
      developer: Actor,
      proof: { password: string } | { code: string },
      network: string,
    ): Promise<void> {
      const account = await store.read.accounts.find(developer.id)
      if (!account) throw noPassword()
      if (!(await totp.isEnabled(developer.id))) throw totpNotEnabled()
      const { email, passwordHash } = account
      const client = { network, origin: developer.origin }
      const subject = { email, client, failureAction: 'totp.disable_failed', hasSession: true } as const
      const isProven = await attempt<boolean>(subject, async (hasher) => {
        const isRight =
          'password' in proof
            ? await hasher.verify(proof.password, passwordHash)
            : (await totp.useCode(developer.id, proof.code)) !== undefined
        return { outcome: isRight ? 'released' : 'failed', value: isRight }
      })
      if (!isProven) {
        const field = 'password' in proof ? 'password' : 'code'
        throw invalidField('body', field, `The ${field} is wrong. Enter it again.`)
      }
      await totp.remove(developer)
    },
  }
}

/** The operator's turn, on the server's machine. */
const hostTurn: Turn = { network: 'host', isKnown: true }
