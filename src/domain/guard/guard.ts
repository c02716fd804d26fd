import { utcDay } from '../log/analytics.ts'
import { inboxProvider } from '../model/delivery.ts'
import { clientKey, isInRange, parseRange } from './address.ts'
import { guardDayMs, guardHistoryDays, guardHourMs, guardWindowMs, windowStart } from './counts.ts'
import {
  violatedCountryRules,
  violatedListRules,
  noUsage,
  violatedSubjectRules,
  type GuardRule,
  type GuardSettings,
} from './rules.ts'
import { hmac, type Keys } from '../model/keys.ts'
import type { OtpRequest } from '../model/request.ts'
import { isVirtualPhone } from '../model/phone.ts'
import type { Store, Stores } from '../store/store.ts'

export type GuardVerdict = { blocked: boolean; violatedRules: GuardRule[] }

/** What of a request the guard looks at. */
export type GuardedRequest = Pick<
  OtpRequest,
  'appId' | 'environment' | 'phone' | 'country' | 'clientIp' | 'provider' | 'createdAt' | 'resends'
>

/** Each call is part of the transaction that it speaks of. Whoever calls holds the application's row. */
export type Guard = {
  /** Whether a message of this request may go out; what may is counted. */
  evaluate(tx: Stores, request: GuardedRequest, now: number): Promise<GuardVerdict>
  /** Somebody gave the code back: its messages are no longer unverified. */
  recordConversion(tx: Stores, request: GuardedRequest, now: number): Promise<void>
  /** No message of the request went out, so that none can be verified. What the caps count stays counted. */
  revert(tx: Stores, request: GuardedRequest): Promise<void>
  /** Told when the guard itself failed. */
  onFault(error: unknown): void
}

/** The country of numbers that belong to none, as ITU-T's shared codes do: satellites, and much of the fraud. */
export const noCountry = '001'

const unlimited = 2_147_483_647
const allowedVerdict: GuardVerdict = { blocked: false, violatedRules: [] }

/**
 * Watches for SMS pumping: somebody makes applications send codes to numbers that earn by the message. Conversion
 * is counted for each application alone, so that nobody can have another's countries blocked.
 *
 * What was blocked is not counted as unverified: the limits bound what goes out, and an attack that goes on keeps
 * nobody out for longer.
 */
export function createGuard(needs: {
  settings: GuardSettings
  keys: Pick<Keys, 'guard'>
  onFault(error: unknown): void
}): Guard & { configure(settings: GuardSettings): void } {
  let evaluator = createEvaluator(needs.settings, needs.keys)
  return {
    evaluate: (tx, request, now) => evaluator.evaluate(tx, request, now),
    recordConversion: (tx, request, now) => evaluator.recordConversion(tx, request, now),
    revert: (tx, request) => evaluator.revert(tx, request),
    onFault: needs.onFault,
    /** From the next message on. What was counted stays. */
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
      // Nobody earns by what stays in the inbox. Who enforces may want to see the rules work before a provider does.
      (mode === 'monitor' && provider === inboxProvider) ||
      environment === 'test' ||
      isVirtualPhone(phone) ||
      trusted.countries.includes(country ?? noCountry) ||
      trusted.prefixes.some((prefix) => phone.startsWith(prefix)) ||
      (clientIp !== null && isInRange(clientIp, trustedRanges))
    )
  }

  function toSubjects({ appId, phone, country, clientIp }: GuardedRequest) {
    const hash = (text: string) => hmac(keys.guard).update(text).digest('base64url').slice(0, 22)
    const client = clientIp === null ? undefined : clientKey(clientIp)
    return {
      application: appId,
      country: `${appId} country ${country ?? noCountry}`,
      prefix: `${appId} prefix ${hash(phone.slice(0, -4))}`,
      address: client === undefined ? undefined : `${appId} address ${hash(client)}`,
    }
  }

  /** What the counts say about one message more. */
  async function violatedUsageRules(
    tx: Stores,
    subjects: ReturnType<typeof toSubjects>,
    country: string,
    now: number,
  ): Promise<GuardRule[]> {
    const after = { hour: now - guardHourMs - guardWindowMs, day: now - guardDayMs - guardWindowMs }
    const usage = await tx.guard.usage(countedSubjects(subjects), after)
    const usageFor = (subject: string) => usage.get(subject) ?? noUsage
    const violatedRules = await violatedCountryRules(settings, usageFor(subjects.country), () =>
      tx.guard.maxVerifiedInDay(subjects.country, utcDay(now) - guardHistoryDays),
    )
    violatedRules.push(...violatedSubjectRules(settings, 'prefix', usageFor(subjects.prefix)))
    if (subjects.address === undefined) return violatedRules
    violatedRules.push(...violatedSubjectRules(settings, 'address', usageFor(subjects.address)))
    if (unverified.addressCountries === 0) return violatedRules
    const countries = await tx.guard.addressCountries(subjects.address, now - guardDayMs)
    const otherCountryCount = countries.filter((entry) => entry.country !== country && !entry.verified).length
    const isVerified = countries.some((entry) => entry.country === country && entry.verified)
    if (!isVerified && otherCountryCount + 1 > unverified.addressCountries)
      violatedRules.push('ADDRESS_COUNTRIES')
    return violatedRules
  }

  /** Counts a message for the caps, unless one of them is reached and `enforced`: then for none. */
  async function chargeCaps(
    tx: Stores,
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
    // The one count that applications share: what stands in it is only known when it is taken.
    if (totalPerDay > 0) {
      const sent = await tx.guard.addSent('total', day, enforced ? totalPerDay : unlimited)
      if (sent === undefined || sent > totalPerDay) violatedRules.push('TOTAL_DAILY')
      if (sent === undefined) return violatedRules
    }
    if (hasCap) await tx.guard.addSent(application, day, unlimited)
    return violatedRules
  }

  async function recordDecisions(
    tx: Stores,
    violatedRules: GuardRule[],
    country: string,
    blocked: boolean,
    now: number,
  ) {
    const hour = Math.floor(now / guardHourMs)
    for (const rule of violatedRules) await tx.guard.addDecision({ hour, rule, country, blocked })
  }

  return {
    async evaluate(tx, request, now) {
      if (isExempt(request)) return allowedVerdict
      const country = request.country ?? noCountry
      const subjects = toSubjects(request)
      const enforced = mode === 'enforce'
      const violatedRules = violatedListRules(settings, country)
      // A list that forbids needs no counts beside it; who only watches wants to know all.
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
      // A code that went out uncounted says nothing about the ones that were counted.
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
 * Tells the guard that no message of a request arrived, so that an outage of a provider is no reason to block its
 * countries. A transaction of its own, which first takes the application's row, as sends do. Never rejects.
 */
export async function revertGuardCounts(
  store: Pick<Store, 'write'>,
  guard: Guard,
  request: OtpRequest,
): Promise<void> {
  try {
    await store.write(async (tx) => {
      // For its lock alone, whatever has become of the application.
      await tx.applications.lockAndCheckCredentials(request.appId, 0)
      await guard.revert(tx, request)
    })
  } catch (error) {
    guard.onFault(error)
  }
}

/**
 * Runs a transaction that asks the guard. Where the guard itself fails, its part of the transaction cannot be undone
 * alone (PostgreSQL gives up the whole), so that the transaction is run once more without it: a code that somebody
 * waits for is worth more than a count.
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
