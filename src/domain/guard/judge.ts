import { evidenceDays, type GuardAlert, type GuardRule, type Sender } from '../model/guard.ts'
import type { Keys } from '../model/keys.ts'
import { noCountry } from '../model/phone.ts'
import { noGuardChanges, type GuardChanges, type GuardRows } from '../store/guard.ts'
import { dayMs, utcDay } from '../../shared/durations.ts'
import {
  allowanceOf,
  findExceeded,
  isFromPool,
  namedBase,
  relayAllowance,
  scarcity,
  type Usages,
} from './allowances.ts'
import { challengeTimes } from './challenge.ts'
import {
  createGuardRowKeys,
  verifiedFrom,
  type CountedMessage,
  type GuardedMessage,
  type GuardedRequest,
  type GuardKeys,
  type RelayKeys,
  type SubjectKeys,
} from './row-keys.ts'
import { violatedListRules, type GuardSettings } from './settings.ts'
import { hourOf, openLedger, type Ledger, type Subject } from './subject.ts'
import { findAlert, noteHours } from './usual.ts'

export type GuardVerdict = {
  blocked: boolean
  violatedRules: GuardRule[]
  /** Set if this message showed that its country or prefix sends more unverified messages than usual. */
  alert?: GuardAlert | undefined
  /** `needed`: blocked, and a passed challenge would let it pass. `passed`: sent because of one. */
  challenge?: 'needed' | 'passed' | undefined
  /** Whether the network or device of the sender had fewer unverified messages than phones verified in an average day. */
  isKnownOrigin?: boolean
}

type PricedRequest = GuardedRequest & Pick<GuardedMessage, 'estimatePrice'>

/**
 * Decides synchronously and without side effects: from the rows that it reads to the rows as they must be written. Without
 * keys, because a request is exempt, every message passes uncounted.
 */
export type GuardJudge = ReturnType<typeof createGuardJudge>

/** Rules by which a country's allowance is spent, or scarce. */
const rulesOfCountry = new Set<GuardRule>(['COUNTRY_UNVERIFIED', 'POOL_UNVERIFIED', 'FAIR_SHARE'])

