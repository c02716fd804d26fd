import { recordAudit } from './audit.ts'
import type { AuditAction, Client } from '../model/audit.ts'
import { ServiceError, tryAgainIn } from '../model/errors.ts'
import { isRejected, reject, unwrap, type Rejected } from '../model/rejected.ts'
import type { NewId } from '../model/ids.ts'
import { indexHash, indexHashes, type HashForm, type Keys } from '../model/keys.ts'
import type { Clock } from '../model/clock.ts'
import type { Store, Stores } from '../store/store.ts'
import { dayMs, minuteMs } from '../../shared/durations.ts'

/** Failed logins of one network at one account, in a window. */
const loginAttemptsMax = 5
/** Accounts at which one network may fail in a window, before it may only try those that it logged in to before. */
const sprayedAccountsMax = 20
const loginWindowMs = 15 * minuteMs
/** NIST SP 800-63B §3.2.2: no more than 100 consecutive failed attempts on a single account. */
const consecutiveFailuresMax = 100
/** Wrong passwords and codes that callers with a session may send, from all networks, before the developer logs in again. */
const sessionGuessesMax = 5
/** Networks remembered per account. */
const knownNetworksMax = 50
const counterLifetimeMs = dayMs
/** Bounds the counters that made-up addresses fill: 10 MB. */
const countersMax = 100_000

/** 132 bits: enough that no two collide. */
const shortHash: HashForm = (digest) => digest.toString('base64url').slice(0, 22)

/** Returns the times up to which counted failures may be deleted, and how many counters may stay. */
export const staleLoginFailures = (now: number) => ({
  failures: now - loginWindowMs,
  counters: now - counterLifetimeMs,
  countersMax,
})

/** A login in progress that counts as failed until its end is known. */
type CountedAttempt = {
  /** Leaves the attempt counted, with an entry in the audit trail of an existing account. */
  fail(): Promise<void>
  /** Takes the attempt back: it neither failed nor succeeded. */
  release(): Promise<void>
  /** Takes the attempt back, forgets the failures of the account, and remembers the network. */
  succeed(): Promise<void>
}

export type LoginAttempts = ReturnType<typeof createLoginAttempts>

/** Rows that a login is counted by. */
type LoginSubjects = {
  /** Undefined for an address without an account. */
  developerId: string | undefined
  network: string
  account: string
  /** Counts what callers with a session of the account guess. */
  guesses: string
  /** Differ between accounts, so that the table does not link developers to one another; newest version first. */
  knownNetworks: string[]
}

type LoginTables = 'accounts' | 'audit' | 'loginAttempts'

/**
 * Creates the limiter of password guessing. Four limits, all in the database, so that they hold across nodes:
 *
 * - a network may fail 5 times in 15 minutes at an account (sliding-window log);
 * - after 100 failures in a row from all networks, an account may be tried only from networks that it was logged in to
 *   from before, until one of them logs in or the operator resets it;
 * - after failures at 20 accounts in 15 minutes (password spraying), a network may try only accounts that were logged in
 *   to from it before;
 * - with a session of the account, such as a stolen one, 5 guesses may fail until the next login.
 *
 * So failures elsewhere cannot lock out a developer at the usual place. Addresses without an account are counted the
 * same way, so that refusals do not reveal which accounts exist; their counters are forgotten after a day.
 */
