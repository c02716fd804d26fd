import type {
  Alert,
  AlertKey,
  AlertNotice,
  AlertNoticeKey,
  AlertSeverity,
  QueuedAlertNotice,
} from '../model/alert.ts'

/**
 * Alerts, and the outbox of their notices. Each method that changes the state of an alert is one conditional statement: of
 * several nodes that do the same, one is told that it did.
 */
export type AlertStore = {
  /** Lists the alerts by kind and subject. */
  list(): Promise<Alert[]>
  /** Does nothing if there is one of its kind and subject already. */
  insert(alert: Alert): Promise<void>
  /** Takes over the texts, and whether the fault holds. */
  update(key: AlertKey, changes: Partial<Pick<Alert, 'message' | 'remedy' | 'clearedAt'>>): Promise<void>
  /** Makes a pending alert fire. @returns false if it fires already or is gone */
  fire(key: AlertKey, now: number): Promise<boolean>
  /** Raises the severity of an alert. @returns false if it has that severity already or is gone */
  escalate(key: AlertKey, severity: AlertSeverity, now: number): Promise<boolean>
  /** Notes a reminder. @returns false if another notice followed the one of `notifiedAt` already */
  remind(key: AlertKey, notifiedAt: number, now: number): Promise<boolean>
  /** @returns false if it is gone already */
  delete(key: AlertKey): Promise<boolean>

  addNotices(notices: readonly AlertNotice[]): Promise<void>
  /** Lists the queued notices, oldest first. */
  listNotices(): Promise<QueuedAlertNotice[]>
  /** Leases a notice that is due until `until`. @returns false if another node leased it or it is gone */
  leaseNotice(key: AlertNoticeKey, now: number, until: number): Promise<boolean>
  /** Makes a leased notice due again. */
  postponeNotice(key: AlertNoticeKey, dueAt: number, failure: string): Promise<void>
  deleteNotice(key: AlertNoticeKey): Promise<void>
  /** Deletes the notices of destinations that are no longer configured. */
  deleteNoticesExcept(destinations: readonly string[]): Promise<void>
}
