import { alertMs, evidenceDays, type GuardCounts, type GuardRow } from '../model/guard.ts'
import { noGuardChanges, type GuardChanges, type GuardRows } from '../store/guard.ts'
import { dayMs, hourMs, minuteMs, utcDay } from '../../shared/durations.ts'
import { type Usage } from './allowances.ts'

type Window = { bucketMs: number; buckets: number }
type Counts = readonly number[]

/** The sliding windows of `GuardCounts`. */
const windows = {
  /** Counts its oldest bucket in full, so that no 24 hours have more messages than an allowance. */
  unverified: { bucketMs: hourMs, buckets: 25 },
  evidence: { bucketMs: dayMs, buckets: evidenceDays },
  /** The newest two are in flight: it is not clear whether their codes will be verified. */
  recent: { bucketMs: 2 * minuteMs, buckets: 7 },
  drawn: { bucketMs: hourMs, buckets: 25 },
  earlier: { bucketMs: dayMs, buckets: evidenceDays },
  hours: { bucketMs: hourMs, buckets: 15 * 24 + 2 },
} as const satisfies Record<string, Window>

type WindowName = keyof typeof windows

export type Ledger = ReturnType<typeof openLedger>

/** Opens the rows of one call of the guard. It changes copies of them, which `close` returns. */
export function openLedger(rows: GuardRows, now: number) {
  const opened = new Map<string, Subject>()
  const changes = noGuardChanges()
  return {
    now,
    decisions: changes.decisions,

    open(key: string): Subject {
      const known = opened.get(key)
      if (known) return known
      const subject = new Subject(key, rows.row(key), now)
      opened.set(key, subject)
      return subject
    },

    close(): GuardChanges {
      for (const [key, subject] of opened) if (subject.isChanged) changes.rows.set(key, subject.toRow())
      return changes
    },
  }
}

/** Counts of one subject at a time, and what is noted of it. */
export class Subject {
  isChanged = false
  readonly windows: Readonly<GuardCounts>
  alertedAt: number

  readonly key: string
  readonly now: number

  constructor(key: string, stored: GuardRow | undefined, now: number) {
    this.key = key
    this.now = now
    this.windows = stored ? { ...stored.windows } : {}
    this.alertedAt = stored?.alertedAt ?? 0
  }

  note(changes: Partial<GuardCounts>): void {
    Object.assign(this.windows, changes)
    this.isChanged = true
  }

  alert(): void {
    this.alertedAt = this.now
    this.isChanged = true
  }

  /** Tells whether it raised an alert within the hour. One in the future is of a clock that was set back since. */
  hasAlerted(): boolean {
    return Math.abs(this.now - this.alertedAt) < alertMs
  }

  /** Adds to the bucket of a time, or takes away from it. */
  add(name: WindowName, at: number, count: number): void {
    const counts: GuardCounts = this.windows
    counts[name] = added(windows[name], counts[name], at, count, this.now)
    this.isChanged = true
  }

  /** Counts unverified messages of a time, or takes them back. */
  count(at: number, messages: number): void {
    this.add('unverified', at, messages)
    this.add('recent', at, messages)
  }

  /** Counts a verified phone now, and no longer on the day of its verification before. */
  addEvidence(before: number): void {
    this.add('evidence', before, -1)
    this.add('evidence', this.now, 1)
  }

  /** Counts a message for which another subject pays: the pool for a country, a country for its relays. */
  drawFrom(payer: Subject): void {
    this.add('drawn', this.now, 1)
    payer.add('unverified', this.now, 1)
  }

  /** Gives back for messages of a time what the payer paid in the same hour. */
  giveBack(payer: Subject, at: number, messages: number): void {
    const paid = this.countAt('drawn', hourOf(this.now) - hourOf(at))
    if (paid === 0) return
    this.add('drawn', at, -messages)
    payer.add('unverified', at, -Math.min(messages, paid))
  }

