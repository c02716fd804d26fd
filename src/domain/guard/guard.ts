import { dayOf } from '../log/analytics.ts'
import { inboxProvider } from '../model/delivery.ts'
import { clientOf, isInRange, parseRange } from './address.ts'
import { guardDayMs, guardHistoryDays, guardHourMs, guardWindowMs, windowOf } from './counts.ts'
import {
  countryRules,
  listRules,
  noUsage,
  subjectRules,
  type GuardRule,
  type GuardSettings,
} from './rules.ts'
import { hmac, type Keys } from '../model/keys.ts'
import type { OtpRequest } from '../model/request.ts'
import { isVirtualPhone } from '../model/phone.ts'
import type { Store, Stores } from '../store/store.ts'

export type GuardVerdict = { blocked: boolean; rules: GuardRule[] }

/** What of a request the guard looks at. */
export type GuardedRequest = Pick<
  OtpRequest,
  'appId' | 'environment' | 'phone' | 'country' | 'clientIp' | 'provider' | 'createdAt' | 'resends'
>

/** Each call is part of the transaction that it speaks of. Whoever calls holds the application's row. */
export type Guard = {
  /** Whether a message of this request may go out; what may is counted. */
  judge(tx: Stores, request: GuardedRequest, now: number): Promise<GuardVerdict>
  /** Somebody gave the code back: its messages are no longer unverified. */
  credit(tx: Stores, request: GuardedRequest, now: number): Promise<void>
  /** No message of the request went out, so that none can be verified. What the caps count stays counted. */
  withdraw(tx: Stores, request: GuardedRequest): Promise<void>
  /** Told when the guard itself failed. */
  onFault(error: unknown): void
}

/** The country of numbers that belong to none, as ITU-T's shared codes do: satellites, and much of the fraud. */
export const noCountry = '001'

const unlimited = 2_147_483_647
const passed: GuardVerdict = { blocked: false, rules: [] }

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
}): Guard & { apply(settings: GuardSettings): void } {
  let rules = createRules(needs.settings, needs.keys)
  return {
    judge: (tx, request, now) => rules.judge(tx, request, now),
    credit: (tx, request, now) => rules.credit(tx, request, now),
    withdraw: (tx, request) => rules.withdraw(tx, request),
    onFault: needs.onFault,
    /** From the next message on. What was counted stays. */
    apply(settings) {
      rules = createRules(settings, needs.keys)
    },
  }
}

