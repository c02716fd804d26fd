import type { InferSelectModel } from 'drizzle-orm'
import {
  unusedLane,
  type KnownContext,
  type LaneUsage,
  type PhoneRecord,
} from '../domain/model/phone-record.ts'
import type { Database } from './engine/database.ts'
import { isDuplicate, RaceLostError } from './engine/errors.ts'
import { insertInto, updateTable, type RowWrite, type Value } from './engine/row-writes.ts'
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
  lanes: {
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
): LaneUsage =>
  sends === null && refilledAt === null
    ? unusedLane
    : {
        sends: parseTimes(sends),
        checks:
          refilledAt === null
            ? null
            : { refilledAt, consecutiveFailures: consecutiveFailures ?? 0, lockedUntil },
      }

// prettier-ignore
const columns = [
  'phone_hash', 'developer_id', 'environment', 'phone', 'country', 'device_sends', 'device_refilled_at', 'device_failures',
  'device_locked_until', 'known_sends', 'known_refilled_at', 'known_failures', 'known_locked_until', 'stranger_sends',
  'stranger_refilled_at', 'stranger_failures', 'stranger_locked_until', 'contexts', 'newest_request', 'last_sent_at',
  'identity_id', 'verification_count', 'first_verified_at', 'last_verified_at', 'applications', 'key',
]

/** On PostgreSQL a sequence makes the keys. */
const computed = { key: `nextval('phones_keys')` }

/** Inserts records. @throws RaceLostError on PostgreSQL: another transaction has added one of the same hash */
export const insertPhones = insertInto('phones', columns, {
  computed,
  toError: (error) => (isDuplicate(error) ? new RaceLostError(error) : error),
})

/** Inserts records whose hash has none yet. On PostgreSQL only. */
export const insertMissingPhones: RowWrite = {
  ...insertInto('phones', columns, { computed, onConflict: 'on conflict (phone_hash) do nothing' }),
  sqlite: undefined,
}

export const updatePhones = updateTable('phones', columns.slice(0, -1), ['key'])

/** Encrypts a record for `insertPhones` and `updatePhones`. @param key 0 on PostgreSQL for a new one */
export function toPhoneValues(
  { shortId }: Pick<Database, 'shortId'>,
  sealing: Sealing,
  hash: string,
  record: PhoneRecord,
  key: number,
): Value[] {
  const { identity } = record
  return [
    hash,
    shortId(record.developerId),
    record.environment,
    sealing.sealPhone('phones.phone', hash, record.phone),
    record.country,
    ...toLaneValues(record.lanes.device),
    ...toLaneValues(record.lanes.network),
    ...toLaneValues(record.lanes.stranger),
    formatContexts(record.contexts),
    record.newestRequest,
    record.lastSentAt,
    ...(identity
      ? [
          identity.id,
          identity.verificationCount,
          identity.firstVerifiedAt,
          identity.lastVerifiedAt,
          identity.applications.map(shortId).join(' '),
        ]
      : noIdentity),
    key,
  ]
}

const noIdentity = [null, null, null, null, null]

const toLaneValues = ({ sends, checks }: LaneUsage): Value[] => [
  formatTimes(sends),
  checks?.refilledAt ?? null,
  checks?.consecutiveFailures ?? null,
  checks?.lockedUntil ?? null,
]

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
