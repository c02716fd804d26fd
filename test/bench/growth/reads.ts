import { encodeRequest } from '../load.ts'
import type { BenchServer } from './measure.ts'
import type { FilledDatabase } from './databases.ts'

/** Reads of a console over the busy developer's history, by row name. */
const pathBuilders: Readonly<Record<string, (filled: FilledDatabase) => string>> = {
  'log, newest 50': () => '/v1/logs?limit=50',
  'log of one application': ({ applications }) => `/v1/logs?limit=50&appId=${applications[1]?.id}`,
  'log, a rare type': () => '/v1/logs?limit=50&type=otp.canceled',
  'log, a type that never came': () => '/v1/logs?limit=50&type=otp.undelivered',
  'codes, newest 50': () => '/v1/otp?limit=50',
  'codes of one application': ({ applications }) => `/v1/otp?limit=50&appId=${applications[1]?.id}`,
  'codes, a rare status': () => '/v1/otp?limit=50&status=canceled',
  'codes, a status that an application has not': ({ applications }) =>
    `/v1/otp?limit=50&appId=${applications[1]?.id}&status=failed`,
  'codes, pending, of an application that has none': ({ applications }) =>
    `/v1/otp?limit=50&appId=${applications[1]?.id}&status=pending`,
  'users, newest 50': () => '/v1/users?limit=50',
  'user of a phone': ({ phone }) => `/v1/users/${encodeURIComponent(phone)}`,
  'audit trail, newest 50': () => '/v1/audit?limit=50',
  'audit trail, an action that never came': () => '/v1/audit?limit=50&action=account.disabled',
  'webhook deliveries, newest 50': ({ endpointId }) => `/v1/webhooks/${endpointId}/deliveries?limit=50`,
  'webhook deliveries, failed of one type': ({ endpointId }) =>
    `/v1/webhooks/${endpointId}/deliveries?limit=50&status=failed&type=otp.verified`,
  summary: () => '/v1/analytics/summary',
  'series of 90 days': () => '/v1/analytics/timeseries?range=90d',
}

export const readNames = Object.keys(pathBuilders)

export const encodeRead = (row: string, { filled, otpd }: BenchServer): Uint8Array =>
  encodeRequest(pathBuilders[row]?.(filled) ?? '', otpd.console.headers)