function createRules(settings: GuardSettings, keys: Pick<Keys, 'guard'>): Omit<Guard, 'onFault'> {
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

  function subjectsOf({ appId, phone, country, clientIp }: GuardedRequest) {
    const hash = (text: string) => hmac(keys.guard).update(text).digest('base64url').slice(0, 22)
    const client = clientIp === null ? undefined : clientOf(clientIp)
    return {
      application: appId,
      country: `${appId} country ${country ?? noCountry}`,
      prefix: `${appId} prefix ${hash(phone.slice(0, -4))}`,
      address: client === undefined ? undefined : `${appId} address ${hash(client)}`,
    }
  }

  /** What the counts say about one message more. */
  async function countedRules(
    tx: Stores,
    subjects: ReturnType<typeof subjectsOf>,
    country: string,
    now: number,
  ): Promise<GuardRule[]> {
    const after = { hour: now - guardHourMs - guardWindowMs, day: now - guardDayMs - guardWindowMs }
    const usage = await tx.guard.usage(counted(subjects), after)
    const of = (subject: string) => usage.get(subject) ?? noUsage
    const rules = await countryRules(settings, of(subjects.country), () =>
      tx.guard.bestDay(subjects.country, dayOf(now) - guardHistoryDays),
    )
    rules.push(...subjectRules(settings, 'prefix', of(subjects.prefix)))
    if (subjects.address === undefined) return rules
    rules.push(...subjectRules(settings, 'address', of(subjects.address)))
    if (unverified.addressCountries === 0) return rules
    const countries = await tx.guard.addressCountries(subjects.address, now - guardDayMs)
    const others = countries.filter((one) => one.country !== country && !one.verified).length
    const isVerified = countries.some((one) => one.country === country && one.verified)
    if (!isVerified && others + 1 > unverified.addressCountries) rules.push('ADDRESS_COUNTRIES')
    return rules
  }

  /** Counts a message for the caps, unless one of them is reached and `enforced`: then for none. */
  async function capRules(
    tx: Stores,
    application: string,
    day: number,
    enforced: boolean,
  ): Promise<GuardRule[]> {
    const { applicationPerDay, totalPerDay } = caps
    const rules: GuardRule[] = []
    const hasCap = applicationPerDay > 0
    if (hasCap && (await tx.guard.sentOn(application, day)) >= applicationPerDay)
      rules.push('APPLICATION_DAILY')
    if (enforced && rules.length > 0) return rules
    // The one count that applications share: what stands in it is only known when it is taken.
    if (totalPerDay > 0) {
      const sent = await tx.guard.addSent('total', day, enforced ? totalPerDay : unlimited)
      if (sent === undefined || sent > totalPerDay) rules.push('TOTAL_DAILY')
      if (sent === undefined) return rules
    }
    if (hasCap) await tx.guard.addSent(application, day, unlimited)
    return rules
  }

  async function note(tx: Stores, rules: GuardRule[], country: string, blocked: boolean, now: number) {
    const hour = Math.floor(now / guardHourMs)
    for (const rule of rules) await tx.guard.addDecision({ hour, rule, country, blocked })
  }

  return {
    async judge(tx, request, now) {
      if (isExempt(request)) return passed
      const country = request.country ?? noCountry
      const subjects = subjectsOf(request)
      const enforced = mode === 'enforce'
      const rules = listRules(settings, country)
      // A list that forbids needs no counts beside it; who only watches wants to know all.
      if (!enforced || rules.length === 0) rules.push(...(await countedRules(tx, subjects, country, now)))
      if (!enforced || rules.length === 0) {
        rules.push(...(await capRules(tx, subjects.application, dayOf(now), enforced)))
      }
      const blocked = enforced && rules.length > 0
      await note(tx, rules, country, blocked, now)
      if (blocked) return { blocked, rules }
      await tx.guard.addUnverified(counted(subjects), windowOf(request.createdAt))
      if (subjects.address !== undefined && unverified.addressCountries > 0) {
        await tx.guard.addAddressCountry(subjects.address, country, now)
      }
      return { blocked, rules }
    },

    async credit(tx, request, now) {
      if (isExempt(request)) return
      const subjects = subjectsOf(request)
      const change = { messages: 1 + request.resends, verified: 1 }
      // A code that went out uncounted says nothing about the ones that were counted.
      if (!(await tx.guard.settle(counted(subjects), windowOf(request.createdAt), change))) return
      await tx.guard.addVerified(subjects.country, dayOf(request.createdAt))
      if (subjects.address !== undefined && unverified.addressCountries > 0) {
        await tx.guard.verifyAddressCountry(subjects.address, request.country ?? noCountry, now)
      }
    },

    async withdraw(tx, request) {
      if (isExempt(request)) return
      const change = { messages: 1 + request.resends, verified: 0 }
      await tx.guard.settle(counted(subjectsOf(request)), windowOf(request.createdAt), change)
    },
  }
}

const counted = ({
  country,
  prefix,
  address,
}: {
  country: string
  prefix: string
  address: string | undefined
}) => (address === undefined ? [country, prefix] : [country, prefix, address])

const openGate: Guard = {
  judge: () => Promise.resolve(passed),
  credit: () => Promise.resolve(),
  withdraw: () => Promise.resolve(),
  onFault: () => {},
}

/**
 * Tells the guard that no message of a request arrived, so that an outage of a provider is no reason to block its
 * countries. A transaction of its own, which first takes the application's row, as sends do. Never rejects.
 */
export async function withdrawMessages(
  store: Pick<Store, 'write'>,
  guard: Guard,
  request: OtpRequest,
): Promise<void> {
  try {
    await store.write(async (tx) => {
      // For its lock alone, whatever has become of the application.
      await tx.applications.recheck(request.appId, 0)
      await guard.withdraw(tx, request)
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
  const watch = async <R>(asked: Promise<R>): Promise<R> => {
    try {
      return await asked
    } catch (error) {
      fault = { error }
      throw error
    }
  }
  try {
    return await run({
      judge: (...args) => watch(guard.judge(...args)),
      credit: (...args) => watch(guard.credit(...args)),
      withdraw: (...args) => watch(guard.withdraw(...args)),
      onFault: guard.onFault,
    })
  } catch (error) {
    if (fault === undefined) throw error
    guard.onFault(fault.error)
    return await run(openGate)
  }
}
