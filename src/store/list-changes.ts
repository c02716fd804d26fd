import { otpStatuses } from '../domain/model/request.ts'
import type { WebhookDeliveryStatus } from '../domain/model/webhook-delivery.ts'
import { logTypes, type LogType } from '../shared/event-kinds.ts'
import { environments } from '../shared/otp-values.ts'
import { createEnvironmentLookup } from './app-environments.ts'
import type { Connection } from './engine/connection.ts'
import type { Database } from './engine/database.ts'
import type { ListChange } from './engine/sqlite-state.ts'
import {
  deliveryList,
  inboxList,
  logLists,
  requestsLists,
  statusLists,
  typeLists,
  userLists,
} from './sqlite/list-numbers.ts'

// Changes that rows make to lists: constants, so that recording one costs little.

/** Maps each value to something. */
const byValue = <V extends string, T>(values: readonly V[], build: (value: V) => T) =>
  // Every value gets an entry.
  Object.fromEntries(values.map((value) => [value, build(value)])) as Record<V, T>

const added = (...add: number[]): ListChange => ({ add, remove: [] })
const removed = (...remove: number[]): ListChange => ({ add: [], remove })

/** A request is in the list of its developer, and in that of its application and its status. */
export const requestAdded = {
  developer: byValue(environments, (environment) => added(requestsLists[environment])),
  application: byValue(otpStatuses, (status) => added(statusLists[status])),
}
export const requestClosed = byValue(otpStatuses, (status): ListChange => ({
  add: [statusLists[status]],
  remove: [statusLists.pending],
}))
export const requestDeleted = {
  developer: byValue(environments, (environment) => removed(requestsLists[environment])),
  application: byValue(otpStatuses, (status) => removed(statusLists[status])),
}

/** A log entry is in the list of its developer, and in that of its application, if it has one, and its type. */
export const entryAdded = {
  developer: byValue(environments, (environment) => added(logLists[environment])),
  application: byValue(logTypes, (type) => added(typeLists[type])),
}
export const entryDeleted = {
  developer: byValue(environments, (environment) => removed(logLists[environment])),
  application: byValue(logTypes, (type) => removed(typeLists[type])),
}

export type ChangeEntryLists = ReturnType<typeof createEntryLists>

/** Creates the function that changes the lists which have an entry. It does nothing on PostgreSQL. */
export function createEntryLists(connection: Connection) {
  const { database } = connection
  const findEnvironment = createEnvironmentLookup(connection)
  return async (
    { developer, application }: typeof entryAdded,
    { type, developerId, appId }: { type: LogType; developerId: string; appId: string | null },
    seq: number,
  ): Promise<void> => {
    if (!database.sqlite) return
    const environment = (appId === null ? undefined : await findEnvironment(appId)) ?? 'live'
    changeOwnedLists(database, developer[environment], developerId, seq)
    changeOwnedLists(database, application[type], appId ?? developerId, seq)
  }
}

export const messageAdded = added(inboxList)
export const messageDeleted = removed(inboxList)

export const userAdded = byValue(environments, (environment) => added(userLists[environment]))
export const userDeleted = byValue(environments, (environment) => removed(userLists[environment]))

/** Key of an identity: sorts by its id, and ends with the key of its record. */
export const userKey = (identityId: string, handle: number) =>
  `${identityId}:${handle.toString(16).padStart(14, '0')}`
export const userKeyNumber = (key: string) => Number.parseInt(key.slice(key.lastIndexOf(':') + 1), 16)

type DeliveryChange = { from: readonly WebhookDeliveryStatus[]; to: WebhookDeliveryStatus | undefined }

/**
 * Moves a delivery to the list of its status and type. Its owner is its endpoint. Does nothing on PostgreSQL.
 *
 * @param change.from statuses that it may have had; none if it is new
 * @param change.to undefined if it is deleted
 */
export function changeDeliveryLists(
  database: Database,
  { id, endpointId, type }: { id: string; endpointId: string; type: string },
  { from, to }: DeliveryChange,
): void {
  const remove = from.map((status) => deliveryList(status, type))
  database.sqlite?.lists.change({ add: to ? [deliveryList(to, type)] : [], remove }, endpointId, id)
}

/**
 * Records a change of the lists of an application or a developer. Does nothing on PostgreSQL.
 *
 * @param ownerId id of the application that the row belongs to, or else of the developer
 */
export const changeOwnedLists = (
  database: Database,
  change: ListChange,
  ownerId: string,
  key: string | number,
): void => database.sqlite?.lists.change(change, database.shortId(ownerId), key)
