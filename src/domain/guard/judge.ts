import { utcDay } from '../log/analytics.ts'
import { knownDays, type GuardAlert, type GuardCounts, type GuardRule, type Sender } from '../model/guard.ts'
import { openCountry, type CountryCounts } from './country.ts'
import { addSent, settle } from './counts.ts'
import { countedPair, noGuardChanges, type GuardFacts } from './facts.ts'
import {
  createGuardRowKeys,
  type CountedKeys,
  type CountedSubject,
  type GuardedMessage,
  type GuardedRequest,
  type GuardRowKeys,
} from './row-keys.ts'
import {
  countLastDay,
  countPending,
  discountPending,
  guardFigures,
  hasHadVisit,
  isExhausted,
  noCountry,
  violatedListRules,
  type GuardSettings,
} from './rules.ts'
import type { Keys } from '../model/keys.ts'
import type { GuardChanges } from '../store/guard.ts'
import { hourMs } from '../../shared/durations.ts'

export type GuardVerdict = {
  blocked: boolean
  violatedRules: GuardRule[]
  /** Set if this message showed that the conversion of its country fell. */
  alert?: GuardAlert | undefined
}

/**
 * Decides synchronously and without side effects: from the rows that it was given to the rows as they must be written.
 * Without facts, because a request is exempt or because they could not be read, every message passes uncounted.
 *
 * The sender is the same at each call for a request: as at its send.
 */
export type GuardJudge = GuardRowKeys & {
  /** Decides whether a message of this request may be sent, at the time of its keys, and counts it if so. */
  judge(
    facts: GuardFacts | undefined,
    message: GuardedMessage,
    sender: Sender,
  ): { verdict: GuardVerdict; changes: GuardChanges }
  /**
   * Records that the code was verified: its messages no longer count as unverified, and its contexts become known.
   */
  convert(facts: GuardFacts | undefined, request: GuardedRequest, now: number): GuardChanges
  /**
   * Stops counting the request's messages as unverified because none was delivered. The daily cap keeps its
   * count.
   */
  revert(facts: GuardFacts | undefined, request: GuardedRequest, now: number): GuardChanges
}

const unlimited = 2_147_483_647

