import type { WebhookDeliveryStatus } from '../domain/model/webhook-delivery.ts'
import type { LogType } from '../shared/event-kinds.ts'
import { prepareEnvironment } from './app-environments.ts'
import type { Connection } from './engine/connection.ts'
import type { Database } from './engine/database.ts'
import type { ListKey } from './engine/sqlite-state.ts'
import { deliveryList, logLists, typeLists } from './sqlite/list-numbers.ts'

// Records which lists a row joins and leaves. PostgreSQL has no lists: there these functions do nothing.

/**
 * Adds a row to a list, or removes it.
 *
 * @param ownerId id of the application that the row belongs to, or else of the developer
 */
type ChangeList = (database: Database, list: number, ownerId: string, key: ListKey) => void

export const addToList: ChangeList = (database, list, ownerId, key) =>
  database.sqlite?.lists.change({ add: [list], remove: [] }, database.shortId(ownerId), key)

export const removeFromList: ChangeList = (database, list, ownerId, key) =>
  database.sqlite?.lists.change({ add: [], remove: [list] }, database.shortId(ownerId), key)

export const moveToList = (
  database: Database,
  { from, to }: { from: number; to: number },
  ownerId: string,
  key: ListKey,
): void => database.sqlite?.lists.change({ add: [to], remove: [from] }, database.shortId(ownerId), key)

type ListedEntry = { seq: number; type: LogType; developerId: string; appId: string | null }

export type ChangeEntryLists = ReturnType<typeof createEntryLists>

/**
 * Creates the function that changes the lists which have a log entry: that of its developer, and that of its application, if
 * it has one, and its type.
 */
export function createEntryLists(connection: Connection) {
  const { database } = connection
  const findEnvironment = database.sqlite && prepareEnvironment(connection, database.sqlite)
  return (change: ChangeList, { seq, type, developerId, appId }: ListedEntry): void => {
    if (!findEnvironment) return
    const environment = (appId === null ? undefined : findEnvironment(appId)) ?? 'live'
    change(database, logLists[environment], developerId, seq)
    change(database, typeLists[type], appId ?? developerId, seq)
  }
}

/** Key of an identity: sorts by its id, and ends with the key of its record. */
export const userKey = (identityId: string, handle: number) =>
  `${identityId}:${handle.toString(16).padStart(14, '0')}`
export const userKeyNumber = (key: string) => Number.parseInt(key.slice(key.lastIndexOf(':') + 1), 16)

type DeliveryChange = { from: readonly WebhookDeliveryStatus[]; to: WebhookDeliveryStatus | undefined }

/**
 * Moves a delivery to the list of its status and type. Its owner is its endpoint.
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
