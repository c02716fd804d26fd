import type { InferSelectModel } from 'drizzle-orm'
import {
  noUsage,
  type KnownContext,
  type TrustLevel,
  type PhoneUsage,
  type PhoneRecord,
} from '../domain/model/phone-record.ts'
import type { Database } from './engine/database.ts'
import { isDuplicate, RaceLostError } from './engine/errors.ts'
import { insertInto, updateTable, type Columns } from './engine/row-writes.ts'
import type { Sealing } from './engine/sealing.ts'
import type { Tables } from './engine/tables.ts'

export type PhoneRow = InferSelectModel<Tables['phones']>

/** Tells whether a row was inserted for its lock alone. */
export const isUnused = (row: PhoneRow) =>
  row.identityId === null &&
  row.newestRequest === null &&
  row.lastSentAt === 0 &&
  row.deviceRefilledAt === null &&
  row.knownRefilledAt === null &&
  row.strangerRefilledAt === null

export const openRecord = (sealing: Sealing, row: PhoneRow): PhoneRecord => ({
  developerId: row.developerId,
  environment: row.environment,
  phone: sealing.openPhone('phones.phone', row.phoneHash, row.phone),
  country: row.country,
  usages: {
    device: toUsage(row.deviceSends, row.deviceRefilledAt, row.deviceFailures, row.deviceLockedUntil),
    network: toUsage(row.knownSends, row.knownRefilledAt, row.knownFailures, row.knownLockedUntil),
    stranger: toUsage(
      row.strangerSends,
      row.strangerRefilledAt,
      row.strangerFailures,
      row.strangerLockedUntil,
    ),
  },
  contexts: parseContexts(row.contexts),
  identity:
    row.identityId === null
      ? null
      : {
          id: row.identityId,
          verificationCount: row.verificationCount ?? 0,
          firstVerifiedAt: row.firstVerifiedAt ?? 0,
          lastVerifiedAt: row.lastVerifiedAt ?? 0,
          applications: row.applications ?? [],
        },
  newestRequest: row.newestRequest,
  lastSentAt: row.lastSentAt,
})

const toUsage = (
  sends: string | null,
  refilledAt: number | null,
  consecutiveFailures: number | null,
  lockedUntil: number | null,
): PhoneUsage =>
  sends === null && refilledAt === null
    ? noUsage
    : {
        sends: parseTimes(sends),
        checks:
          refilledAt === null
            ? null
            : { refilledAt, consecutiveFailures: consecutiveFailures ?? 0, lockedUntil },
      }

/** A record to write, with its key. */
type NewRow = { hash: string; record: PhoneRecord; key: number }

/** Columns of a usage. @param prefix `device`, `known` (the network) or `stranger` */
const usageColumns = (prefix: string, trust: TrustLevel): Columns<NewRow> => ({
  [`${prefix}_sends`]: ({ record }) => formatTimes(record.usages[trust].sends),
  [`${prefix}_refilled_at`]: ({ record }) => record.usages[trust].checks?.refilledAt ?? null,
  [`${prefix}_failures`]: ({ record }) => record.usages[trust].checks?.consecutiveFailures ?? null,
  [`${prefix}_locked_until`]: ({ record }) => record.usages[trust].checks?.lockedUntil ?? null,
})

/** Creates the statements that write records; the phone is encrypted. On PostgreSQL a new record has the key 0. */
export function createPhoneWrites({ shortId }: Pick<Database, 'shortId'>, sealing: Sealing) {
  const columns: Columns<NewRow> = {
    phone_hash: ({ hash }) => hash,
    developer_id: ({ record }) => shortId(record.developerId),
    environment: ({ record }) => record.environment,
    phone: ({ hash, record }) => sealing.sealPhone('phones.phone', hash, record.phone),
    country: ({ record }) => record.country,
    ...usageColumns('device', 'device'),
    ...usageColumns('known', 'network'),
    ...usageColumns('stranger', 'stranger'),
    contexts: ({ record }) => formatContexts(record.contexts),
    newest_request: ({ record }) => record.newestRequest,
    last_sent_at: ({ record }) => record.lastSentAt,
    identity_id: ({ record }) => record.identity?.id ?? null,
    verification_count: ({ record }) => record.identity?.verificationCount ?? null,
    first_verified_at: ({ record }) => record.identity?.firstVerifiedAt ?? null,
    last_verified_at: ({ record }) => record.identity?.lastVerifiedAt ?? null,
    applications: ({ record }) => record.identity?.applications.map(shortId).join(' ') ?? null,
  }
  const all: Columns<NewRow> = { ...columns, key: ({ key }) => key }
  /** On PostgreSQL a sequence makes the keys. */
  const computed = { key: `nextval('phones_keys')` }
  return {
    /** @throws RaceLostError on PostgreSQL: another transaction has added one of the same hash */
    insert: insertInto('phones', all, {
      computed,
      toError: (error) => (isDuplicate(error) ? new RaceLostError(error) : error),
    }),
    /** Inserts records whose hash has none yet. On PostgreSQL only. */
    insertMissing: {
      ...insertInto('phones', all, { computed, onConflict: 'on conflict (phone_hash) do nothing' }),
      sqlite: undefined,
    },
    update: updateTable('phones', all, { set: Object.keys(columns), key: ['key'] }),
  }
}

// Times and contexts are short lists that are always read and written whole: text in base 36 takes half of JSON's room.

const timeRadix = 36

const parseTimes = (text: string | null): number[] =>
  text === null ? [] : text.split(' ').map((time) => parseInt(time, timeRadix))

const formatTimes = (times: readonly number[]): string | null =>
  times.length === 0 ? null : times.map((time) => time.toString(timeRadix)).join(' ')

function parseContexts(text: string | null): KnownContext[] {
  if (text === null) return []
  return text.split(' ').map((entry) => {
    const [hash = '', time = ''] = entry.split(':')
    return { hash, verifiedAt: parseInt(time, timeRadix) }
  })
}

const formatContexts = (contexts: readonly KnownContext[]): string | null =>
  contexts.length === 0
    ? null
    : contexts.map(({ hash, verifiedAt }) => `${hash}:${verifiedAt.toString(timeRadix)}`).join(' ')
