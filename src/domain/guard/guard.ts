import { utcDay } from '../log/analytics.ts'
import { inboxProvider } from '../model/delivery.ts'
import { wideNetworkOf, isInRange, parseRange } from '../model/network.ts'
import { guardHashForm, knownDays, type GuardAlert, type GuardRule, type Sender } from '../model/guard.ts'
import type { CostlyNumberType } from '../model/number-type.ts'
import { openCountry, type CountryCounts } from './country.ts'
import {
  countLastDay,
  countPending,
  discountPending,
  guardFigures,
  hasHadVisit,
  isExhausted,
  violatedListRules,
  type GuardSettings,
} from './rules.ts'
import { indexHash, type Keys } from '../model/keys.ts'
import type { OtpRequest } from '../model/request.ts'
import { isVirtualPhone } from '../model/phone.ts'
import type { Stores } from '../store/store.ts'
import { hourMs } from '../../shared/durations.ts'

export type GuardVerdict = {
  blocked: boolean
  violatedRules: GuardRule[]
  /** Set if this message showed that the conversion of its country fell. */
  alert?: GuardAlert | undefined
}

/** Fields of a request that the guard uses. */
export type GuardedRequest = Pick<
  OtpRequest,
  'developerId' | 'environment' | 'phone' | 'country' | 'clientIp' | 'provider' | 'createdAt' | 'resends'
>

/** A message to judge. */
export type GuardedMessage = GuardedRequest & { costlyType: CostlyNumberType | null }

/**
 * SMS-pumping protection. Calls are part of the caller's transaction. Lock order: the country, then prefix and
 * network.
 */
