import type { Alert, AlertNotice } from '../domain/model/alert.ts'
import type { Store } from '../domain/store/store.ts'

/** An alert that fires, with its times as text. */
type HostAlert = Pick<Alert, 'kind' | 'subject' | 'severity' | 'message' | 'remedy'> & {
  since: string
  /** Whether the fault is gone; the alert is resolved if it stays so. */
  isClearing: boolean
}

/** A notice that waits to be sent. */
type HostAlertNotice = {
  destination: string
  event: AlertNotice['event']
  message: string
  at: string
  attempts: number
  /** Why the last attempt failed; null before it ended. */
  failure: string | null
}

export type HostAlerts = { alerts: HostAlert[]; waiting: HostAlertNotice[] }

/** Lists the alerts that fire, the oldest first, and the notices that wait to be sent. */
export async function listAlerts(store: Store<'alerts'>): Promise<HostAlerts> {
  const alerts = (await store.read.alerts.list()).filter(({ firedAt }) => firedAt !== null)
  const waiting = await store.read.alerts.listNotices()
  return {
    alerts: alerts
      .toSorted((a, b) => a.since - b.since)
      .map(({ kind, subject, severity, message, remedy, since, clearedAt }) => ({
        kind,
        subject,
        severity,
        message,
        remedy,
        since: new Date(since).toISOString(),
        isClearing: clearedAt !== null,
      })),
    waiting: waiting.map(({ destination, event, message, at, attempts, failure }) => ({
      destination,
      event,
      message,
      at: new Date(at).toISOString(),
      attempts,
      failure,
    })),
  }
}

/** Queues a test notice for each destination. @returns the time of the notices, by which they are found again */
export async function queueTestAlerts(
  store: Store<'alerts'>,
  destinations: readonly string[],
  now: number,
): Promise<string> {
  const notices = destinations.map((destination) => ({
    destination,
    event: 'test' as const,
    kind: 'test' as const,
    subject: '',
    severity: 'warning' as const,
    message: 'this is a test; nothing is wrong',
    remedy: '',
    since: now,
    at: now,
  }))
  await store.write((tx) => tx.alerts.addNotices(notices))
  return new Date(now).toISOString()
}

/** Deletes the test notices that were queued at a time and not sent. */
export const deleteTestAlerts = (
  store: Store<'alerts'>,
  destinations: readonly string[],
  at: string,
): Promise<void> =>
  store.write(async (tx) => {
    for (const destination of destinations)
      await tx.alerts.deleteNotice({ destination, kind: 'test', subject: '', at: Date.parse(at) })
  })
