import type { InferSelectModel } from 'drizzle-orm'
import type { Channel, OtpRequest } from '../domain/model/request.ts'
import { unknownPlace } from '../domain/model/request-history.ts'
import { formatCompat, parseCompat } from './compat-columns.ts'
import type { Database } from './engine/database.ts'
import { insertInto, updateTable, type Value } from './engine/row-writes.ts'
import type { Sealing } from './engine/sealing.ts'
import type { Tables } from './engine/tables.ts'

export type RequestRow = InferSelectModel<Tables['otpRequests']>

/**
 * Decrypts a row. Address, metadata and text are null if they cannot be decrypted. The assertions hold because
 * `toRequestValues` and `toChangedValues` alone write metadata, channel and compat.
 */
export function toOtpRequest(sealing: Sealing, row: RequestRow): OtpRequest {
  const { id } = row
  const metadata = sealing.openText('otp_requests.metadata', id, row.metadata)
  return {
    ...row,
    phone: sealing.openPhone('otp_requests.phone', id, row.phone),
    clientIp: sealing.openText('otp_requests.client_ip', id, row.clientIp),
    contexts: row.contexts === null ? [] : row.contexts.split(' '),
    channel: row.channel as Channel,
    compat: row.compat === null ? null : parseCompat(row.compat),
    metadata: metadata === null ? null : (JSON.parse(metadata) as Record<string, string>),
    ownText: sealing.openText('otp_requests.own_text', id, row.ownText),
  }
}

// PostgreSQL: the number of an entry is known to the server alone, and only once the entry is appended. The counter is read
// without a lock here, so that it is lower by what others append until then.
const computed = {
  history: `replace(given.history, '${unknownPlace}', (select (value + 1)::text from counters where name = 'event_seq'))`,
}

// prettier-ignore
export const insertRequests = insertInto('otp_requests', [
  'id', 'developer_id', 'project_id', 'app_id', 'environment', 'phone', 'country', 'status', 'failure_reason', 'channel',
  'provider', 'delivery_status', 'locale', 'client_ip', 'metadata', 'own_text', 'code_salt', 'code_hash', 'attempts',
  'resends', 'created_at', 'sent_at', 'expires_at', 'verified_at', 'previous_request', 'lane', 'contexts', 'history',
  'compat', 'updated_at',
], { computed })

/** Encrypts a request for `insertRequests`. */
export function toRequestValues(database: Database, sealing: Sealing, request: OtpRequest): Value[] {
  const { id, metadata, contexts } = request
  const metadataText = metadata === null ? null : JSON.stringify(metadata)
  return [
    id,
    database.shortId(request.developerId),
    database.shortId(request.projectId),
    database.shortId(request.appId),
    request.environment,
    sealing.sealPhone('otp_requests.phone', id, request.phone),
    request.country,
    request.status,
    request.failureReason,
    request.channel,
    request.provider,
    request.deliveryStatus,
    request.locale,
    sealing.sealText('otp_requests.client_ip', id, request.clientIp),
    sealing.sealText('otp_requests.metadata', id, metadataText),
    sealing.sealText('otp_requests.own_text', id, request.ownText),
    request.codeSalt,
    request.codeHash,
    request.attempts,
    request.resends,
    request.createdAt,
    request.sentAt,
    request.expiresAt,
    request.verifiedAt,
    request.previousRequest,
    request.lane,
    contexts.length === 0 ? null : contexts.join(' '),
    request.history,
    formatCompat(request.compat),
    request.updatedAt,
  ]
}

/** Writes the fields that change after the insertion. */
// prettier-ignore
export const updateRequests = updateTable('otp_requests', [
  'status', 'failure_reason', 'channel', 'provider', 'delivery_status', 'attempts', 'resends', 'sent_at', 'verified_at',
  'history', 'compat', 'updated_at',
], ['id'], computed)

/** Returns the values of `updateRequests`. */
export const toChangedValues = (request: OtpRequest): Value[] => [
  request.status,
  request.failureReason,
  request.channel,
  request.provider,
  request.deliveryStatus,
  request.attempts,
  request.resends,
  request.sentAt,
  request.verifiedAt,
  request.history,
  formatCompat(request.compat),
  request.updatedAt,
  request.id,
]
