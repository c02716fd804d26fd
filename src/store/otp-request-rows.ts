import { getTableColumns, type InferSelectModel } from 'drizzle-orm'
import type { Facade } from '../domain/model/compat.ts'
import {
  unlistedFields,
  type Channel,
  type CompatRecord,
  type ListedRequest,
  type OtpRequest,
} from '../domain/model/request.ts'
import type { SentTemplate } from '../domain/model/sent-template.ts'
import { unknownSeq } from '../domain/model/request-history.ts'
import { columnsOf, insertInto, updateTable } from './engine/row-writes.ts'
import type { Sealing } from './engine/sealing.ts'
import type { Tables } from './engine/tables.ts'

export type RequestRow = InferSelectModel<Tables['otpRequests']>

export type ListedRow = Omit<RequestRow, (typeof unlistedFields)[number]>

/** Returns the columns of a request that lists read. */
export function listedColumns({ otpRequests }: Pick<Tables, 'otpRequests'>) {
  const columns = Object.entries(getTableColumns(otpRequests))
  const isListed = ([name]: [string, unknown]) => !unlistedFields.some((other) => other === name)
  return Object.fromEntries(columns.filter(isListed)) as Pick<Tables['otpRequests'], keyof ListedRow>
}

/** Decrypts a row. Address, metadata, text and template are null if they cannot be decrypted. */
export function toOtpRequest(sealing: Sealing, row: RequestRow): OtpRequest {
  const { id, clientIp, ownText, contexts } = row
  return {
    ...row,
    ...openListed(sealing, row),
    clientIp: sealing.openText('otp_requests.client_ip', id, clientIp),
    contexts: contexts === null ? [] : contexts.split(' '),
    ownText: sealing.openText('otp_requests.own_text', id, ownText),
  }
}

/** Decrypts a row of a list. */
export const toListedRequest = (sealing: Sealing, row: ListedRow): ListedRequest => ({
  ...row,
  ...openListed(sealing, row),
})

/**
 * Decrypts the fields of a row that lists read. The assertions hold because `createRequestWrites` alone has the statements that
 * write metadata, template and compat.
 */
function openListed(sealing: Sealing, row: ListedRow) {
  const { id } = row
  const metadata = sealing.openText('otp_requests.metadata', id, row.metadata)
  const template = sealing.openText('otp_requests.template', id, row.template)
  return {
    phone: sealing.openPhone('otp_requests.phone', id, row.phone),
    compat: row.compat === null ? null : parseCompat(row.compat),
    metadata: metadata === null ? null : (JSON.parse(metadata) as Record<string, string>),
    template: template === null ? null : (JSON.parse(template) as SentTemplate),
  }
}

// PostgreSQL: the number of an entry is known to the server alone, and only once the entry is appended. The counter is read
// without a lock here, so that it is lower by what others append until then.
const computed = {
  history: `replace(given.history, '${unknownSeq}', (select (value + 1)::text from counters where name = 'event_seq'))`,
}

/** Creates the statements that write requests; values are encrypted. */
export function createRequestWrites({ otpRequests }: Pick<Tables, 'otpRequests'>, sealing: Sealing) {
  const toJson = (value: object | null) => value && JSON.stringify(value)
  const columns = columnsOf<typeof otpRequests, OtpRequest>(otpRequests, {
    phone: ({ id, phone }) => sealing.sealPhone('otp_requests.phone', id, phone),
    clientIp: ({ id, clientIp }) => sealing.sealText('otp_requests.client_ip', id, clientIp),
    metadata: ({ id, metadata }) => sealing.sealText('otp_requests.metadata', id, toJson(metadata)),
    ownText: ({ id, ownText }) => sealing.sealText('otp_requests.own_text', id, ownText),
    template: ({ id, template }) => sealing.sealText('otp_requests.template', id, toJson(template)),
    contexts: ({ contexts }) => (contexts.length === 0 ? null : contexts.join(' ')),
    compat: ({ compat }) => formatCompat(compat),
  })
  return {
    insert: insertInto(columns, { computed }),
    /** Writes the fields that change after the insertion. */
    // prettier-ignore
    update: updateTable(columns, {
      set: [
        'status', 'failureReason', 'channel', 'provider', 'deliveryStatus', 'attempts', 'resends', 'sentAt', 'verifiedAt',
        'history', 'compat', 'updatedAt',
      ],
      key: ['id'],
      computed,
    }),
  }
}

/** Reads `twilio-verify sms:TIME voice:TIME`, with times in base 36. */
function parseCompat(text: string): CompatRecord {
  const [facade, ...messages] = text.split(' ')
  return {
    facade: facade as Facade,
    messages: messages.map((message) => {
      const [channel, time = ''] = message.split(':')
      return { channel: channel as Channel, sentAt: parseInt(time, 36) }
    }),
  }
}

/** Writes what `parseCompat` reads. */
const formatCompat = (compat: CompatRecord | null): string | null =>
  compat &&
  [compat.facade, ...compat.messages.map(({ channel, sentAt }) => `${channel}:${sentAt.toString(36)}`)].join(
    ' ',
  )