/** Creates the judge of messages with its settings. */
export function createGuardJudge(settings: GuardSettings, keys: Pick<Keys, 'guard'>) {
  const isEnforced = settings.mode === 'enforce'

  /** Compares a stranger's message with the allowances, or a multiple of them, and counts it if it passes. */
  function judgeStranger(
    ledger: Ledger,
    keys: SubjectKeys,
    challengeKey: string | undefined,
    message: GuardedMessage,
    isRepeat: boolean,
  ): GuardVerdict {
    const subjects = openSubjects(ledger, keys)
    const { country, prefix, network, device, pool } = subjects
    const usages: Usages = {
      country: country.usage(),
      namedBase: noteLaunch(country, message),
      pool: pool.usage().unverified,
      drawn: country.total('drawn'),
      prefix: prefix.usage(),
      network: network?.usage(),
      device: device?.usage(),
      isRepeat,
    }
    noteHours(ledger, country)
    const hasPassed = takeSolution(ledger, message, challengeKey)
    const times = hasPassed ? challengeTimes : 1
    const violatedRules = findExceeded(usages)
    const isBlocked = isEnforced && (hasPassed ? findExceeded(usages, times) : violatedRules).length > 0
    if (!isBlocked) {
      countMessages(subjects, ledger.now, 1)
      if (isFromPool(usages, times)) country.drawFrom(pool)
    }
    // An attacker's networks are known by what they try, or each would be new until one of its messages passes.
    else if (violatedRules.includes('FAIR_SHARE')) network?.add('earlier', ledger.now, scarcity.refused)
    // For as long as the allowance is spent: customers who are refused leave no evidence.
    if (violatedRules.some((rule) => rulesOfCountry.has(rule))) country.hold(usages.country.evidence)
    const alert = findAlert(message, violatedRules, country, { prefix, pool })
    const isOffered = settings.challenge !== null && message.challenge !== undefined && !hasPassed
    const needsChallenge = isBlocked && isOffered && findExceeded(usages, challengeTimes).length === 0
    const isPassed = !isBlocked && hasPassed && violatedRules.length > 0
    return {
      blocked: isBlocked,
      violatedRules,
      alert,
      challenge: needsChallenge ? 'needed' : isPassed ? 'passed' : undefined,
      isKnownOrigin: [usages.network, usages.device].some(
        (usage) => usage && usage.unverified < usage.evidence / evidenceDays,
      ),
    }
  }

  /**
   * Compares a message with the code of another system with what is usual, because most callers never tell whether it was
   * verified, and counts it if it passes. Beyond that the allowance of the country pays, which has evidence if they do, up to
   * where it may be scarce. The rest is for sends, whose networks distinguish customers from strangers.
   */
  function judgeRelayed(ledger: Ledger, keys: RelayKeys, message: GuardedMessage): GuardVerdict {
    const [relay, country, all] = [ledger.open(keys.volume), ledger.open(keys.country), ledger.open(keys.all)]
    noteLaunch(relay, message)
    noteHours(ledger, relay, true)
    noteHours(ledger, all)
    const { unverified, evidence } = country.usage()
    const allowance = relayAllowance(relay.windows, relay.held(), ledger.now)
    const isUnusual = relay.usage().unverified >= allowance
    if (isUnusual && isEnforced) relay.hold(allowance)
    const isExceeded = isUnusual && unverified >= scarcity.least * allowanceOf('country', evidence)
    const blocked = isExceeded && isEnforced
    if (!blocked) for (const subject of [relay, all]) subject.count(ledger.now, 1)
    if (isUnusual && !isExceeded) relay.drawFrom(country)
    const violatedRules: GuardRule[] = isExceeded ? ['RELAY_VOLUME'] : []
    return { blocked, violatedRules, alert: findAlert(message, violatedRules, relay, { relays: all }) }
  }

  /** Notes since when `guard.countries` names the country of a message. @returns its own base if it does */
  function noteLaunch(country: Subject, { country: code }: GuardedRequest): number | undefined {
    const isNamed = settings.countries.includes(code ?? noCountry)
    if (isNamed !== (country.windows.launchDay !== undefined))
      country.note({ launchDay: isNamed ? utcDay(country.now) : undefined })
    return namedBase(country.windows.launchDay, country.now)
  }

  /** Lists the daily cap and the daily budget of the installation, with what the message adds to them. */
  function capsOf({ total, spend }: GuardKeys, { estimatePrice }: PricedRequest) {
    const { totalPerDay, spendPerDay } = settings
    const caps: Array<{ rule: GuardRule; key: string; limit: number; amount: number }> = []
    if (total) caps.push({ rule: 'TOTAL_DAILY', key: total, limit: totalPerDay, amount: 1 })
    if (spend)
      caps.push({ rule: 'SPEND_DAILY', key: spend, limit: spendPerDay, amount: estimatePrice?.() ?? 0 })
    return caps
  }

  return {
    ...createGuardRowKeys(settings, keys),

    /** Decides whether a message of this request may be sent, and counts it if so. */
    judge(
      rows: GuardRows,
      keys: GuardKeys | undefined,
      message: GuardedMessage,
      sender: Sender,
      now: number,
    ): { verdict: GuardVerdict; changes: GuardChanges } {
      if (!keys) return passUncounted()
      const ledger = openLedger(rows, now)
      const { subjects, relay } = keys
      const caps = capsOf(keys, message)
      const exceeded = caps.filter(
        ({ key, amount, limit }) => ledger.open(key).usage().unverified + amount > limit,
      )
      const violatedRules = [...violatedListRules(settings, message), ...exceeded.map(({ rule }) => rule)]
      let judged: GuardVerdict | undefined
      // When enforcing, lists and caps decide alone, and nothing is counted; monitor mode evaluates every rule.
      const isStopped = isEnforced && violatedRules.length > 0
      if (relay && !isStopped) judged = judgeRelayed(ledger, relay, message)
      else if (subjects && !isStopped) {
        const isRepeat = sender.sentAt > now - dayMs
        judged = judgeStranger(ledger, subjects, keys.challenge, message, isRepeat)
      }
      if (judged) violatedRules.push(...judged.violatedRules)
      const blocked = isStopped || judged?.blocked === true
      if (!blocked) for (const { key, amount } of caps) ledger.open(key).add('unverified', now, amount)
      if (!blocked) for (const history of keys.usual ?? []) ledger.open(history).add('hours', now, 1)
      const hour = hourOf(now)
      const code = message.country ?? noCountry
      const count = { flagged: blocked ? 0 : 1, blocked: blocked ? 1 : 0 }
      for (const rule of violatedRules)
        ledger.decisions.set(`${hour} ${rule} ${code}`, { hour, rule, country: code, ...count })
      return { verdict: { ...judged, blocked, violatedRules }, changes: ledger.close() }
    },

    /** Records that the code was verified: its messages no longer count, and its phone is evidence. */
    convert(
      rows: GuardRows,
      keys: GuardKeys | undefined,
      request: CountedMessage,
      sender: Sender,
      now: number,
    ): GuardChanges {
      const ledger = openLedger(rows, now)
      if (!keys?.subjects) return ledger.close()
      if (utcDay(sender.verifiedAt) !== utcDay(now)) {
        const { country, prefix, network, device } = openSubjects(ledger, keys.subjects)
        for (const subject of [country, prefix]) subject.addEvidence(sender.verifiedAt)
        for (const subject of [network, device]) subject?.addEvidence(verifiedFrom(sender, subject.key))
      }
      // The messages to a known phone were not counted.
      if (!sender.isKnownPhone) takeBack(ledger, keys, request)
      return ledger.close()
    },

    /**
     * Stops counting the request's messages because no provider took one: neither as unverified, nor in the cap and the
     * budget of the day, which anyone could use up with numbers that do not exist.
     */
    revert(rows: GuardRows, keys: GuardKeys | undefined, request: PricedRequest, now: number): GuardChanges {
      const ledger = openLedger(rows, now)
      if (!keys) return ledger.close()
      takeBack(ledger, keys, request)
      const { createdAt, resends } = request
      for (const { key, amount } of capsOf(keys, request))
        ledger.open(key).add('unverified', createdAt, (-1 - resends) * amount)
      return ledger.close()
    },
  }
}

