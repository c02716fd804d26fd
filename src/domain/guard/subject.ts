import { utcDay } from '../log/analytics.ts'
import { evidenceDays, type GuardRow } from '../model/guard.ts'
import { dayMs, hourMs, minuteMs } from '../../shared/durations.ts'
import { allowances, type Usage } from './allowances.ts'
import type { GuardSettings } from './settings.ts'

/**
 * Counters over buckets of time. `counts` is how a row keeps them: number of the newest bucket, then the count of each
 * bucket, newest first, without the zeros at the end.
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
} as const satisfies Record<string, Window>

/** Hours from which a country's usual rate is computed. */
export const historyWindow: Window = { bucketMs: hourMs, buckets: 15 * 24 + 2 }

/** Days for which the row of a country is kept: its launch and its usual rate. */
const idleDays = 29

/** Counts of one subject, as one call changes them. */
export type Subject = ReturnType<typeof openSubject>

/** Opens a copy of the counts that the store keeps. `close` returns it with every change. */
export function openSubject(stored: GuardRow | undefined, now: number) {
  const kept = stored?.windows ?? []
  const unverified = moved(windows.unverified, kept[0], now)
  const evidence = moved(windows.evidence, kept[1], now)
  const recent = moved(windows.recent, kept[2], now)
  const drawn = moved(windows.drawn, kept[3], now)
  const [launchDay = 0, hour = 0, usualHour = 0, usualDay = 0, held = 0, heldOn = 0] = kept[4] ?? []
  /** Set for countries alone. */
  const about = {
    /** First day on which `guard.countries` named it; 0 if it does not. */
    launchDay,
    /** Hour in which the usual figures were computed: unverified messages of such an hour, and the most of a day. */
    hour,
    usualHour,
    usualDay,
    /** Evidence when the allowance was last spent, and that day: customers who were refused leave none. */
    held,
    heldOn,
  }

  return {
    about,
    /** Time of the last alert. */
    alertedAt: stored?.alertedAt ?? 0,

    usage: (): Usage => ({
      unverified: total(unverified),
      inFlight: (recent[1] ?? 0) + (recent[2] ?? 0) * remaining(windows.recent, now),
      evidence: Math.max(total(evidence), about.heldOn > utcDay(now) - evidenceDays ? about.held : 0),
    }),
    /** Unverified messages of the ten minutes before those in flight. */
    recentlyUnverified: () => total(recent) - (recent[1] ?? 0) - (recent[2] ?? 0),
    drawn: () => total(drawn),

    /** Adds unverified messages of a time, or takes them back. Counts never become negative. */
    add(at: number, messages: number): void {
      addTo(windows.unverified, unverified, at, messages)
      addTo(windows.recent, recent, at, messages)
    },
    /** Takes messages from the pool, or gives back those that the own allowance pays for by now. */
    draw: (messages: number) => addTo(windows.drawn, drawn, now, messages),
    giveBack(messages: number): Array<{ at: number; messages: number }> {
      const given: Array<{ at: number; messages: number }> = []
      for (let index = 1, left = messages; index < drawn.length && left > 0; index++) {
        const part = Math.min(left, drawn[index] ?? 0)
        if (part === 0) continue
        left -= part
        drawn[index] = (drawn[index] ?? 0) - part
        given.push({ at: ((drawn[0] ?? 0) - index + 1) * hourMs, messages: part })
      }
      return given
    },

    /** Keeps the evidence for as long as the allowance is spent, so that an attack does not lower it. */
    holdEvidence(): boolean {
      const isKept = about.heldOn === utcDay(now)
      about.held = Math.max(total(evidence), about.heldOn > utcDay(now) - evidenceDays ? about.held : 0)
      about.heldOn = utcDay(now)
      return !isKept
    },

    /** Counts a verified phone on a day, and no longer on the day of its verification before. */
    addEvidence(at: number, before: number): void {
      addTo(windows.evidence, evidence, before, -1)
      addTo(windows.evidence, evidence, at, 1)
    },

    /** @param alertedAt time of a new alert */
    close(alertedAt = stored?.alertedAt ?? 0): GuardRow {
      const isCountry = about.hour > 0
      const days = isCountry ? idleDays : total(evidence) > 0 ? evidenceDays : 2
      return {
        windows: [
          trimmed(unverified),
          trimmed(evidence),
          trimmed(recent),
          trimmed(drawn),
          isCountry ? Object.values(about) : [],
        ],
        alertedAt,
        until: utcDay(now) + days,
      }
    },
  }
}

/** Gives back what one subject took from another and needs no longer. @returns whether there was any */
export function giveBack(from: Subject, own: number, to: Subject): boolean {
  const surplus = from.drawn() - Math.max(0, from.usage().unverified - own)
  if (surplus <= 0) return false
  for (const { at, messages } of from.giveBack(surplus)) to.add(at, -messages)
  return true
}

/** Own base of the allowance of a country that `guard.countries` names: more in its first days. Notes the first. */
export function namedBase(
  { countries }: Pick<GuardSettings, 'countries'>,
  { about }: Pick<Subject, 'about'>,
  country: string,
  now: number,
): number | undefined {
  const { base, launchBase, launchDays } = allowances.named
  about.launchDay = countries.includes(country) ? about.launchDay || utcDay(now) : 0
  if (about.launchDay === 0) return undefined
  return utcDay(now) < about.launchDay + launchDays ? launchBase : base
}

/** Adds a message to the history of a country. */
export function addToHistory(row: GuardRow | undefined, at: number, now: number): GuardRow {
  const hours = moved(historyWindow, row?.windows[0], now)
  addTo(historyWindow, hours, at, 1)
  return { windows: [trimmed(hours)], alertedAt: 0, until: utcDay(now) + evidenceDays + 1 }
}

/** Adds two rows up: one subject was counted under two keys. */
export const mergeRows = (a: GuardRow, b: GuardRow): GuardRow => ({
  windows: [0, 1, 2, 3, 4].map((index) => mergeCounts(a.windows[index] ?? [], b.windows[index] ?? [])),
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
export function moved({ bucketMs, buckets }: Window, counts: readonly number[] = [], now: number): number[] {
  const newest = Math.floor(now / bucketMs)
  const steps = counts.length === 0 ? buckets : Math.min(newest - (counts[0] ?? 0), buckets)
  if (steps <= 0) return [...counts]
  if (steps === buckets) return [newest]
  const copy = [newest]
  for (let step = 0; step < steps; step++) copy.push(0)
  for (let index = 1; index < counts.length && copy.length <= buckets; index++) copy.push(counts[index] ?? 0)
  return copy
}

/** Adds to the bucket of a time, if the window still has it. */
export function addTo({ bucketMs, buckets }: Window, counts: number[], at: number, count: number): void {
  const age = (counts[0] ?? 0) - Math.floor(at / bucketMs)
  if (age < 0 || age >= buckets) return
  while (counts.length < age + 2) counts.push(0)
  counts[age + 1] = Math.max(0, (counts[age + 1] ?? 0) + count)
}

export const hourOf = (time: number) => Math.floor(time / hourMs)

/** Share of the oldest bucket that a sliding window still covers. */
const remaining = ({ bucketMs }: Window, now: number) => 1 - (now % bucketMs) / bucketMs

export function trimmed(counts: number[]): number[] {
  while (counts.length > 1 && counts.at(-1) === 0) counts.pop()
  return counts.length === 1 ? [] : counts
}
