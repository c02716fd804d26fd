import { utcDay } from '../log/analytics.ts'
import { inboxProvider } from '../model/delivery.ts'
import { networkOf, isInRange, parseRange } from '../model/network.ts'
import { guardHistoryDays, guardWindowMs, windowStart, type GuardRule, type Sender } from '../model/guard.ts'
import {
  violatedCountryRules,
  violatedListRules,
  noUsage,
  violatedSubjectRules,
  type GuardSettings,
} from './rules.ts'
import { indexHash, type Keys } from '../model/keys.ts'
import type { OtpRequest } from '../model/request.ts'
import { isVirtualPhone } from '../model/phone.ts'
import type { Store, Stores } from '../store/store.ts'
import { dayMs, hourMs } from '../../shared/durations.ts'

export type GuardVerdict = { blocked: boolean; violatedRules: GuardRule[] }

/** Fields of a request that the guard uses. */
export type GuardedRequest = Pick<
  OtpRequest,
  | 'appId'
  | 'environment'
  | 'phone'
  | 'country'
  | 'clientIp'
  | 'provider'
  | 'createdAt'
  | 'resends'
  | 'contexts'
>

/**
 * SMS-pumping protection. Calls are part of the caller's transaction, which must hold the application's row
 * lock.
 */
export type Guard = {
  /** Decides whether a message of this request may be sent, and counts it if so. */
  evaluate(
    tx: Pick<Stores, 'guard'>,
    request: GuardedRequest,
    sender: Sender,
    now: number,
  ): Promise<GuardVerdict>
  /** Records that the code was verified: its messages no longer count as unverified. */
  recordConversion(tx: Pick<Stores, 'guard'>, request: GuardedRequest, now: number): Promise<void>
  /**
   * Stops counting the request's messages as unverified because none was delivered. The caps keep their
   * counts.
   */
  revert(tx: Pick<Stores, 'guard'>, request: GuardedRequest): Promise<void>
  /** Called when the guard itself fails. */
  onFault(error: unknown): void
}

/**
 * Represents the country of numbers without one: ITU-T shared codes such as satellites, a common target of
 * fraud.
 */
export const noCountry = '001'

const unlimited = 2_147_483_647
const allowedVerdict: GuardVerdict = { blocked: false, violatedRules: [] }

/**
 * Creates the guard against SMS pumping: fraud that makes applications send codes to numbers that earn money
 * per message. Conversion is counted per application, so that one application cannot get another's countries
 * blocked.
 *
 * Blocked messages do not count as unverified: the limits bound what is sent, and a continuing attack does
 * not prolong the block.
 */
export function createGuard(needs: {
  settings: GuardSettings
  keys: Pick<Keys, 'guard'>
  onFault(error: unknown): void
}): Guard & { configure(settings: GuardSettings): void } {
  let evaluator = createEvaluator(needs.settings, needs.keys)
  return {
    evaluate: (tx, request, sender, now) => evaluator.evaluate(tx, request, sender, now),
    recordConversion: (tx, request, now) => evaluator.recordConversion(tx, request, now),
    revert: (tx, request) => evaluator.revert(tx, request),
    onFault: needs.onFault,
    /** Applies new settings from the next message on. Counts are kept. */
    configure(settings) {
      evaluator = createEvaluator(settings, needs.keys)
    },
  }
}

