import { utcDay } from '../log/analytics.ts'
import type { GuardAlert, GuardRule, Sender } from '../model/guard.ts'
import type { Keys } from '../model/keys.ts'
import type { GuardChanges } from '../store/guard.ts'
import { dayMs, hourMs } from '../../shared/durations.ts'
import { allowanceOf, findExceeded, isFromPool, type Usages } from './allowances.ts'
import { challengeTimes } from './challenge.ts'
import { noGuardChanges, type GuardFacts } from './facts.ts'
import {
  createGuardRowKeys,
  historyKey,
  solutionOf,
  verifiedFrom,
  type CountedMessage,
  type GuardedMessage,
  type GuardedRequest,
  type GuardRowKeys,
  type SubjectKeys,
} from './row-keys.ts'
import { noCountry } from '../model/phone.ts'
import { judgeRelayed, takeBackRelayed } from './relayed.ts'
import { violatedListRules, type GuardSettings } from './settings.ts'
import { giveBack, namedBase, openSubject, type Subject } from './subject.ts'
import { findAlert, noteHours, poolAlert } from './usual.ts'

export type GuardVerdict = {
  blocked: boolean
  violatedRules: GuardRule[]
  /** Set if this message showed that its country or prefix sends more unverified messages than usual. */
  alert?: GuardAlert | undefined
  /** `needed`: blocked, and a passed challenge would let it pass. `passed`: sent because of one. */
  challenge?: 'needed' | 'passed' | undefined
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
  /** Records that the code was verified: its messages no longer count, and its phone is evidence. */
  convert(facts: GuardFacts | undefined, request: CountedMessage, sender: Sender, now: number): GuardChanges
  /**
   * Stops counting the request's messages as unverified because none was delivered. The daily cap keeps its
   * count.
   */
  revert(facts: GuardFacts | undefined, request: GuardedRequest, now: number): GuardChanges
}

