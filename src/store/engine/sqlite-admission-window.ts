import type { Admission } from '../../domain/model/rate-limit.ts'

/** Admissions of one subject and policy, as transactions outside the running batch see them. */
export type Window = {
  /** Oldest first. Those before `head` are deleted. */
  times: number[]
  head: number
  /** Sequence number of `times[0]`. */
  firstSeq: number
}

/** Changes of the running batch to a window: it keeps the oldest `kept` admissions, and appends some. */
export type PendingWindow = { kept: number; added: number[]; expiredUntil: number }

export const emptyWindow: Window = { times: [], head: 0, firstSeq: 1 }

export const count = (window: Window | undefined) => (window ? window.times.length - window.head : 0)

export const total = (window: Window | undefined, changes: PendingWindow | undefined) =>
  changes ? changes.kept + changes.added.length : count(window)

export const timeAt = ({ times, head }: Window, index: number) => times[head + index] ?? 0

/** @param index from the oldest admission that is not deleted */
export function admissionAt(
  window: Window,
  changes: PendingWindow | undefined,
  index: number,
): Admission | undefined {
  if (index < 0 || index >= total(window, changes)) return undefined
  return { at: timeIn(window, changes, index), seq: window.firstSeq + window.head + index }
}

export const timeIn = (window: Window, changes: PendingWindow | undefined, index: number) =>
  changes && index >= changes.kept ? (changes.added[index - changes.kept] ?? 0) : timeAt(window, index)

/** Counts the admissions up to a time, by binary search. */
export function countUntil(window: Window, changes: PendingWindow | undefined, time: number): number {
  let low = 0
  let high = total(window, changes)
  while (low < high) {
    const middle = (low + high) >>> 1
    if (timeIn(window, changes, middle) > time) high = middle
    else low = middle + 1
  }
  return low
}

export function dropExpired(window: Window, until: number) {
  const { times } = window
  while (window.head < times.length && timeAt(window, 0) <= until) window.head++
  if (window.head < 64 || window.head * 2 < times.length) return
  times.splice(0, window.head)
  window.firstSeq += window.head
  window.head = 0
}
