import type { QueuedAlertNotice } from '../model/alert.ts'
import type { Store } from '../store/store.ts'
import { dayMs, hourMs, minuteMs } from '../../shared/durations.ts'

/** Longer than a destination may take, so that no other node sends a notice while one does. */
const leaseMs = minuteMs
const retryMsMin = minuteMs
const retryMsMax = hourMs
/** A notice that could not be sent for so long is dropped: a reminder follows each day. */
const droppedAfterMs = dayMs
/** A test is sent while a person waits for it, or not at all. */
const testMs = minuteMs

/** Result of an attempt to send a notice. The failure names its cause without secrets. */
export type NoticeResult = { failure: string | null }

/**
 * Creates the sender of queued notices: those of one destination in their order, different destinations at once. A notice that
 * fails holds up the later ones of its destination, and is sent again after a minute, doubling to an hour. A node that dies
 * while it sends leaves a lease of one minute, after which the notice is sent again: delivery is at least once.
 *
 * @param needs.send never rejects, and settles within the lease
 */
export function createNoticeSender(needs: {
  store: Store<'alerts'>
  now(): number
  /** Names of the configured destinations. */
  destinations(): readonly string[]
  send(notice: QueuedAlertNotice): Promise<NoticeResult>
  onFailed(notice: QueuedAlertNotice, failure: string): void
  onDropped(notice: QueuedAlertNotice): void
}) {
  const { store, now, send, onFailed, onDropped } = needs

  /** @returns false if the notice must wait, and those behind it */
  async function sendOne(notice: QueuedAlertNotice): Promise<boolean> {
    if (now() < notice.dueAt) return false
    const isLeased = await store.write((tx) => tx.alerts.leaseNotice(notice, now(), now() + leaseMs))
    if (!isLeased) return false
    if (notice.event === 'test' && now() - notice.at > testMs) {
      await store.write((tx) => tx.alerts.deleteNotice(notice))
      return true
    }
    const { failure } = await send(notice)
    const attempts = notice.attempts + 1
    if (failure !== null) onFailed(notice, failure)
    const isDropped = failure !== null && now() - notice.at >= droppedAfterMs
    if (isDropped) onDropped(notice)
    await store.write((tx) =>
      failure === null || isDropped
        ? tx.alerts.deleteNotice(notice)
        : tx.alerts.postponeNotice(notice, now() + retryMs(attempts), failure),
    )
    return failure === null || isDropped
  }

  async function sendInOrder(notices: readonly QueuedAlertNotice[]): Promise<void> {
    for (const notice of notices) if (!(await sendOne(notice))) return
  }

  /** Reads how long it takes until a notice is due; infinite if there is none. */
  async function untilDueMs(): Promise<number> {
    const queued = await store.read.alerts.listNotices()
    return Math.min(Infinity, ...queued.map(({ dueAt }) => dueAt)) - now()
  }

  /** Sends the notices that are due. */
  async function sendDue(): Promise<void> {
    const destinations = needs.destinations()
    const queued = await store.read.alerts.listNotices()
    if (queued.length === 0) return
    if (queued.some(({ destination }) => !destinations.includes(destination)))
      await store.write((tx) => tx.alerts.deleteNoticesExcept(destinations))
    // A test does not wait behind notices that fail.
    const queues = destinations.flatMap((name) =>
      [true, false].map((isTest) =>
        queued.filter(({ destination, event }) => destination === name && (event === 'test') === isTest),
      ),
    )
    await Promise.all(queues.map(sendInOrder))
  }

  return { sendDue, untilDueMs }
}

const retryMs = (attempts: number) => Math.min(retryMsMax, retryMsMin * 2 ** (attempts - 1))
