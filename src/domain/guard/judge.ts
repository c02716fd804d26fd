import { utcDay } from '../log/analytics.ts'
import type { GuardAlert, GuardRule, Sender } from '../model/guard.ts'
import type { Keys } from '../model/keys.ts'
import type { GuardChanges } from '../store/guard.ts'
import { dayMs } from '../../shared/durations.ts'
import { allowanceOf, findExceeded, isFromPool, scarcity, type Usages } from './allowances.ts'
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
  type SubjectKeys,
} from './row-keys.ts'
import { noCountry } from '../model/phone.ts'
import { judgeRelayed, takeBackRelayed } from './relayed.ts'
import { violatedListRules, type GuardSettings } from './settings.ts'
import {
  addEvidence,
  addMessages,
  closeSubject,
  draw,
  giveBack,
  holdEvidence,
  hourOf,
  namedBase,
  openSubject,
  remember,
  total,
  usageOf,
  type Subject,
} from './subject.ts'
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
 * Decides synchronously and without side effects: from the rows that it reads to the rows as they must be written. Without
 * facts, because a request is exempt or because they could not be read, every message passes uncounted.
 */
export type GuardJudge = ReturnType<typeof createGuardJudge>

/** Creates the judge of messages with its settings. */
export function createGuardJudge(settings: GuardSettings, keys: Pick<Keys, 'guard'>) {
  const { mode } = settings
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
    const { rows } = facts
    const code = message.country ?? noCountry
    const stored = rows.row(subjects.country)
    const open = openSubjects(facts, subjects, now)
    const { country, prefix, network, device } = open
    const hours = noteHours(country, stored, () => rows.row(historyKey(subjects.country)))
    if (hours) changes.rows.set(historyKey(subjects.country), hours)
    const usage = usageOf(country)
    const named = namedBase(settings, country, code)
    const pool = isFromPool(usage, named) ? openSubject(rows.row(facts.keys.pool), now) : undefined
    const usages: Usages = {
      country: usage,
      namedBase: named,
      pool: pool ? usageOf(pool).unverified : 0,
      prefix: usageOf(prefix),
      network: network && usageOf(network),
      device: device && usageOf(device),
      isRepeat,
    }
    const hasPassed = takeSolution(facts, message, changes)
    const times = hasPassed ? challengeTimes : 1
    const violatedRules = findExceeded(usages)
    const isBlocked = isEnforced && (hasPassed ? findExceeded(usages, times) : violatedRules).length > 0
    const isDrawn = !isBlocked && pool !== undefined && isFromPool(usage, named, times)
    if (!isBlocked) countMessages(open, now, 1)
    if (isDrawn) draw(pool, country)
    const ofPool = pool && violatedRules.includes('POOL_UNVERIFIED') ? poolAlert(code, pool) : undefined
    const digits = message.phone.slice(0, -4)
    const isSpent = violatedRules.includes('COUNTRY_UNVERIFIED')
    const alert = ofPool ?? findAlert(code, country, { digits, subject: prefix }, isSpent)
    if (alert) (ofPool && pool ? pool : country).alertedAt = now
    if (pool && (isDrawn || ofPool)) changes.rows.set(facts.keys.pool, closeSubject(pool))
    const isScarce = isSpent || violatedRules.includes('FAIR_SHARE')
    const isHeld = isScarce && holdEvidence(country)
    if (!isBlocked) putSubjects(changes, subjects, open)
    // A blocked message costs little: it writes nothing but what a clock brought.
    else if ((alert && !ofPool) || hours || isHeld) changes.rows.set(subjects.country, closeSubject(country))
    // An attacker's networks are known by what they try, or each would be new until one of its messages passes.
    if (isBlocked && network && subjects.network && violatedRules.includes('FAIR_SHARE')) {
      remember(network, now, scarcity.refused)
      changes.rows.set(subjects.network, closeSubject(network))
    }
    const isOffered = settings.challenge !== null && message.challenge !== undefined && !hasPassed
    const areCapsLeft = () => dailyCaps(settings, facts, message, now).every(({ isExceeded }) => !isExceeded)
    const mayPass = () => findExceeded(usages, challengeTimes).length === 0 && areCapsLeft()
    const needsChallenge = isBlocked && isOffered && mayPass()
    const isPassed = !isBlocked && hasPassed && violatedRules.length > 0
    return {
      blocked: isBlocked,
      violatedRules,
      alert,
      challenge: needsChallenge ? 'needed' : isPassed ? 'passed' : undefined,
    }
  }

  /** Tells whether a message comes with a passed challenge, and remembers a solution: each counts once. */
  function takeSolution({ rows }: GuardFacts, message: GuardedMessage, changes: GuardChanges): boolean {
    if (message.challenge?.outcome !== 'passed') return false
    const solution = solutionOf(message)
    if (!solution) return true
    if (rows.row(solution.key)) return false
    changes.rows.set(solution.key, { windows: [[1]], alertedAt: 0, until: solution.until })
    return true
  }

  /** Counts a message against the daily cap and the daily budget of the installation, unless one of them blocks it. */
  function violatedCaps(facts: GuardFacts, message: GuardedMessage, now: number, changes: GuardChanges) {
    const caps = dailyCaps(settings, facts, message, now)
    const violated = caps.filter(({ isExceeded }) => isExceeded)
    if (violated.length === 0 || !isEnforced)
      for (const { key, subject, amount } of caps) {
        addMessages(subject, now, amount)
        changes.rows.set(key, closeSubject(subject))
      }
    return violated.map(({ rule }) => rule)
  }

  /** Takes the messages of a request back from the unverified ones, and gives back what the pool paid too much. */
  function takeBack(
    facts: GuardFacts,
    open: ReturnType<typeof openSubjects>,
    { createdAt, resends }: GuardedRequest,
    changes: GuardChanges,
  ): void {
    countMessages(open, createdAt, -1 - resends)
    const { country } = open
    if (total(country.drawn) === 0) return
    const pool = openSubject(facts.rows.row(facts.keys.pool), country.now)
    if (giveBack(country, allowanceOf('country', usageOf(country).evidence), pool))
      changes.rows.set(facts.keys.pool, closeSubject(pool))
  }

  return {
    ...createGuardRowKeys(settings, keys),

    /** Decides whether a message of this request may be sent, at the time of its keys, and counts it if so. */
    judge(
      facts: GuardFacts | undefined,
      message: GuardedMessage,
      sender: Sender,
    ): { verdict: GuardVerdict; changes: GuardChanges } {
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
      const caps = blocked ? [] : violatedCaps(facts, message, now, changes)
      violatedRules.push(...caps)
      blocked ||= isEnforced && caps.length > 0
      const hour = hourOf(now)
      const count = { flagged: blocked ? 0 : 1, blocked: blocked ? 1 : 0 }
      for (const rule of violatedRules)
        changes.decisions.set(`${hour} ${rule} ${country}`, { hour, rule, country, ...count })
      return { verdict: { ...judged, blocked, violatedRules }, changes }
    },

    /** Records that the code was verified: its messages no longer count, and its phone is evidence. */
    convert(
      facts: GuardFacts | undefined,
      request: CountedMessage,
      sender: Sender,
      now: number,
    ): GuardChanges {
      const changes = noGuardChanges()
      if (!facts?.keys.subjects) return changes
      const { subjects, relay } = facts.keys
      const open = openSubjects(facts, subjects, now)
      const add = (subject: Subject | undefined, before: number) => {
        if (subject && utcDay(before) !== utcDay(now)) addEvidence(subject, now, before)
      }
      add(open.country, sender.verifiedAt)
      add(open.prefix, sender.verifiedAt)
      if (subjects.network) add(open.network, verifiedFrom(sender, subjects.network))
      if (subjects.device) add(open.device, verifiedFrom(sender, subjects.device))
      // The messages to a known phone were not counted.
      if (relay) takeBackRelayed(settings, facts, relay, open.country, request, changes)
      else if (!sender.isKnownPhone) takeBack(facts, open, request, changes)
      putSubjects(changes, subjects, open)
      return changes
    },

    /**
     * Stops counting the request's messages as unverified because none was delivered. The daily cap keeps its
     * count.
     */
    revert(facts: GuardFacts | undefined, request: GuardedRequest, now: number): GuardChanges {
      const changes = noGuardChanges()
      if (!facts) return changes
      const { subjects, relay } = facts.keys
      if (relay) {
        const country = openSubject(facts.rows.row(relay.country), now)
        takeBackRelayed(settings, facts, relay, country, request, changes)
      }
      if (!subjects) return changes
      const open = openSubjects(facts, subjects, now)
      takeBack(facts, open, request, changes)
      putSubjects(changes, subjects, open)
      return changes
    },
  }
}