/** Creates the rules against SMS pumping with their settings. */
export function createGuardJudge(settings: GuardSettings, keys: Pick<Keys, 'guard'>): GuardJudge {
  const { mode, totalPerDay } = settings
  const isEnforced = mode === 'enforce'

  /**
   * Counts a stranger's message, unless a rule blocks it, and finds the rules that it violates by the counts so far.
   *
   * @param isKnownContext exempts it from the rules on country and prefix
   * @param changedCounts filled with the changed rows
   */
  function countStranger(
    { counts, contexts }: GuardFacts,
    { prefix, network }: CountedKeys,
    isKnownContext: boolean,
    country: CountryCounts,
    now: number,
    changedCounts: GuardChanges['counts'],
  ): GuardRule[] {
    const violatedRules: GuardRule[] = []
    if (!isKnownContext && country.isClosed()) violatedRules.push('COUNTRY_UNVERIFIED')
    // A country that is closed costs an attacker's messages little: no row of prefix or network is written.
    if (isEnforced && violatedRules.length > 0) return violatedRules
    const ofPrefix = countedPair(counts, prefix, now)
    const ofNetwork = network && countedPair(counts, network, now)

    if (!isKnownContext && isExhausted(countLastDay(ofPrefix, now), guardFigures.prefixPerDay))
      violatedRules.push('PREFIX_UNVERIFIED')
    if (ofNetwork) {
      const usage = discountPending(countLastDay(ofNetwork, now), countPending(ofNetwork, now))
      const isSuspect =
        !isKnownContext &&
        country.hasAlert() &&
        hasHadVisit(ofNetwork, now) &&
        !isKnown(contexts.get(network.hash), now)
      if (isSuspect || isExhausted(usage, guardFigures.networkPerDay))
        violatedRules.push('NETWORK_UNVERIFIED')
    }
    const isBlocked = isEnforced && violatedRules.length > 0
    const put = (key: string, counted: GuardCounts) => {
      if (!isBlocked) changedCounts.set(key, counted)
      // A blocked message changes nothing but the time of the first one.
      else if (!counts.has(key)) changedCounts.set(key, settle(counted, now, { messages: 1, verified: 0 }))
    }
    put(prefix.today, ofPrefix.today)
    if (ofNetwork) put(network.today, ofNetwork.today)
    if (isBlocked) return violatedRules
    const fromNetwork = (ofNetwork?.today.unverified ?? 1) - 1
    country.addUnverified(fromNetwork < guardFigures.perNetworkInCountry ? 1 : 0)
    return violatedRules
  }

  /** Judges and counts a stranger's message. */
  function judgeStranger(
    facts: GuardFacts,
    counted: CountedKeys,
    message: GuardedMessage,
    sender: Sender,
    now: number,
    changes: GuardChanges,
  ): Pick<GuardVerdict, 'violatedRules' | 'alert'> {
    const isKnownContext = sender.contexts.some((context) => isKnown(facts.contexts.get(context), now))
    const country = openCountry(facts.country, now)
    const violatedRules = countStranger(facts, counted, isKnownContext, country, now, changes.counts)
    if (isEnforced && violatedRules.length > 0) return { violatedRules }
    const alert = country.checkConversion()
    changes.countries.set(counted.country, country.close())
    return { violatedRules, alert: alert && { country: message.country ?? noCountry, ...alert } }
  }

  /** Counts a message against the daily cap of the installation. */
  function violatesTotal({ keys: { total }, counts }: GuardFacts, changes: GuardChanges): boolean {
    if (totalPerDay === 0 || total === undefined) return false
    const sent = counts.get(total)?.unverified ?? 0
    if (sent >= (isEnforced ? totalPerDay : unlimited)) return true
    changes.counts.set(total, addSent(sent))
    return sent >= totalPerDay
  }

  /** Takes the messages of a request back from the unverified ones. */
  function settleCounts(
    { keys: { counted }, country: storedCountry, counts }: GuardFacts,
    { createdAt, resends }: GuardedRequest,
    verified: 0 | 1,
    now: number,
    changes: GuardChanges,
  ): void {
    if (!counted) return
    const messages = 1 + resends
    const settleSubject = (subject: CountedSubject | undefined) => {
      const before = subject && counts.get(subject.today)
      if (!before) return undefined
      const after = settle(before, createdAt, { messages, verified })
      changes.counts.set(subject.today, after)
      return after
    }
    const prefix = settleSubject(counted.prefix)
    const network = settleSubject(counted.network)
    // A message that was sent uncounted must not improve the conversion of those that were counted.
    if (!prefix && !network) return
    const inCountry = (count: number) => Math.min(count, guardFigures.perNetworkInCountry)
    const countedMessages = network
      ? inCountry(network.unverified + messages) - inCountry(network.unverified)
      : messages
    const country = openCountry(storedCountry, now)
    country.adjust(createdAt, countedMessages, verified)
    changes.countries.set(counted.country, country.close())
  }

  return {
    ...createGuardRowKeys(settings, keys),

    judge(facts, message, sender) {
      const changes = noGuardChanges()
      const now = facts?.keys.judgedAt
      if (!facts || now === undefined) return { verdict: { blocked: false, violatedRules: [] }, changes }
      const country = message.country ?? noCountry
      const violatedRules = violatedListRules(settings, message)
      const isBlocked = () => isEnforced && violatedRules.length > 0
      let alert: GuardAlert | undefined
      const { counted } = facts.keys
      // When enforcing, a list that forbids the message decides alone; monitor mode evaluates every rule.
      if (!isBlocked() && counted) {
        const judged = judgeStranger(facts, counted, message, sender, now, changes)
        violatedRules.push(...judged.violatedRules)
        alert = judged.alert
      }
      if (!isBlocked() && violatesTotal(facts, changes)) violatedRules.push('TOTAL_DAILY')
      const blocked = isBlocked()
      const hour = Math.floor(now / hourMs)
      const count = { flagged: blocked ? 0 : 1, blocked: blocked ? 1 : 0 }
      for (const rule of violatedRules)
        changes.decisions.set(`${hour} ${rule} ${country}`, { hour, rule, country, ...count })
      return { verdict: { blocked, violatedRules, alert }, changes }
    },

    convert(facts, request, now) {
      const changes = noGuardChanges()
      if (!facts) return changes
      for (const context of facts.keys.contexts) changes.contexts.set(context, utcDay(now))
      settleCounts(facts, request, 1, now, changes)
      return changes
    },

    revert(facts, request, now) {
      const changes = noGuardChanges()
      if (facts) settleCounts(facts, request, 0, now, changes)
      return changes
    },
  }
}

/** Tells whether a context or network verified a phone within the days that make it known. */
const isKnown = (verifiedDay: number | undefined, now: number) =>
  verifiedDay !== undefined && verifiedDay >= utcDay(now) - knownDays
