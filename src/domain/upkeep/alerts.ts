import {
  isWanted,
  type Alert,
  type AlertCause,
  type AlertDestination,
  type AlertEvent,
  type AlertKind,
  type AlertNotice,
  resolvesAfterMs,
} from '../model/alert.ts'
import type { Store, Stores } from '../store/store.ts'
import { dayMs, minuteMs } from '../../shared/durations.ts'

/** How long a fault must last before its alert fires; others fire at once. A server that starts makes a late backup first. */
const firesAfterMs: Partial<Record<AlertKind, number>> = { backup: 15 * minuteMs, provider: 5 * minuteMs }
const remindsAfterMs = dayMs

/** The faults that one source found. */
type Observation = {
  /** The installation, or one node. */
  source: string
  /** Kinds that were looked for: alerts of others stay as they are, such as of a check that failed. */
  kinds: readonly AlertKind[]
  causes: readonly AlertCause[]
  /** Describes the state of a subject whose fault is gone; undefined if there is nothing to say. */
  describe?: ((subject: string) => string | undefined) | undefined
}

type Destinations = readonly Pick<AlertDestination, 'name' | 'min'>[]

/**
 * Brings the alerts of a source up to date with what it found, and queues a notice for each destination when one fires, gets
 * worse, is resolved, and once a day while it lasts. One transaction, in which every change is conditional: of several nodes
 * that observe the same, one queues the notices.
 */
export async function recordObservation(
  store: Store<'alerts'>,
  { source, kinds, causes, describe }: Observation,
  destinations: Destinations,
  now: number,
): Promise<void> {
  const isObserved = (alert: Alert) => alert.source === source && kinds.includes(alert.kind)
  // Usually all is well, and nothing is written.
  if (causes.length === 0 && !(await store.read.alerts.list()).some(isObserved)) return
  await store.write(async (tx) => {
    const stored = await tx.alerts.list()
    const transitions = createTransitions(tx, destinations, now)
    // In the order of the key, in which all nodes lock the rows.
    for (const cause of causes.toSorted(byKey)) {
      const alert = stored.find(isSame(cause))
      if (alert) await transitions.hold(alert, cause)
      else await transitions.begin({ ...cause, source })
    }
    for (const alert of stored)
      if (isObserved(alert) && !causes.some(isSame(alert))) await transitions.miss(alert, describe)
  })
}

/** Resolves the alerts of nodes that no longer run, which would last forever. */
export async function resolveAlertsOfGoneNodes(
  store: Store<'alerts'>,
  sources: readonly string[],
  destinations: Destinations,
  now: number,
): Promise<void> {
  const isGone = ({ source }: Alert) => !sources.includes(source)
  if (!(await store.read.alerts.list()).some(isGone)) return
  await store.write(async (tx) => {
    const { miss } = createTransitions(tx, destinations, now)
    for (const alert of (await tx.alerts.list()).filter(isGone)) await miss(alert)
  })
}

/** Tells whether two are about the same fault. */
export const isSame =
  (a: Pick<AlertNotice, 'kind' | 'subject'>) => (b: Pick<AlertNotice, 'kind' | 'subject'>) =>
    a.kind === b.kind && a.subject === b.subject

const byKey = (a: AlertCause, b: AlertCause) =>
  a.kind === b.kind ? (a.subject < b.subject ? -1 : 1) : a.kind < b.kind ? -1 : 1

/** Creates the transitions between the states of an alert, as part of a transaction. */
function createTransitions(tx: Pick<Stores, 'alerts'>, destinations: Destinations, now: number) {
  const queue = (event: AlertEvent, { kind, subject, severity, message, remedy, since }: Alert) =>
    tx.alerts.addNotices(
      destinations
        .filter((destination) => isWanted(destination, severity))
        .map(({ name: destination }): AlertNotice => ({
          destination,
          event,
          kind,
          subject,
          severity,
          message,
          remedy,
          since,
          at: now,
        })),
    )
  const fireIfDue = async (alert: Alert) => {
    if (alert.firedAt !== null || now - alert.since < (firesAfterMs[alert.kind] ?? 0)) return
    if (await tx.alerts.fire(alert, now)) await queue('firing', alert)
  }

  return {
    async begin(cause: AlertCause & { source: string }) {
      const pending = { ...cause, since: now, firedAt: null, notifiedAt: null, clearedAt: null }
      await tx.alerts.insert(pending)
      await fireIfDue(pending)
    },

    /** The fault still holds. */
    async hold(stored: Alert, { severity, message, remedy }: AlertCause) {
      const isWorse = severity === 'critical' && stored.severity === 'warning'
      const alert = { ...stored, message, remedy, ...(isWorse && { severity }) }
      if (stored.clearedAt !== null || message !== stored.message || remedy !== stored.remedy)
        await tx.alerts.update(alert, { message, remedy, clearedAt: null })
      const isEscalated = isWorse && (await tx.alerts.escalate(alert, severity, now))
      if (isEscalated && alert.firedAt !== null) return queue('firing', alert)
      if (alert.firedAt === null) return fireIfDue(alert)
      const { notifiedAt } = alert
      if (notifiedAt === null || now - notifiedAt < remindsAfterMs) return
      if (await tx.alerts.remind(alert, notifiedAt, now)) await queue('reminder', alert)
    },

    /** The fault does not hold any more. */
    async miss(alert: Alert, describe?: Observation['describe']) {
      if (alert.firedAt === null) return void (await tx.alerts.delete(alert))
      if (alert.clearedAt === null) return tx.alerts.update(alert, { clearedAt: now })
      if (now - alert.clearedAt < resolvesAfterMs(alert.kind)) return
      if (!(await tx.alerts.delete(alert))) return
      await queue('resolved', { ...alert, message: describe?.(alert.subject) ?? alert.message, remedy: '' })
    },
  }
}
