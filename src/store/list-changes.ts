import { otpStatuses } from '../domain/model/request.ts'
import { webhookDeliveryStatuses } from '../domain/model/webhook-delivery.ts'
import { eventKinds, logTypes } from '../shared/event-kinds.ts'
import type { Database } from './engine/database.ts'
import type { ListChange } from './engine/list-tail.ts'

// Names of the lists of the lagging index, and the changes that rows make to them. Names are stored.

/** Maps each value to something. */
const byValue = <V extends string, T>(values: readonly V[], build: (value: V) => T) =>
  // Every value gets an entry.
  Object.fromEntries(values.map((value) => [value, build(value)])) as Record<V, T>

/** A request is in the list of its status. */
export const requestList = byValue(otpStatuses, (status) => `requests ${status}`)
export const requestLists = Object.values(requestList)
export const requestAdded = byValue(otpStatuses, (status): ListChange => ({
  add: [requestList[status]],
  remove: [],
}))
export const requestClosed = byValue(otpStatuses, (status): ListChange => ({
  add: [requestList[status]],
  remove: [requestList.pending],
}))
export const requestDeleted = byValue(otpStatuses, (status): ListChange => ({
  add: [],
  remove: [requestList[status]],
}))

/** A log entry is in the list of all, which is read most, and in that of its type. */
export const logList = 'log'
export const logTypeList = byValue(logTypes, (type) => `log ${type}`)
export const entryAdded = byValue(logTypes, (type): ListChange => ({
  add: [logList, logTypeList[type]],
  remove: [],
}))
export const entryDeleted = byValue(logTypes, (type): ListChange => ({
  add: [],
  remove: [logList, logTypeList[type]],
}))

/** Not a list: tells readers that the content of an entry was replaced. */
export const entryContent = 'log content'
const entryReplaced: ListChange = { add: [], remove: [entryContent] }

export const noteReplacedEntry = (database: Database, seq: number): void =>
  database.listIndex?.note(entryReplaced, [], seqKey(seq))

export const inboxList = 'inbox'
export const messageAdded: ListChange = { add: [inboxList], remove: [] }
export const messageDeleted: ListChange = { add: [], remove: [inboxList] }

export const userList = 'users'
export const userAdded: ListChange = { add: [userList], remove: [] }
export const userDeleted: ListChange = { add: [], remove: [userList] }

/** Key of an identity: sorts by its id, and ends with the key of its record. */
export const userKey = (identityId: string, slot: number) =>
  `${identityId}:${slot.toString(16).padStart(14, '0')}`
export const userSlot = (key: string) => Number.parseInt(key.slice(key.lastIndexOf(':') + 1), 16)

type DeliveryStatus = (typeof webhookDeliveryStatuses)[number]

const deliveryList = (status: string, type: string) => `deliveries ${status} ${type}`

/** Types of deliveries; that of one whose event is lost is empty. */
const deliveryTypes = [...eventKinds, '']

/** A delivery is in the list of its status and type. Its owner is its endpoint. */
export const deliveryLists = (filter: { status?: string | undefined; type?: string | undefined }) =>
  (filter.status === undefined ? webhookDeliveryStatuses : [filter.status]).flatMap((status) =>
    (filter.type === undefined ? deliveryTypes : [filter.type]).map((type) => deliveryList(status, type)),
  )

const deliveryChanges = new Map<string, ListChange>()

/** @param to `added` is pending, and was in no list before */
export function noteDelivery(
  database: Database,
  delivery: { id: string; endpointId: string; type: string },
  to: DeliveryStatus | 'added' | 'deleted',
): void {
  const { id, endpointId, type } = delivery
  const name = `${to} ${type}`
  let change = deliveryChanges.get(name)
  if (!change) {
    const status = to === 'added' ? 'pending' : to
    const otherLists = webhookDeliveryStatuses.filter((one) => one !== status)
    change = {
      add: to === 'deleted' ? [] : [deliveryList(status, type)],
      remove: to === 'added' ? [] : otherLists.map((one) => deliveryList(one, type)),
    }
    deliveryChanges.set(name, change)
  }
  database.listIndex?.note(change, [endpointId], id)
}

/** Key of a row with a sequence number. Its digits are padded, so that texts sort as numbers do. */
export const seqKey = (seq: number) => seq.toString(16).padStart(11, '0')
export const keySeq = (key: string) => Number.parseInt(key, 16)

/** Records a change of the lists of the row's developer and application. Does nothing on PostgreSQL. */
export function noteOwned(
  database: Database,
  change: ListChange,
  { developerId, appId }: { developerId: string; appId: string | null },
  key: string,
): void {
  if (!database.listIndex) return
  const developer = database.shortId(developerId)
  database.listIndex.note(change, appId === null ? [developer] : [developer, database.shortId(appId)], key)
}

/** Records that a developer's identity is, or is no longer, in the record with this key. */
export const noteUser = (
  database: Database,
  change: ListChange,
  developerId: string,
  identityId: string,
  slot: number,
): void => noteOwned(database, change, { developerId, appId: null }, userKey(identityId, slot))