/** Creates the judge of messages with its settings. */
export function createGuardJudge(settings: GuardSettings, keys: Pick<Keys, 'guard'>): GuardJudge {
  const { mode, totalPerDay } = settings
  const isEnforced = mode === 'enforce'

  /** Compares a stranger's message with the allowances, or a multiple of them, and counts it if it passes. */
  function judgeStranger(
    facts: GuardFacts,
    subjects: SubjectKeys,
    message: GuardedMessage,
    isRepeat: boolean,
    now: number,
    changes: GuardChanges,
  ): GuardVerdict {
    const open = openSubjects(facts, subjects, now)
    const { country, prefix, network, device } = open
    const pool = openSubject(facts.rows.get(facts.keys.pool), now)
    const hours = noteHours(
      country,
      facts.rows.get(subjects.country),
      facts.rows.get(historyKey(subjects.country)),
      now,
    )
    if (hours) changes.rows.set(historyKey(subjects.country), hours)
    const usages: Usages = {
      country: country.usage(),
      namedBase: namedBase(settings, country, message.country ?? noCountry, now),
      pool: pool.usage().unverified,
      prefix: prefix.usage(),
      network: network?.usage(),
      device: device?.usage(),
      isRepeat,
    }
    const hasPassed = takeSolution(facts, message, changes)
    const times = hasPassed ? challengeTimes : 1
    const violatedRules = findExceeded(usages)
    const isBlocked = isEnforced && (hasPassed ? findExceeded(usages, times) : violatedRules).length > 0
    if (!isBlocked) {
      for (const subject of Object.values(open)) subject?.add(now, 1)
      if (isFromPool(usages, times)) {
        country.draw(1)
        pool.add(now, 1)
        changes.rows.set(facts.keys.pool, pool.close())
      }
    }
    const code = message.country ?? noCountry
    const ofPool = violatedRules.includes('POOL_UNVERIFIED') ? poolAlert(code, pool, now) : undefined
    if (ofPool) changes.rows.set(facts.keys.pool, pool.close(now))
    const digits = message.phone.slice(0, -4)
    const alert = ofPool ? undefined : findAlert(code, country, { digits, subject: prefix }, now)
    const isScarce = violatedRules.includes('COUNTRY_UNVERIFIED') || violatedRules.includes('FAIR_SHARE')
    const isHeld = isScarce && country.holdEvidence()
    if (!isBlocked) putSubjects(changes, subjects, open)
    // A blocked message costs little: it writes nothing but what a clock brought.
    if (!isBlocked || alert || hours || isHeld)
      changes.rows.set(subjects.country, country.close(alert ? now : undefined))
    return {
      blocked: isBlocked,
      violatedRules,
      alert: alert ?? ofPool,
      challenge: isBlocked
        ? mayPassLater()
          ? 'needed'
          : undefined
        : hasPassed && violatedRules.length > 0
          ? 'passed'
          : undefined,
    }

    function mayPassLater(): boolean {
      const isOffered = settings.challenge !== null && message.challenge !== undefined && !hasPassed
      return isOffered && findExceeded(usages, challengeTimes).length === 0 && !isTotalSpent(facts, now)
    }
  }

  /** Tells whether a message comes with a passed challenge, and remembers a solution: each counts once. */
  function takeSolution({ rows }: GuardFacts, message: GuardedMessage, changes: GuardChanges): boolean {
    if (message.challenge?.outcome !== 'passed') return false
    const solution = solutionOf(message)
    if (!solution) return true
    if (rows.has(solution.key)) return false
    changes.rows.set(solution.key, { windows: [[1]], alertedAt: 0, until: solution.until })
    return true
  }

  const isTotalSpent = ({ keys: { total }, rows }: GuardFacts, now: number): boolean =>
    totalPerDay > 0 &&
    total !== undefined &&
    openSubject(rows.get(total), now).usage().unverified >= totalPerDay

  /** Counts a message against the daily cap of the installation. */
  function violatesTotal(facts: GuardFacts, now: number, changes: GuardChanges): boolean {
    const { total } = facts.keys
    if (totalPerDay === 0 || total === undefined) return false
    const isExceeded = isTotalSpent(facts, now)
    if (isExceeded && isEnforced) return true
    const sent = openSubject(facts.rows.get(total), now)
    sent.add(now, 1)
    changes.rows.set(total, sent.close())
    return isExceeded
  }

  /** Takes the messages of a request back from the unverified ones, and gives back what the pool paid too much. */
  function takeBack(
    facts: GuardFacts,
    open: ReturnType<typeof openSubjects>,
    { createdAt, resends }: GuardedRequest,
    now: number,
    changes: GuardChanges,
  ): void {
    for (const subject of Object.values(open)) subject?.add(createdAt, -1 - resends)
    const { country } = open
    const pool = openSubject(facts.rows.get(facts.keys.pool), now)
    if (giveBack(country, allowanceOf('country', country.usage().evidence), pool))
      changes.rows.set(facts.keys.pool, pool.close())
  }

  return {
    ...createGuardRowKeys(settings, keys),

    judge(facts, message, sender) {
      const changes = noGuardChanges()
      const now = facts?.keys.judgedAt
      if (!facts || now === undefined) return { verdict: { blocked: false, violatedRules: [] }, changes }
      const country = message.country ?? noCountry
      const violatedRules = violatedListRules(settings, message)
      let blocked = isEnforced && violatedRules.length > 0
      let judged: GuardVerdict | undefined
      const { subjects, relay } = facts.keys
      // When enforcing, a list that forbids the message decides alone; monitor mode evaluates every rule.
      if (!blocked && !sender.isKnownPhone) {
        judged = subjects
          ? judgeStranger(facts, subjects, message, sender.sentAt > now - dayMs, now, changes)
          : relay && judgeRelayed(settings, facts, relay, country, now, changes)
        violatedRules.push(...(judged?.violatedRules ?? []))
        blocked = judged?.blocked ?? false
      }
      if (!blocked && violatesTotal(facts, now, changes)) {
        violatedRules.push('TOTAL_DAILY')
        blocked = isEnforced
      }
      const hour = Math.floor(now / hourMs)
      const count = { flagged: blocked ? 0 : 1, blocked: blocked ? 1 : 0 }
      for (const rule of violatedRules)
        changes.decisions.set(`${hour} ${rule} ${country}`, { hour, rule, country, ...count })
      return { verdict: { ...judged, blocked, violatedRules }, changes }
    },

    convert(facts, request, sender, now) {
      const changes = noGuardChanges()
      if (!facts?.keys.subjects) return changes
      const { subjects, relay } = facts.keys
      const open = openSubjects(facts, subjects, now)
      const add = (subject: Subject | undefined, before: number) => {
        if (utcDay(before) !== utcDay(now)) subject?.addEvidence(now, before)
      }
      add(open.country, sender.verifiedAt)
      add(open.prefix, sender.verifiedAt)
      if (subjects.network) add(open.network, verifiedFrom(sender, subjects.network))
      if (subjects.device) add(open.device, verifiedFrom(sender, subjects.device))
      // The messages to a known phone were not counted.
      if (relay) takeBackRelayed(settings, facts, relay, open.country, request, now, changes)
      else if (!sender.isKnownPhone) takeBack(facts, open, request, now, changes)
      putSubjects(changes, subjects, open)
      return changes
    },

    revert(facts, request, now) {
      const changes = noGuardChanges()
      if (!facts) return changes
      const { subjects, relay } = facts.keys
      if (relay) {
        const country = openSubject(facts.rows.get(relay.country), now)
        takeBackRelayed(settings, facts, relay, country, request, now, changes)
      }
      if (!subjects) return changes
      const open = openSubjects(facts, subjects, now)
      takeBack(facts, open, request, now, changes)
      putSubjects(changes, subjects, open)
      return changes
    },
  }
}

function openSubjects({ rows }: GuardFacts, { country, prefix, network, device }: SubjectKeys, now: number) {
  const open = (key: string) => openSubject(rows.get(key), now)
  return {
    country: open(country),
    prefix: open(prefix),
    network: network === undefined ? undefined : open(network),
    device: device === undefined ? undefined : open(device),
  }
}

function putSubjects(
  { rows }: GuardChanges,
  { country, prefix, network, device }: SubjectKeys,
  open: ReturnType<typeof openSubjects>,
): void {
  rows.set(country, open.country.close())
  rows.set(prefix, open.prefix.close())
  if (network !== undefined && open.network) rows.set(network, open.network.close())
  if (device !== undefined && open.device) rows.set(device, open.device.close())
}