function createEvaluator(settings: GuardSettings, keys: Pick<Keys, 'guard'>): Omit<Guard, 'onFault'> {
  const { mode, trusted, caps, unverified } = settings
  const trustedRanges = trusted.addresses.map(parseRange)

  function isExempt({ environment, phone, country, clientIp, provider }: GuardedRequest): boolean {
    return (
      mode === 'off' ||
      // Inbox messages cost nothing. Mode `enforce` judges them too, so that operators can test rules without
      // a provider.
      (mode === 'monitor' && provider === inboxProvider) ||
      environment === 'test' ||
      isVirtualPhone(phone) ||
      trusted.countries.includes(country ?? noCountry) ||
      trusted.prefixes.some((prefix) => phone.startsWith(prefix)) ||
      (clientIp !== null && isInRange(clientIp, trustedRanges))
    )
  }

  function toSubjects({ appId, phone, country, clientIp }: GuardedRequest) {
    const hash = (text: string) =>
      indexHash(keys.guard, text, (digest) => digest.toString('base64url').slice(0, 22))
    const client = clientIp === null ? undefined : networkOf(clientIp)
    return {
      application: appId,
      country: `${appId} country ${country ?? noCountry}`,
      prefix: `${appId} prefix ${hash(phone.slice(0, -4))}`,
      address: client === undefined ? undefined : `${appId} address ${hash(client)}`,
    }
  }

  /** Finds the rules that one more message would violate, by the counts so far. */
  async function violatedUsageRules(
    tx: Pick<Stores, 'guard'>,
    subjects: ReturnType<typeof toSubjects>,
    country: string,
    now: number,
  ): Promise<GuardRule[]> {
    const after = { hour: now - hourMs - guardWindowMs, day: now - dayMs - guardWindowMs }
    const usage = await tx.guard.usage(countedSubjects(subjects), after)
    const usageFor = (subject: string) => usage.get(subject) ?? noUsage
    const violatedRules = await violatedCountryRules(settings, usageFor(subjects.country), () =>
      tx.guard.maxVerifiedInDay(subjects.country, utcDay(now) - guardHistoryDays),
    )
    violatedRules.push(...violatedSubjectRules(settings, 'prefix', usageFor(subjects.prefix)))
    if (subjects.address === undefined) return violatedRules
    violatedRules.push(...violatedSubjectRules(settings, 'address', usageFor(subjects.address)))
    if (unverified.addressCountries === 0) return violatedRules
    const countries = await tx.guard.addressCountries(subjects.address, now - dayMs)
    const otherCountryCount = countries.filter((entry) => entry.country !== country && !entry.verified).length
    const isVerified = countries.some((entry) => entry.country === country && entry.verified)
    if (!isVerified && otherCountryCount + 1 > unverified.addressCountries)
      violatedRules.push('ADDRESS_COUNTRIES')
    return violatedRules
  }

  /** Counts a message against the daily caps. If `enforced` and a cap is reached, counts it against none. */
  async function chargeCaps(
    tx: Pick<Stores, 'guard'>,
    application: string,
    day: number,
    enforced: boolean,
  ): Promise<GuardRule[]> {
    const { applicationPerDay, totalPerDay } = caps
    const violatedRules: GuardRule[] = []
    const hasCap = applicationPerDay > 0
    if (hasCap && (await tx.guard.sentOn(application, day)) >= applicationPerDay)
      violatedRules.push('APPLICATION_DAILY')
    if (enforced && violatedRules.length > 0) return violatedRules
    // The one count that applications share: it is only known once this transaction has incremented it.
    if (totalPerDay > 0) {
      const sent = await tx.guard.addSent('total', day, enforced ? totalPerDay : unlimited)
      if (sent === undefined || sent > totalPerDay) violatedRules.push('TOTAL_DAILY')
      if (sent === undefined) return violatedRules
    }
    if (hasCap) await tx.guard.addSent(application, day, unlimited)
    return violatedRules
  }

  async function recordDecisions(
    tx: Pick<Stores, 'guard'>,
    violatedRules: GuardRule[],
    country: string,
    blocked: boolean,
    now: number,
  ) {
    const hour = Math.floor(now / hourMs)
    for (const rule of violatedRules) await tx.guard.addDecision({ hour, rule, country, blocked })
  }

  return {
    async evaluate(tx, request, _sender, now) {
      if (isExempt(request)) return allowedVerdict
      const country = request.country ?? noCountry
      const subjects = toSubjects(request)
      const enforced = mode === 'enforce'
      const violatedRules = violatedListRules(settings, country)
      // When enforcing, a country list that forbids the message decides alone; monitor mode evaluates every
      // rule.
      if (!enforced || violatedRules.length === 0)
        violatedRules.push(...(await violatedUsageRules(tx, subjects, country, now)))
      if (!enforced || violatedRules.length === 0) {
        violatedRules.push(...(await chargeCaps(tx, subjects.application, utcDay(now), enforced)))
      }
      const blocked = enforced && violatedRules.length > 0
      await recordDecisions(tx, violatedRules, country, blocked, now)
      if (blocked) return { blocked, violatedRules }
      await tx.guard.addUnverified(countedSubjects(subjects), windowStart(request.createdAt))
      if (subjects.address !== undefined && unverified.addressCountries > 0) {
        await tx.guard.addAddressCountry(subjects.address, country, now)
      }
      return { blocked, violatedRules }
    },

    async recordConversion(tx, request, now) {
      if (isExempt(request)) return
      const subjects = toSubjects(request)
      const change = { messages: 1 + request.resends, verified: 1 }
      // A message that was sent uncounted must not improve the conversion of those that were counted.
      if (!(await tx.guard.adjustCounts(countedSubjects(subjects), windowStart(request.createdAt), change)))
        return
      await tx.guard.addVerified(subjects.country, utcDay(request.createdAt))
      if (subjects.address !== undefined && unverified.addressCountries > 0) {
        await tx.guard.verifyAddressCountry(subjects.address, request.country ?? noCountry, now)
      }
    },

    async revert(tx, request) {
      if (isExempt(request)) return
      const change = { messages: 1 + request.resends, verified: 0 }
      await tx.guard.adjustCounts(
        countedSubjects(toSubjects(request)),
        windowStart(request.createdAt),
        change,
      )
    },
  }
}

