import type { InferSelectModel } from 'drizzle-orm'
import type { Channel, OtpRequest } from '../domain/model/request.ts'
import type { SentTemplate } from '../domain/model/sent-template.ts'
import { unknownSeq } from '../domain/model/request-history.ts'
import { formatCompat, parseCompat } from './compat-columns.ts'
import type { Database } from './engine/database.ts'
import { insertInto, updateTable, type Columns } from './engine/row-writes.ts'
import type { Sealing } from './engine/sealing.ts'
import type { Tables } from './engine/tables.ts'

export type RequestRow = InferSelectModel<Tables['otpRequests']>

/**
 * Decrypts a row. Address, metadata, text and template are null if they cannot be decrypted. The assertions hold because
 * `createRequestWrites` alone has the statements that write metadata, template, channel and compat.
 */
export function toOtpRequest(sealing: Sealing, row: RequestRow): OtpRequest {
  const { id } = row
  const metadata = sealing.openText('otp_requests.metadata', id, row.metadata)
  const template = sealing.openText('otp_requests.template', id, row.template)
  return {
    ...row,
    phone: sealing.openPhone('otp_requests.phone', id, row.phone),
    clientIp: sealing.openText('otp_requests.client_ip', id, row.clientIp),
    contexts: row.contexts === null ? [] : row.contexts.split(' '),
    channel: row.channel as Channel,
    compat: row.compat === null ? null : parseCompat(row.compat),
    metadata: metadata === null ? null : (JSON.parse(metadata) as Record<string, string>),
    ownText: sealing.openText('otp_requests.own_text', id, row.ownText),
    template: template === null ? null : (JSON.parse(template) as SentTemplate),
  }
}

// PostgreSQL: the number of an entry is known to the server alone, and only once the entry is appended. The counter is read
// without a lock here, so that it is lower by what others append until then.
const computed = {
  history: `replace(given.history, '${unknownSeq}', (select (value + 1)::text from counters where name = 'event_seq'))`,
}

/** Creates the statements that write requests; values are encrypted. */
export function createRequestWrites({ shortId }: Pick<Database, 'shortId'>, sealing: Sealing) {
  const columns = {
    id: ({ id }) => id,
    developer_id: ({ developerId }) => shortId(developerId),
    project_id: ({ projectId }) => shortId(projectId),
    app_id: ({ appId }) => shortId(appId),
    environment: ({ environment }) => environment,
    phone: ({ id, phone }) => sealing.sealPhone('otp_requests.phone', id, phone),
    country: ({ country }) => country,
    status: ({ status }) => status,
    failure_reason: ({ failureReason }) => failureReason,
    channel: ({ channel }) => channel,
    provider: ({ provider }) => provider,
    delivery_status: ({ deliveryStatus }) => deliveryStatus,
    locale: ({ locale }) => locale,
    client_ip: ({ id, clientIp }) => sealing.sealText('otp_requests.client_ip', id, clientIp),
    metadata: ({ id, metadata }) =>
      sealing.sealText('otp_requests.metadata', id, metadata && JSON.stringify(metadata)),
    own_text: ({ id, ownText }) => sealing.sealText('otp_requests.own_text', id, ownText),
    template: ({ id, template }) =>
      sealing.sealText('otp_requests.template', id, template && JSON.stringify(template)),
    code_salt: ({ codeSalt }) => codeSalt,
    code_hash: ({ codeHash }) => codeHash,
    attempts: ({ attempts }) => attempts,
    resends: ({ resends }) => resends,
    created_at: ({ createdAt }) => createdAt,
    sent_at: ({ sentAt }) => sentAt,
    expires_at: ({ expiresAt }) => expiresAt,
    verified_at: ({ verifiedAt }) => verifiedAt,
    previous_request: ({ previousRequest }) => previousRequest,
    lane: ({ startedBy }) => startedBy,
    contexts: ({ contexts }) => (contexts.length === 0 ? null : contexts.join(' ')),
    history: ({ history }) => history,
    compat: ({ compat }) => formatCompat(compat),
    updated_at: ({ updatedAt }) => updatedAt,
  } satisfies Columns<OtpRequest>
  return {
    insert: insertInto('otp_requests', columns, { computed }),
    /** Writes the fields that change after the insertion. */
    // prettier-ignore
    update: updateTable('otp_requests', columns, {
      set: [
        'status', 'failure_reason', 'channel', 'provider', 'delivery_status', 'attempts', 'resends', 'sent_at', 'verified_at',
        'history', 'compat', 'updated_at',
      ],
      key: ['id'],
      computed,
    }),
  }
}