/** Describes the caps of a UTC day on the messages of all developers, and on their cost, that are set. */
function dailyCaps(
  { totalPerDay, spendPerDay }: GuardSettings,
  { keys: { total, spend }, rows }: GuardFacts,
  message: GuardedMessage,
  now: number,
) {
  const openCap = (rule: GuardRule, key: string | undefined, limit: number, amount: () => number) => {
    if (key === undefined || limit === 0) return []
    const subject = openSubject(rows.row(key), now)
    const added = amount()
    return [{ rule, key, subject, amount: added, isExceeded: usageOf(subject).unverified + added > limit }]
  }
  return [
    ...openCap('TOTAL_DAILY', total, totalPerDay, () => 1),
    ...openCap('SPEND_DAILY', spend, spendPerDay, () => message.estimatePrice?.() ?? 0),
  ]
}

function openSubjects({ rows }: GuardFacts, { country, prefix, network, device }: SubjectKeys, now: number) {
  const open = (key: string) => openSubject(rows.row(key), now)
  return {
    country: open(country),
    prefix: open(prefix),
    network: network === undefined ? undefined : open(network),
    device: device === undefined ? undefined : open(device),
  }
}

/** Counts unverified messages of a time, or takes them back. */
function countMessages(open: ReturnType<typeof openSubjects>, at: number, messages: number): void {
  for (const subject of Object.values(open)) if (subject) addMessages(subject, at, messages)
  remember(open.network, at, messages)
  remember(open.device, at, messages)
}

function putSubjects(
  { rows }: GuardChanges,
  { country, prefix, network, device }: SubjectKeys,
  open: ReturnType<typeof openSubjects>,
): void {
  rows.set(country, closeSubject(open.country))
  rows.set(prefix, closeSubject(open.prefix))
  if (network !== undefined && open.network) rows.set(network, closeSubject(open.network))
  if (device !== undefined && open.device) rows.set(device, closeSubject(open.device))
}