export const passUncounted = (): { verdict: GuardVerdict; changes: GuardChanges } => ({
  verdict: { blocked: false, violatedRules: [] },
  changes: noGuardChanges(),
})

/** Tells whether a message comes with a passed challenge, and remembers a solution: each counts once. */
function takeSolution(ledger: Ledger, { challenge }: GuardedMessage, key: string | undefined): boolean {
  if (challenge?.outcome !== 'passed') return false
  if (key === undefined) return true
  const solution = ledger.open(key)
  if (solution.total('unverified') > 0) return false
  solution.add('unverified', ledger.now, 1)
  return true
}

type Subjects = ReturnType<typeof openSubjects>

function openSubjects(ledger: Ledger, { country, prefix, network, device, pool }: SubjectKeys) {
  const openTold = (key: string | undefined) => (key === undefined ? undefined : ledger.open(key))
  return {
    country: ledger.open(country),
    prefix: ledger.open(prefix),
    network: openTold(network),
    device: openTold(device),
    pool: ledger.open(pool),
  }
}

/** Counts unverified messages of a time, or takes them back. */
function countMessages({ country, prefix, network, device }: Subjects, at: number, messages: number): void {
  for (const subject of [country, prefix, network, device]) subject?.count(at, messages)
  for (const sender of [network, device]) sender?.add('earlier', at, messages)
}

/** Takes the messages of a request back from the unverified ones, and what another subject paid for them. */
function takeBack(ledger: Ledger, { subjects: keys, relay }: GuardKeys, request: GuardedRequest): void {
  const { createdAt, resends } = request
  if (relay) {
    const volume = ledger.open(relay.volume)
    for (const subject of [volume, ledger.open(relay.all)]) subject.count(createdAt, -1)
    volume.giveBack(ledger.open(relay.country), createdAt, 1)
  } else if (keys) {
    const subjects = openSubjects(ledger, keys)
    countMessages(subjects, createdAt, -1 - resends)
    subjects.country.giveBack(subjects.pool, createdAt, 1 + resends)
  }
}
