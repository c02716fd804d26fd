import { isWanted, type AlertCause, type AlertDestination, type AlertNotice } from '../domain/model/alert.ts'
import type { Store } from '../domain/store/store.ts'
import { isSame, recordObservation } from '../domain/upkeep/alerts.ts'

/**
 * Creates what sends the alert of a full disk, whose database cannot store it: once to each destination, and again with the
 * next observation to one that did not take it. The alert is stored once there is room, and its notice for those that did not.
 *
 * @param needs.send resolves to whether the destination took the notice
 */
export function createUnstoredAlert(needs: {
  source: string
  destinations(): readonly AlertDestination[]
  send(notice: AlertNotice): Promise<boolean>
  now(): number
}) {
  let unstored: { causes: AlertCause[]; since: number; told: Set<string> } | undefined

  return {
    /** Sends notices of what could not be stored. Never rejects. */
    async send(store: Store<'alerts'>, causes: AlertCause[]): Promise<void> {
      if (causes.length === 0) return
      const at = needs.now()
      const { since, told } = (unstored = { since: at, told: new Set(), ...unstored, causes })
      const hasSent = await readSent(store)
      const notices = causes.flatMap((cause) =>
        needs
          .destinations()
          .filter((destination) => isWanted(destination, cause.severity))
          .filter(({ name }) => !told.has(name) && !hasSent(cause, name))
          .map(({ name }) => ({ ...cause, destination: name, event: 'firing' as const, since, at })),
      )
      await Promise.all(
        notices.map(async (notice) => {
          if (await needs.send(notice)) told.add(notice.destination)
        }),
      )
    },

    /** Stores the alert once there is room, so that its end is told too. */
    async store(store: Store<'alerts'>): Promise<void> {
      if (!unstored) return
      const { causes, since, told } = unstored
      const observation = { source: needs.source, kinds: causes.map(({ kind }) => kind), causes }
      const untold = needs.destinations().filter(({ name }) => !told.has(name))
      await recordObservation(store, observation, untold, since)
      unstored = undefined
    },
  }
}

/** Reads which notices were sent before the disk was full. Then it cannot store that the text of the alert has changed. */
async function readSent({ read }: Store<'alerts'>) {
  const alerts = await read.alerts.list().catch(() => [])
  const waiting = await read.alerts.listNotices().catch(() => [])
  return (cause: AlertCause, destination: string): boolean =>
    alerts.some(
      (alert) =>
        isSame(cause)(alert) &&
        alert.firedAt !== null &&
        (alert.severity === 'critical' || alert.severity === cause.severity),
    ) && !waiting.some((notice) => notice.destination === destination && isSame(cause)(notice))
}
