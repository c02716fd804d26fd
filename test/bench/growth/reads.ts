import { encodeRequest } from '../load.ts'
import type { BenchServer } from './measure.ts'

/** Reads of a console over the busy developer's history, by row name. */
const pathBuilders: Readonly<Record<string, (server: BenchServer) => string>> = {
  'log, newest 50': () => '/v1/logs?limit=50',
  'log of one application': ({ filled: { applications } }) =>
    `/v1/logs?limit=50&appId=${applications[1]?.id}`,
  'log, a rare type': () => '/v1/logs?limit=50&type=otp.canceled',
  'log, a type that never came': () => '/v1/logs?limit=50&type=otp.undelivered',
  'log, a type that one application has not': ({ filled: { applications } }) =>
    `/v1/logs?limit=50&appId=${applications[1]?.id}&type=otp.failed`,
  'codes, newest 50': () => '/v1/otp?limit=50',
  'codes of one application': ({ filled: { applications } }) =>
    `/v1/otp?limit=50&appId=${applications[1]?.id}`,
  'codes, a rare status': () => '/v1/otp?limit=50&status=canceled',
  'codes, a status that an application has not': ({ filled: { applications } }) =>
    `/v1/otp?limit=50&appId=${applications[1]?.id}&status=failed`,
  'codes, pending, of an application that has none': ({ filled: { applications } }) =>
    `/v1/otp?limit=50&appId=${applications[1]?.id}&status=pending`,
  'codes, live': () => '/v1/otp?limit=50&environment=live',
  'codes, test, an environment without any': () => '/v1/otp?limit=50&environment=test',
  'codes of a phone': ({ phone }) => `/v1/otp?limit=50&phone=${encodeURIComponent(phone)}`,
  'events of a code': ({ requestId }) => `/v1/otp/${requestId}/events`,
  'log of a code': ({ requestId }) => `/v1/logs?requestId=${requestId}`,
  'log, live': () => '/v1/logs?limit=50&environment=live',
  'log, test, an environment without any': () => '/v1/logs?limit=50&environment=test',
  'users, newest 50': () => '/v1/users?limit=50',
  'users, live': () => '/v1/users?limit=50&environment=live',
  'user of a phone': ({ phone }) => `/v1/users/${encodeURIComponent(phone)}`,
  'audit trail, newest 50': () => '/v1/audit?limit=50',
  'audit trail, an action that never came': () => '/v1/audit?limit=50&action=account.disabled',
  'audit trail, a resource without entries': () => '/v1/audit?limit=50&targetId=app_2',
  'webhook deliveries, newest 50': ({ filled: { endpointId } }) =>
    `/v1/webhooks/${endpointId}/deliveries?limit=50`,
  'webhook deliveries, failed': ({ filled: { endpointId } }) =>
    `/v1/webhooks/${endpointId}/deliveries?limit=50&status=failed`,
  'webhook deliveries, a type that never came': ({ filled: { endpointId } }) =>
    `/v1/webhooks/${endpointId}/deliveries?limit=50&type=otp.failed`,
  'webhook deliveries, failed of one type': ({ filled: { endpointId } }) =>
    `/v1/webhooks/${endpointId}/deliveries?limit=50&status=failed&type=otp.verified`,
  'inbox, newest 50': () => '/v1/inbox?limit=50',
  summary: () => '/v1/analytics/summary',
  'series of 90 days': () => '/v1/analytics/timeseries?range=90d',
  'series of one application': ({ filled: { applications } }) =>
    `/v1/analytics/timeseries?range=90d&appId=${applications[1]?.id}`,
  'counts by application, 90 days': () => '/v1/analytics/breakdown?by=application&range=90d',
  'counts by country, 90 days': () => '/v1/analytics/breakdown?by=country&range=90d',
  'counts by provider, 7 days': () => '/v1/analytics/breakdown?by=provider&range=7d',
}

export const readNames = Object.keys(pathBuilders)

export const encodeRead = (row: string, server: BenchServer): Uint8Array =>
  encodeRequest(pathBuilders[row]?.(server) ?? '', server.headers)
