import { otpStatuses, type OtpStatus } from '../domain/model/request.ts'
import { webhookDeliveryStatuses } from '../domain/model/webhook-delivery.ts'
import { eventKinds, logTypes, type LogType } from '../shared/event-kinds.ts'
import type { Environment } from '../domain/model/application.ts'
import type { Database } from './engine/database.ts'
import type { ListChange } from './engine/list-tail.ts'
import { environments } from '../shared/otp-values.ts'

// Names of the lists of the lagging index, and the changes that rows make to them. Names are stored.

/** Maps each value to something. */
const byValue = <V extends string, T>(values: readonly V[], build: (value: V) => T) =>
  // Every value gets an entry.
  Object.fromEntries(values.map((value) => [value, build(value)])) as Record<V, T>

/** Lists of a developer hold one environment each, so that either is read without the other. */

const byEnvironment = <T>(build: (environment: Environment) => T) => byValue(environments, build)

/** The names for live were those of all, when there was one list for both. */
const listName = (name: string, environment: Environment) => (environment === 'live' ? name : `${name} test`)

const requestList = byEnvironment((environment) =>
  byValue(otpStatuses, (status) => listName(`requests ${status}`, environment)),
)

/** Lists the names of the lists that have the requests of an environment and a status, or of any. */
export const requestLists = (filter: {
  environment?: Environment | undefined
  status?: OtpStatus | undefined
}): string[] =>
  (filter.environment === undefined ? environments : [filter.environment]).flatMap((environment) =>
    (filter.status === undefined ? otpStatuses : [filter.status]).map(
      (status) => requestList[environment][status],
    ),
  )

/** A request is in the list of its status. */
export const requestAdded = byEnvironment((environment) =>
  byValue(otpStatuses, (status): ListChange => ({ add: [requestList[environment][status]], remove: [] })),
)
export const requestClosed = byEnvironment((environment) =>
  byValue(otpStatuses, (status): ListChange => ({
    add: [requestList[environment][status]],
    remove: [requestList[environment].pending],
  })),
)
export const requestDeleted = byEnvironment((environment) =>
  byValue(otpStatuses, (status): ListChange => ({ add: [], remove: [requestList[environment][status]] })),
)

/** A log entry is in the list of all, which is read most, and in that of its type. */
const logList = byEnvironment((environment) => listName('log', environment))
const logTypeList = byEnvironment((environment) =>
  byValue(logTypes, (type) => listName(`log ${type}`, environment)),
)

/** Lists the names of the lists that have the log entries of an environment and of some types, or of any. */
export const logLists = (filter: {
  environment?: Environment | undefined
  types?: readonly LogType[] | undefined
}): string[] =>
  (filter.environment === undefined ? environments : [filter.environment]).flatMap((environment) =>
    filter.types
      ? [...new Set(filter.types)].map((type) => logTypeList[environment][type])
      : [logList[environment]],
  )

export const entryAdded = byEnvironment((environment) =>
  byValue(logTypes, (type): ListChange => ({
    add: [logList[environment], logTypeList[environment][type]],
    remove: [],
  })),
)
export const entryDeleted = byEnvironment((environment) =>
  byValue(logTypes, (type): ListChange => ({
    add: [],
    remove: [logList[environment], logTypeList[environment][type]],
  })),
)

export const inboxList = 'inbox'
export const messageAdded: ListChange = { add: [inboxList], remove: [] }
export const messageDeleted: ListChange = { add: [], remove: [inboxList] }

const userList = byEnvironment((environment) => listName('users', environment))
export const userLists = (environment?: Environment): string[] =>
  environment === undefined ? Object.values(userList) : [userList[environment]]
export const userAdded = byEnvironment((environment): ListChange => ({
  add: [userList[environment]],
  remove: [],
}))
export const userDeleted = byEnvironment((environment): ListChange => ({
  add: [],
  remove: [userList[environment]],
}))

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

/** @param to `added` is pending; that and `skipped` were in no list before */
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
      remove: to === 'added' || to === 'skipped' ? [] : otherLists.map((one) => deliveryList(one, type)),
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