export type Guard = {
  /** Decides whether a message of this request may be sent, and counts it if so. */
  evaluate(
    tx: Pick<Stores, 'guard'>,
    message: GuardedMessage,
    sender: Sender,
    now: number,
  ): Promise<GuardVerdict>
  /**
   * Records that the code was verified: its messages no longer count as unverified, and its contexts become known.
   *
   * @param sender as at the send
   */
  recordConversion(
    tx: Pick<Stores, 'guard'>,
    request: GuardedRequest,
    sender: Sender,
    now: number,
  ): Promise<void>
  /**
   * Stops counting the request's messages as unverified because none was delivered. The daily cap keeps its
   * count.
   */
  revert(tx: Pick<Stores, 'guard'>, request: GuardedRequest, sender: Sender, now: number): Promise<void>
  /** Called when the guard itself fails. */
  onFault(error: unknown): void
  /** Called with a new alert, after its transaction. */
  onAlert(alert: GuardAlert): void
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
 * per message. Everything is counted per developer: a second application gains nothing, and no developer can close a
 * country for another.
 *
 * Blocked messages do not count as unverified: the limits bound what is sent, and a continuing attack does
 * not prolong the block.
 */
export function createGuard(needs: {
  settings: GuardSettings
  keys: Pick<Keys, 'guard'>
  onFault(error: unknown): void
  onAlert?(alert: GuardAlert): void
}): Guard & { configure(settings: GuardSettings): void } {
  let evaluator = createEvaluator(needs.settings, needs.keys)
  return {
    evaluate: (tx, message, sender, now) => evaluator.evaluate(tx, message, sender, now),
    recordConversion: (tx, request, sender, now) => evaluator.recordConversion(tx, request, sender, now),
    revert: (tx, request, sender, now) => evaluator.revert(tx, request, sender, now),
    onFault: needs.onFault,
    onAlert: (alert) => needs.onAlert?.(alert),
    /** Applies new settings from the next message on. Counts are kept. */
    configure(settings) {
      evaluator = createEvaluator(settings, needs.keys)
    },
  }
}

type Subjects = { country: string; prefix: string; network: string | undefined }

function createEvaluator(
  settings: GuardSettings,
  keys: Pick<Keys, 'guard'>,
): Pick<Guard, 'evaluate' | 'recordConversion' | 'revert'> {
  const { mode, trusted, totalPerDay } = settings
  const isEnforced = mode === 'enforce'
  const trustedRanges = trusted.addresses.map(parseRange)

  function isExempt({ environment, phone, clientIp, provider }: GuardedRequest): boolean {
    return (
      mode === 'off' ||
      // Inbox messages cost nothing. Mode `enforce` judges them too, so that operators can test rules without
      // a provider.
      (mode === 'monitor' && provider === inboxProvider) ||
      environment === 'test' ||
      isVirtualPhone(phone) ||
      trusted.prefixes.some((prefix) => phone.startsWith(prefix)) ||
      (clientIp !== null && isInRange(clientIp, trustedRanges))
    )
  }

  function toSubjects({ developerId, phone, country, clientIp }: GuardedRequest): Subjects {
    const hash = (kind: string, value: string) =>
      indexHash(keys.guard, `${developerId} ${kind} ${value}`, guardHashForm)
    const network = clientIp === null ? undefined : wideNetworkOf(clientIp)
    return {
      country: `${developerId} ${country ?? noCountry}`,
      prefix: hash('prefix', phone.slice(0, -4)),
      network: network === undefined ? undefined : hash('network', network),
    }
  }

  /**
   * Counts a stranger's message, unless a rule blocks it, and finds the rules that it violates by the counts so far.
   *
   * @param isKnownContext exempts it from the rules on country and prefix
   */
  async function countStranger(
    tx: Pick<Stores, 'guard'>,
    subjects: Subjects,
    isKnownContext: boolean,
    country: CountryCounts,
    now: number,
  ): Promise<GuardRule[]> {
    const violatedRules: GuardRule[] = []
    if (!isKnownContext && country.isClosed()) violatedRules.push('COUNTRY_UNVERIFIED')
    // Before any row of prefix and network is written: a country that is closed costs an attacker's messages little.
    if (isEnforced && violatedRules.length > 0) return violatedRules
    const { prefix, network } = subjects
    const day = utcDay(now)
    const counted = await tx.guard.addUnverified(countedSubjects(subjects), day, now)
    const before = await tx.guard.counts(countedSubjects(subjects), day - 1)
    const pairOf = (subject: string) => ({ today: counted.get(subject), before: before.get(subject) })

    if (!isKnownContext && isExhausted(countLastDay(pairOf(prefix), now), guardFigures.prefixPerDay))
      violatedRules.push('PREFIX_UNVERIFIED')
    if (network !== undefined) {
      const pair = pairOf(network)
      const usage = discountPending(countLastDay(pair, now), countPending(pair, now))
      const isSuspect =
        !isKnownContext &&
        country.hasAlert() &&
        hasHadVisit(pair, now) &&
        !(await tx.guard.hasVerified([network], utcDay(now) - knownDays))
      if (isSuspect || isExhausted(usage, guardFigures.networkPerDay))
        violatedRules.push('NETWORK_UNVERIFIED')
    }
    if (isEnforced && violatedRules.length > 0) {
      await tx.guard.adjust(countedSubjects(subjects), day, now, { messages: 1, verified: 0 })
      return violatedRules
    }
    const fromNetwork = network === undefined ? 0 : (counted.get(network)?.unverified ?? 1) - 1
    country.addUnverified(fromNetwork < guardFigures.perNetworkInCountry ? 1 : 0)
    return violatedRules
  }

  /** Judges and counts a stranger's message. */
  async function evaluateStranger(
    tx: Pick<Stores, 'guard'>,
    message: GuardedMessage,
    contexts: readonly string[],
    now: number,
  ): Promise<Pick<GuardVerdict, 'violatedRules' | 'alert'>> {
    const subjects = toSubjects(message)
    const isKnownContext =
      contexts.length > 0 && (await tx.guard.hasVerified(contexts, utcDay(now) - knownDays))
    const country = openCountry(await tx.guard.lockCountry(subjects.country), now)
    const violatedRules = await countStranger(tx, subjects, isKnownContext, country, now)
    if (isEnforced && violatedRules.length > 0) return { violatedRules }
    const alert = country.checkConversion()
    await tx.guard.putCountry(subjects.country, utcDay(now), country.close())
    return { violatedRules, alert: alert && { country: message.country ?? noCountry, ...alert } }
  }

  /** Counts a message against the daily cap of the installation. */
  async function violatesTotal(tx: Pick<Stores, 'guard'>, now: number): Promise<boolean> {
    if (totalPerDay === 0) return false
    const sent = await tx.guard.addSent(utcDay(now), isEnforced ? totalPerDay : unlimited)
    return sent === undefined || sent > totalPerDay
  }

  /** Takes the messages of a request back from the unverified ones. */
  async function adjustCounts(
    tx: Pick<Stores, 'guard'>,
    request: GuardedRequest,
    verified: 0 | 1,
    now: number,
  ): Promise<void> {
    const subjects = toSubjects(request)
    const { network } = subjects
    const at = request.createdAt
    const messages = 1 + request.resends
    const country = openCountry(await tx.guard.lockCountry(subjects.country), now)
    const change = { messages, verified }
    const remaining = await tx.guard.adjust(countedSubjects(subjects), utcDay(at), at, change)
    // A message that was sent uncounted must not improve the conversion of those that were counted.
    if (remaining.size === 0) return
    const ofNetwork = network === undefined ? undefined : remaining.get(network)
    const inCountry = (count: number) => Math.min(count, guardFigures.perNetworkInCountry)
    const counted =
      ofNetwork === undefined ? messages : inCountry(ofNetwork + messages) - inCountry(ofNetwork)
    country.adjust(at, counted, verified)
    await tx.guard.putCountry(subjects.country, utcDay(now), country.close())
  }

  return {
    async evaluate(tx, message, sender, now) {
      if (isExempt(message)) return allowedVerdict
      const country = message.country ?? noCountry
      const violatedRules = violatedListRules(settings, country, message.costlyType)
      const isBlocked = () => isEnforced && violatedRules.length > 0
      let alert: GuardAlert | undefined
      // When enforcing, a list that forbids the message decides alone; monitor mode evaluates every rule.
      if (!isBlocked() && !sender.isKnownPhone) {
        const judged = await evaluateStranger(tx, message, sender.contexts, now)
        violatedRules.push(...judged.violatedRules)
        alert = judged.alert
      }
      if (!isBlocked() && (await violatesTotal(tx, now))) violatedRules.push('TOTAL_DAILY')
      const blocked = isBlocked()
      const hour = Math.floor(now / hourMs)
      for (const rule of violatedRules) await tx.guard.addDecision({ hour, rule, country, blocked })
      return { blocked, violatedRules, alert }
    },

    async recordConversion(tx, request, sender, now) {
      if (isExempt(request)) return
      const { network } = toSubjects(request)
      const proven = network === undefined ? sender.contexts : [...sender.contexts, network]
      await tx.guard.addContexts(proven, utcDay(now))
      if (!sender.isKnownPhone) await adjustCounts(tx, request, 1, now)
    },

    async revert(tx, request, sender, now) {
      if (!isExempt(request) && !sender.isKnownPhone) await adjustCounts(tx, request, 0, now)
    },
  }
}

const countedSubjects = ({ prefix, network }: Subjects) =>
  network === undefined ? [prefix] : [prefix, network]
