import type { OtpStatus } from '../../domain/model/request.ts'
import type { Environment } from '../../domain/model/application.ts'
import type { webhookDeliveryStatuses } from '../../domain/model/webhook-delivery.ts'
import type { LogType } from '../../shared/event-kinds.ts'

// Numbers of the lists. They are stored: a number is never changed, or used again.

type DeliveryStatus = (typeof webhookDeliveryStatuses)[number]

/** Requests of a developer. */
export const requestsLists: Readonly<Record<Environment, number>> = { live: 1, test: 2 }

/** Requests of an application by their status. */
export const statusLists: Readonly<Record<OtpStatus, number>> = {
  pending: 3,
  verified: 4,
  failed: 5,
  expired: 6,
  canceled: 7,
}

/** Messages in the inbox of a developer. */
export const inboxList = 8

/** Identities of a developer. The key is the id of the identity, a colon, and the key of the phone's record. */
export const userLists: Readonly<Record<Environment, number>> = { live: 9, test: 10 }

/** Log entries of a developer. */
export const logLists: Readonly<Record<Environment, number>> = { live: 11, test: 12 }

/** Log entries of an application, or those of a developer that belong to none, by their type. */
export const typeLists: Readonly<Record<LogType, number>> = {
  'otp.sent': 13,
  'otp.delivered': 14,
  'otp.undelivered': 15,
  'otp.verified': 16,
  'otp.failed': 17,
  'otp.expired': 18,
  'otp.canceled': 19,
  'otp.blocked': 20,
  'guard.alert': 21,
  'message.sent': 22,
  'message.delivered': 23,
  'message.undelivered': 24,
  'message.verified': 25,
  'message.failed': 26,
  'otp.attempt_failed': 27,
  'otp.refused': 28,
  'webhook.disabled': 29,
  'guard.flagged': 30,
  'session.verified': 31,
}

const deliveryStatusNumbers: Readonly<Record<DeliveryStatus, number>> = {
  pending: 100,
  delivered: 200,
  failed: 300,
  skipped: 400,
}

/** Deliveries of an endpoint by their status and type. @param type empty if the event is lost */
export const deliveryList = (status: DeliveryStatus, type: string): number =>
  deliveryStatusNumbers[status] + ((typeLists as Readonly<Record<string, number>>)[type] ?? 0)

/** Writes an expression that converts values to numbers, in SQL; any other value to 0. */
export const numberSql = (column: string, numbers: Readonly<Record<string, number>>): string =>
  `case ${column} ${Object.entries(numbers)
    .map(([value, number]) => `when '${value}' then ${number}`)
    .join(' ')} else 0 end`

export const deliveryListSql = `${numberSql('status', deliveryStatusNumbers)} + ${numberSql('type', typeLists)}`
