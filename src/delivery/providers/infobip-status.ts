import { createFailure, findFailure, type CodeTable } from '../kit/failures.ts'
import { textAt, valueAt } from '../kit/json.ts'
import type { Failure } from '../kit/provider.ts'

/** Values of `status.groupId`; 1 and 3 are not failures. */
export const statusGroups = {
  pending: '1',
  undeliverable: '2',
  delivered: '3',
  expired: '4',
  rejected: '5',
} as const

/**
 * Ids of the `status` object (https://www.infobip.com/docs/essentials/api-essentials/response-status-and-error-codes, July
 * 2026).
 */
const statusCodes: CodeTable = {
  6: ['unreachable', { permanent: true, at: 'route' }], // REJECTED_NETWORK
  8: 'invalid_number', // REJECTED_PREFIX_MISSING
  9: 'unreachable', // UNDELIVERABLE_NOT_DELIVERED
  10: 'opted_out', // REJECTED_DND
  11: 'sender_invalid', // REJECTED_SOURCE
  12: 'no_credit', // REJECTED_NOT_ENOUGH_CREDITS
  13: 'sender_invalid', // REJECTED_SENDER
  14: 'opted_out', // REJECTED_DESTINATION: on the blocklist
  17: 'no_credit', // REJECTED_PREPAID_PACKAGE_EXPIRED
  18: 'sender_invalid', // REJECTED_DESTINATION_NOT_REGISTERED: a trial account
  19: 'geo_blocked', // REJECTED_ROUTE_NOT_AVAILABLE
  20: ['throttled', { at: 'number' }], // REJECTED_FLOODING_FILTER: the same message too often
  21: 'provider_down', // REJECTED_SYSTEM_ERROR
  51: 'invalid_number', // MISSING_TO
  52: 'invalid_number', // REJECTED_DESTINATION
  87: 'blocked_by_carrier', // SIGNALS_BLOCKED
}

const routeBlocked = ['unreachable', { permanent: true, at: 'route' }] as const

/**
 * Ids of the `error` object that are more specific than the status: without them, a sender that an operator refuses would
 * count as an unreachable number, which no other provider is asked for.
 */
const errorCodes: CodeTable = {
  1: ['unreachable', { permanent: true }], // EC_UNKNOWN_SUBSCRIBER
  351: 'invalid_number',
  352: 'invalid_number',
  368: 'sender_invalid', // EC_INVALID_SOURCE_ADDRESS
  375: 'sender_invalid', // EC_SOURCE_ADDRESS_IS_BLOCKED
  433: 'auth_failed',
  488: 'sender_invalid', // a toll-free number that is not verified
  541: 'throttled', // limit of AT&T
  542: 'throttled', // limit of T-Mobile
  560: routeBlocked, // short codes
  561: 'content_blocked',
  562: 'sender_invalid',
  563: 'sender_invalid',
  564: 'sender_invalid',
  565: routeBlocked,
  566: routeBlocked,
  572: 'sender_invalid', // no campaign
  573: 'opted_out',
  592: routeBlocked, // EC_ACCOUNT_NOT_PROVISIONED_FOR_CHANNEL
  597: routeBlocked,
  603: 'opted_out', // EC_CONTENT_BLOCKED, by STOP
  607: 'content_blocked',
  608: 'blocked_by_carrier', // EC_SIGNALS_BLOCKED
  609: 'throttled', // messages of the day
  2050: 'opted_out',
  2052: 'opted_out',
  2053: 'sender_invalid', // EC_BLACKLISTED_SENDERADDRESS
  3041: 'invalid_number', // deactivated
  4099: 'no_credit', // the account's limit of the month
  4103: ['throttled', { at: 'number' }],
  4104: ['throttled', { at: 'number' }],
  4202: 'throttled', // limit of 10DLC
}

/**
 * Ids of the `status` object whose group promises more, or says less, than they do: another status may follow, or none ever
 * will.
 */
export const openStatuses: ReadonlySet<string> = new Set([
  '2', // DELIVERED_TO_OPERATOR
  '29', // EXPIRED_DLR_UNKNOWN
])

/** Derives the failure from a message's `error` and `status`. */
export function readFailure(message: unknown): Failure {
  const status = textAt(message, 'status', 'id')
  // A call that was not answered. Matched by name, because the ids changed in 2024; that the new names
  // contain these words was not verified on a live account. Infobip marks all of them permanent, but the next
  // call may be answered.
  const callFailure = /BUSY|NO_ANSWER|MACHINE/.exec(textAt(message, 'error', 'name') ?? '')
  if (callFailure) return createFailure('unreachable', callFailure.input)
  const knownFailure =
    findFailure(errorCodes, textAt(message, 'error', 'id')) ?? findFailure(statusCodes, status)
  if (knownFailure) return knownFailure
  const code = textAt(message, 'status', 'name') ?? status ?? null
  const isUndeliverable = ['2', '4'].includes(textAt(message, 'status', 'groupId') ?? '')
  const permanent = valueAt(message, 'error', 'permanent') === true
  return createFailure(isUndeliverable ? 'unreachable' : 'unknown', code, { permanent })
}
