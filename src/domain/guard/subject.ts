import { utcDay } from '../log/analytics.ts'
import { evidenceDays, type GuardRow } from '../model/guard.ts'
import { dayMs, hourMs, minuteMs } from '../../shared/durations.ts'
import { allowances, type Usage } from './allowances.ts'
import type { GuardSettings } from './settings.ts'

/**
 * Counters over buckets of time, as a row keeps them: number of the newest bucket, then the count of each bucket, newest
 * first, without the zeros at the end.
 */
type Window = { bucketMs: number; buckets: number }

const windows = {
  /** Counts its oldest bucket in full, so that no 24 hours have more messages than an allowance. */
  unverified: { bucketMs: hourMs, buckets: 25 },
  evidence: { bucketMs: dayMs, buckets: evidenceDays },
  /** The newest two are in flight: it is not clear whether their codes will be verified. */
  recent: { bucketMs: 2 * minuteMs, buckets: 7 },
  /** Messages of a country that the pool paid for. */
  drawn: { bucketMs: hourMs, buckets: 25 },
  /** Messages from a network or device: an attacker who comes back every day has sent before, a new customer has not. */
  earlier: { bucketMs: dayMs, buckets: evidenceDays },
  /** Hours from which a country's usual rate is computed, in a row of their own. */
  history: { bucketMs: hourMs, buckets: 15 * 24 + 2 },
} as const satisfies Record<string, Window>

/** Days for which the row of a country is kept: its launch and its usual rate. */
const idleDays = 29

/** Counts of one subject at a time, to be changed by one call. */
export type Subject = {
  now: number
  unverified: number[]
  evidence: number[]
  recent: number[]
  /** Kept for countries alone. */
  drawn: number[]
  /** Kept for networks and devices alone. */
  earlier: number[]
  /** Set for countries alone. */
  about: {
    /** First day on which `guard.countries` named it; 0 if it does not. */
    launchDay: number
    /** Hour in which the usual figures were computed: unverified messages of such an hour, and the most of a day. */
    hour: number
    usualHour: number
    usualDay: number
    /** Evidence when the allowance was last spent, and that day: customers who were refused leave none. */
    held: number
    heldOn: number
  }
  /** Time of the last alert; 0 if there was none. */
  alertedAt: number
}

/** Opens a copy of the counts that the store keeps. */
export function openSubject(stored: GuardRow | undefined, now: number): Subject {
  const [unverified, evidence, recent, drawn, about = [], earlier] = stored?.windows ?? []
  const [launchDay = 0, hour = 0, usualHour = 0, usualDay = 0, held = 0, heldOn = 0] = about
  return {
    now,
    unverified: moved(windows.unverified, unverified, now),
    evidence: moved(windows.evidence, evidence, now),
    recent: moved(windows.recent, recent, now),
    drawn: moved(windows.drawn, drawn, now),
    earlier: moved(windows.earlier, earlier, now),
    about: { launchDay, hour, usualHour, usualDay, held, heldOn },
    alertedAt: stored?.alertedAt ?? 0,
  }
}

/** Returns the counts as the store keeps them. */
export function closeSubject(subject: Subject): GuardRow {
  const { unverified, evidence, recent, drawn, earlier, about, alertedAt, now } = subject
  const isCountry = about.hour > 0
  const isRemembered = total(evidence) + total(earlier) > 0
  const days = isCountry ? idleDays : isRemembered ? evidenceDays : 2
  const counts = [trimmed(unverified), trimmed(evidence), trimmed(recent)]
  if (isCountry) counts.push(trimmed(drawn), Object.values(about))
  else if (total(earlier) > 0) counts.push([], [], trimmed(earlier))
  return { windows: counts, alertedAt, until: utcDay(now) + days }
}

/** Tells what an allowance is compared with. */
export function usageOf({ unverified, evidence, recent, earlier, about, now }: Subject): Usage {
  const inFlight = (recent[1] ?? 0) + (recent[2] ?? 0) * remaining(windows.recent, now)
  const lastHour = (unverified[1] ?? 0) + (unverified[2] ?? 0) * remaining(windows.unverified, now)
  return {
    unverified: total(unverified),
    lastHour: Math.max(0, lastHour - inFlight),
    earlier: total(earlier),
    inFlight,
    evidence: Math.max(total(evidence), about.heldOn > utcDay(now) - evidenceDays ? about.held : 0),
  }
}

/** Unverified messages of the ten minutes before those in flight. */
export const recentlyUnverified = ({ recent }: Subject): number =>
  total(recent) - (recent[1] ?? 0) - (recent[2] ?? 0)

/** Adds unverified messages of a time, or takes them back. Counts never become negative. */
export function addMessages({ unverified, recent }: Subject, at: number, messages: number): void {
  addTo(windows.unverified, unverified, at, messages)
  addTo(windows.recent, recent, at, messages)
}

/** Adds messages to those that a network or device is known by for two weeks. */
export const remember = (subject: Subject | undefined, at: number, messages: number): void =>
  subject && addTo(windows.earlier, subject.earlier, at, messages)

