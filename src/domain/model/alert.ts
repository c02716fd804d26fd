import { hourMs, minuteMs } from '../../shared/durations.ts'

/** Kinds of faults that alerts are sent for. */
export const alertKinds = [
  'guard',
  'provider',
  'conversion',
  'backup',
  'disk',
  'certificate',
  'clock',
  'node',
  'webhook',
] as const
export type AlertKind = (typeof alertKinds)[number]

/** `critical`: codes are not sent, or will soon not be. */
export const alertSeverities = ['warning', 'critical'] as const
export type AlertSeverity = (typeof alertSeverities)[number]

/** Identifies an alert: there is at most one of each kind and subject. */
export type AlertKey = {
  kind: AlertKind
  /** The country, limit, provider, node or endpoint that it is about; '' where there is only one. */
  subject: string
}

/** A fault that holds now. Its texts have neither phone numbers nor secrets. */
export type AlertCause = AlertKey & { severity: AlertSeverity; message: string; remedy: string }

/** An alert, in the states of Prometheus: pending, firing, and deleted once resolved. */
export type Alert = AlertCause & {
  /** Observer of the fault: the installation, or one node. */
  source: string
  since: number
  /** Null while pending: it fires once it has lasted long enough. */
  firedAt: number | null
  /** When the last notice was due. */
  notifiedAt: number | null
  /** Since when the fault no longer holds; null while it does. */
  clearedAt: number | null
}

/**
 * Returns how long a fault must be gone before its alert is resolved, so that one that comes and goes is one alert. The guard
 * counts 24 hours, in which single messages raise its alert again, and a conversion changes with every code.
 */
export const resolvesAfterMs = (kind: AlertNotice['kind']): number =>
  kind === 'guard' || kind === 'conversion' ? 6 * hourMs : 5 * minuteMs

export type AlertEvent = 'firing' | 'reminder' | 'resolved' | 'test'

/** A message to one destination about an alert. */
export type AlertNotice = Omit<AlertCause, 'kind'> & {
  kind: AlertKind | 'test'
  /** Name of the destination in the configuration. */
  destination: string
  event: AlertEvent
  since: number
  at: number
}

/** Identifies a notice: a destination gets at most one about an alert at a time. */
export type AlertNoticeKey = Pick<AlertNotice, 'destination' | 'kind' | 'subject' | 'at'>

/** A notice that waits to be sent. */
export type QueuedAlertNotice = AlertNotice & {
  dueAt: number
  attempts: number
  /** Why the last attempt failed, without secrets; null before the first one ended. */
  failure: string | null
}

/** Settings of one destination. `values` includes secrets. */
export type AlertDestination = {
  name: string
  kind: string
  /** Least severity of the alerts that it gets. */
  min: AlertSeverity
  values: Readonly<Record<string, string>>
}

/** Whether a destination gets alerts of a severity. */
export const isWanted = ({ min }: Pick<AlertDestination, 'min'>, severity: AlertSeverity): boolean =>
  alertSeverities.indexOf(severity) >= alertSeverities.indexOf(min)