  /** Tells what an allowance is compared with. */
  usage(): Usage {
    const inFlight = this.inLast('recent')
    return {
      unverified: this.total('unverified'),
      lastHour: Math.max(0, this.inLast('unverified') - inFlight),
      earlier: this.total('earlier'),
      inFlight,
      evidence: Math.max(this.total('evidence'), this.held()),
    }
  }

  /** Holds an allowance that is spent, or its evidence, at what it is. */
  hold(amount: number): void {
    const { heldOn, held = 0 } = this.windows
    const today = utcDay(this.now)
    if (heldOn !== today || held < amount) this.note({ held: amount, heldOn: today })
  }

  /** Amount that was held in the last 14 days; otherwise 0. */
  held(): number {
    const { held = 0, heldOn = 0 } = this.windows
    return heldOn > utcDay(this.now) - evidenceDays ? held : 0
  }

  total(name: WindowName): number {
    const counts = this.windows[name]
    if (!counts) return 0
    const end = windows[name].buckets + 1 - movedBy(windows[name], counts, this.now)
    let sum = 0
    for (let index = 1; index < counts.length && index < end; index++) sum += counts[index] ?? 0
    return sum
  }

  /** Count of the bucket that many buckets ago. */
  countAt(name: WindowName, age: number): number {
    const counts = this.windows[name]
    const index = counts ? 1 + age - movedBy(windows[name], counts, this.now) : 0
    return index > 0 ? (counts?.[index] ?? 0) : 0
  }

  /** Count of a bucket's length of time: of the newest one and of a part of the one before. */
  private inLast(name: 'unverified' | 'recent'): number {
    const { bucketMs } = windows[name]
    return this.countAt(name, 0) + this.countAt(name, 1) * (1 - (this.now % bucketMs) / bucketMs)
  }

  /** Rows of countries are kept for their usual rate, and those that had their launch so that they have no second one. */
  toRow(): GuardRow {
    const { hour, launchDay, evidence, earlier, hours } = this.windows
    const isOfWeeks = evidence?.length || earlier?.length || hours
    const days = launchDay ? 3_650 : hour ? 29 : isOfWeeks ? evidenceDays + 1 : 2
    return { windows: this.windows, alertedAt: this.alertedAt, until: utcDay(this.now) + days }
  }

  /** Adds the counts of a row up that counted the same subject under another key. */
  absorb(other: GuardRow): void {
    for (const name of Object.keys(windows) as WindowName[]) {
      const [newest = 0, ...counts] = other.windows[name] ?? []
      for (const [age, count] of counts.entries())
        this.add(name, (newest - age) * windows[name].bucketMs, count)
    }
  }
}

/** Buckets that began since the newest one. If the clock was set back, the newest one is that of now. */
const movedBy = ({ bucketMs }: Window, [newest = 0]: Counts, now: number): number =>
  Math.max(0, Math.floor(now / bucketMs) - newest)

/** Copies counts as of now, with some more in the bucket of a time if the window still has it. None is negative. */
function added(window: Window, counts: Counts = [], at: number, count: number, now: number): Counts {
  const { bucketMs, buckets } = window
  const shift = movedBy(window, counts, now)
  const copy = [Math.floor(now / bucketMs)]
  if (counts.length > 1 && shift < buckets) {
    for (let step = 0; step < shift; step++) copy.push(0)
    for (let index = 1; index < counts.length && copy.length <= buckets; index++)
      copy.push(counts[index] ?? 0)
  }
  const age = Math.max(0, Math.floor(now / bucketMs) - Math.floor(at / bucketMs))
  if (age < buckets) {
    while (copy.length < age + 2) copy.push(0)
    copy[age + 1] = Math.max(0, (copy[age + 1] ?? 0) + count)
  }
  while (copy.length > 1 && copy.at(-1) === 0) copy.pop()
  return copy.length > 1 ? copy : []
}

export const hourOf = (time: number) => Math.floor(time / hourMs)