export function createLoginAttempts(needs: {
  store: Store<LoginTables>
  clock: Clock
  newId: NewId
  keys: Pick<Keys, 'login'>
}) {
  const { store, clock, newId, keys } = needs
  const hash = (kind: string, value: string) => indexHash(keys.login, `${kind}\n${value}`, shortHash)

  /**
   * Judges a login by what is counted for it.
   *
   * @param failures consecutive ones of the account before this login
   * @returns what to count it by, or the refusal
   */
  const judge = async (
    stores: Pick<Stores, LoginTables>,
    subjects: LoginSubjects,
    failures: number,
  ): Promise<{ isKnown: boolean; seq: number } | Rejected> => {
    const { developerId, network, account, knownNetworks } = subjects
    const since = clock.now() - loginWindowMs
    const stored = await stores.loginAttempts.list(network, account)
    const oldest = stored.filter(({ at }) => at > since).at(-loginAttemptsMax)
    if (oldest) return reject(tooManyAttempts(oldest.at - since))
    const isKnown = await stores.loginAttempts.isKnownNetwork(developerId ?? '', knownNetworks)
    const triedAccounts = await stores.loginAttempts.listAccounts(network, since)
    const lastSprayed = triedAccounts[sprayedAccountsMax - 1]
    if (lastSprayed && !isKnown) return reject(tooManyAttempts(lastSprayed.at - since))
    if (failures >= consecutiveFailuresMax && !isKnown) return reject(onlyKnownNetworks())
    return { isKnown, seq: (stored.at(-1)?.seq ?? 0) + 1 }
  }

  const findSubjects = async (stores: Pick<Stores, LoginTables>, email: string, network: string) => {
    const found = await stores.accounts.findByEmail(email)
    const developerId = found?.developerId
    const subjects: LoginSubjects = {
      developerId,
      network: hash('network', network),
      account: hash('account', email),
      guesses: hash('guesses', email),
      knownNetworks: indexHashes(keys.login, `network of ${developerId ?? ''}\n${network}`, shortHash),
    }
    // Read in either case, so that the time does not reveal whether the account exists.
    const counted = await stores.loginAttempts.countedFailures(subjects.account)
    return { subjects, failures: found?.failedLogins ?? counted }
  }

  const uncount = async (tx: Pick<Stores, LoginTables>, { developerId, account }: LoginSubjects) =>
    developerId === undefined
      ? tx.loginAttempts.uncount(account)
      : void (await tx.accounts.addFailedLogins(developerId, -1))

  return {
    /**
     * Refuses a login that is over a limit, without counting it. Reads only, so that refusals write nothing.
     *
     * @param email normalized address; need not have an account
     * @returns the network, and whether the account was logged in to from it before
     * @throws RATE_LIMITED (LOGIN_ATTEMPTS)
     */
    async check(email: string, { network }: Client): Promise<{ network: string; isKnown: boolean }> {
      const { subjects, failures } = await findSubjects(store.read, email, network)
      const { isKnown } = unwrap(await judge(store.read, subjects, failures))
      return { network, isKnown }
    },

    /** Forgets what failed at an account, so that all networks may log in. @param email normalized address */
    async forget(tx: Pick<Stores, 'loginAttempts'>, email: string): Promise<void> {
      await tx.loginAttempts.deleteByAccount(hash('account', email))
      await tx.loginAttempts.forget(hash('guesses', email))
    },

    /**
     * Counts an attempt as failed before its password is verified, so that concurrent attempts cannot exceed a limit.
     *
     * @param email normalized address; need not have an account
     * @param failureAction action of the entry in the audit trail, if the attempt fails. No entry is written for
     *   unknown addresses, or attackers could fill the disk.
     * @param hasSession whether the caller has logged in, and now confirms a change with the password or a code
     * @throws RATE_LIMITED (LOGIN_ATTEMPTS) with the seconds until the next attempt is admitted
     */
    async begin(
      email: string,
      { network, origin }: Client,
      failureAction: AuditAction,
      hasSession: boolean,
    ): Promise<CountedAttempt> {
      type Counted = { subjects: LoginSubjects; seq: number }
      const result = await store.write(async (tx): Promise<Counted | Rejected> => {
        const { subjects } = await findSubjects(tx, email, network)
        const { developerId, account } = subjects
        const now = clock.now()
        if (hasSession && (await tx.loginAttempts.count(subjects.guesses, now)) > sessionGuessesMax)
          return reject(tooManyGuesses())
        // Both lock their row until the commit, so that each concurrent attempt sees the others.
        await tx.loginAttempts.count(subjects.network, now)
        const failures =
          developerId === undefined
            ? await tx.loginAttempts.count(account, now)
            : await tx.accounts.addFailedLogins(developerId, 1)
        const judged = await judge(tx, subjects, failures - 1)
        if (isRejected(judged)) {
          await uncount(tx, subjects)
          return judged
        }
        const { seq } = judged
        await tx.loginAttempts.insert(subjects.network, account, { at: now, seq })
        return { subjects, seq }
      })
      const { subjects, seq } = unwrap(result)
      const { developerId } = subjects

      return {
        fail: () =>
          store.write(async (tx) => {
            const now = clock.now()
            // A write in either case, so that the time does not reveal whether the account exists.
            if (developerId === undefined) return tx.loginAttempts.touch(subjects.account, now)
            const unknownActor = { developerId, actorId: null, origin }
            await recordAudit(tx, newId, unknownActor, { action: failureAction, targetId: developerId }, now)
          }),
        release: () =>
          store.write(async (tx) => {
            await uncount(tx, subjects)
            if (hasSession) await tx.loginAttempts.uncount(subjects.guesses)
            await tx.loginAttempts.delete(subjects.network, subjects.account, seq)
          }),
        succeed: () =>
          store.write(async (tx) => {
            await tx.loginAttempts.delete(subjects.network, subjects.account, seq)
            // The account may have been deleted since its password was read.
            if (developerId === undefined || !(await tx.accounts.resetFailedLogins(developerId))) return
            await tx.loginAttempts.forget(subjects.guesses)
            const [newest = ''] = subjects.knownNetworks
            await tx.loginAttempts.addNetwork(developerId, newest, clock.now(), knownNetworksMax)
          }),
      }
    },
  }
}

function tooManyAttempts(waitMs: number): ServiceError {
  const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1000))
  return new ServiceError('RATE_LIMITED', `Too many failed logins. ${tryAgainIn(retryAfterSeconds)}`, {
    reason: 'LOGIN_ATTEMPTS',
    retryAfterSeconds,
  })
}

const tooManyGuesses = () =>
  new ServiceError(
    'RATE_LIMITED',
    `The password or code was wrong ${sessionGuessesMax} times since the last login. Log in again, then retry.`,
    { reason: 'LOGIN_ATTEMPTS', retryAfterSeconds: loginWindowMs / 1000 },
  )

const onlyKnownNetworks = () =>
  new ServiceError(
    'RATE_LIMITED',
    'Too many failed logins in a row. Log in from a network that this account was logged in to from before, or ask the operator to set a new password.',
    { reason: 'LOGIN_ATTEMPTS', retryAfterSeconds: loginWindowMs / 1000 },
  )