/** Counts a verified phone on a day, and no longer on the day of its verification before. */
export function addEvidence({ evidence }: Subject, at: number, before: number): void {
  addTo(windows.evidence, evidence, before, -1)
  addTo(windows.evidence, evidence, at, 1)
}

/** Keeps the evidence for as long as the allowance is spent, so that an attack does not lower it. @returns whether it changed */
export function holdEvidence(subject: Subject): boolean {
  const { about, now } = subject
  const isHeld = about.heldOn === utcDay(now)
  about.held = usageOf(subject).evidence
  about.heldOn = utcDay(now)
  return !isHeld
}

/** Counts a message for which another subject pays: the pool for a country, the country for its relays. */
export function draw(from: Subject, by: Subject): void {
  addTo(windows.drawn, by.drawn, by.now, 1)
  addMessages(from, from.now, 1)
}

/** Gives back what one subject took from another and its own allowance pays by now. @returns whether there was any */
export function giveBack(from: Subject, own: number, to: Subject): boolean {
  const { drawn } = from
  const surplus = total(drawn) - Math.max(0, total(from.unverified) - own)
  for (let index = 1, left = surplus; index < drawn.length && left > 0; index++) {
    const part = Math.min(left, drawn[index] ?? 0)
    left -= part
    drawn[index] = (drawn[index] ?? 0) - part
    addMessages(to, ((drawn[0] ?? 0) - index + 1) * hourMs, -part)
  }
  return surplus > 0
}

/** Own base of the allowance of a country that `guard.countries` names: more in its first days. Notes the first. */
export function namedBase(
  { countries }: Pick<GuardSettings, 'countries'>,
  { about, now }: Pick<Subject, 'about' | 'now'>,
  country: string,
): number | undefined {
  const { base, launchBase, launchDays } = allowances.named
  about.launchDay = countries.includes(country) ? about.launchDay || utcDay(now) : 0
  if (about.launchDay === 0) return undefined
  return utcDay(now) < about.launchDay + launchDays ? launchBase : base
}

/** Opens the hours of a country that have ended. */
export const openHistory = (row: GuardRow | undefined, now: number): number[] =>
  moved(windows.history, row?.windows[0], now)

/** Adds messages to the hour of a time. */
export const addToHistory = (hours: number[], at: number, messages: number): void =>
  addTo(windows.history, hours, at, messages)

export const closeHistory = (hours: number[], now: number): GuardRow => ({
  windows: [trimmed(hours)],
  alertedAt: 0,
  until: utcDay(now) + evidenceDays + 1,
})

/** Adds two rows up: one subject was counted under two keys. */
export const mergeRows = (a: GuardRow, b: GuardRow): GuardRow => ({
  windows: [0, 1, 2, 3, 4, 5].map((index) => mergeCounts(a.windows[index] ?? [], b.windows[index] ?? [])),
  alertedAt: Math.max(a.alertedAt, b.alertedAt),
  until: Math.max(a.until, b.until),
})

function mergeCounts(a: readonly number[], b: readonly number[]): readonly number[] {
  const [newer, older] = (a[0] ?? 0) >= (b[0] ?? 0) ? [a, b] : [b, a]
  const age = (newer[0] ?? 0) - (older[0] ?? 0)
  const merged = [...newer]
  for (let index = 1; index < older.length; index++) {
    while (merged.length <= index + age) merged.push(0)
    merged[index + age] = (merged[index + age] ?? 0) + (older[index] ?? 0)
  }
  return merged
}

/** Sum of the buckets. */
export function total(counts: readonly number[]): number {
  let sum = 0
  for (let index = 1; index < counts.length; index++) sum += counts[index] ?? 0
  return sum
}

/** Copies counts, with the bucket of now as the newest. If the clock was set back, the buckets last longer. */
function moved({ bucketMs, buckets }: Window, counts: readonly number[] = [], now: number): number[] {
  const newest = Math.floor(now / bucketMs)
  const steps = counts.length === 0 ? buckets : Math.min(newest - (counts[0] ?? 0), buckets)
  if (steps <= 0) return counts.slice()
  if (steps === buckets) return [newest]
  const copy = [newest]
  for (let step = 0; step < steps; step++) copy.push(0)
  for (let index = 1; index < counts.length && copy.length <= buckets; index++) copy.push(counts[index] ?? 0)
  return copy
}

/** Adds to the bucket of a time, if the window still has it. */
function addTo({ bucketMs, buckets }: Window, counts: number[], at: number, count: number): void {
  const age = (counts[0] ?? 0) - Math.floor(at / bucketMs)
  if (age < 0 || age >= buckets) return
  while (counts.length < age + 2) counts.push(0)
  counts[age + 1] = Math.max(0, (counts[age + 1] ?? 0) + count)
}

export const hourOf = (time: number) => Math.floor(time / hourMs)

/** Share of the oldest bucket that a sliding window still covers. */
const remaining = ({ bucketMs }: Window, now: number) => 1 - (now % bucketMs) / bucketMs

function trimmed(counts: number[]): number[] {
  while (counts.length > 1 && counts.at(-1) === 0) counts.pop()
  return counts.length === 1 ? [] : counts
}