const countedSubjects = ({
  country,
  prefix,
  address,
}: {
  country: string
  prefix: string
  address: string | undefined
}) => (address === undefined ? [country, prefix] : [country, prefix, address])

const noopGuard: Guard = {
  evaluate: () => Promise.resolve(allowedVerdict),
  recordConversion: () => Promise.resolve(),
  revert: () => Promise.resolve(),
  onFault: () => {},
}

/**
 * Reverts the guard's counts of a request whose messages were not delivered, so that a provider outage does
 * not get countries blocked. Runs a transaction of its own, which locks the application's row first, as sends
 * do. Never rejects.
 */
export async function revertGuardCounts(
  store: Pick<Store<'applications' | 'guard'>, 'write'>,
  guard: Guard,
  request: OtpRequest,
): Promise<void> {
  try {
    await store.write(async (tx) => {
      // Only for the row lock; the application's state does not matter.
      await tx.applications.lockAndCheckCredentials(request.appId, 0)
      await guard.revert(tx, request)
    })
  } catch (error) {
    guard.onFault(error)
  }
}

/**
 * Runs a transaction that uses the guard, and fails open: if the guard itself fails, the transaction runs
 * again without it, since a user waiting for a code matters more than a count. The whole transaction is
 * repeated because the guard's part cannot be rolled back alone (after an error PostgreSQL aborts the
 * transaction).
 */
export async function withGuard<T>(guard: Guard, run: (guard: Guard) => Promise<T>): Promise<T> {
  let fault: { error: unknown } | undefined
  const trackFault = async <R>(call: Promise<R>): Promise<R> => {
    try {
      return await call
    } catch (error) {
      fault = { error }
      throw error
    }
  }
  try {
    return await run({
      evaluate: (...args) => trackFault(guard.evaluate(...args)),
      recordConversion: (...args) => trackFault(guard.recordConversion(...args)),
      revert: (...args) => trackFault(guard.revert(...args)),
      onFault: guard.onFault,
    })
  } catch (error) {
    if (fault === undefined) throw error
    guard.onFault(fault.error)
    return await run(noopGuard)
  }
}
