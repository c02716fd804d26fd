import type { InferSelectModel } from 'drizzle-orm'
import {
  unusedLane,
  type CheckBudget,
  type KnownContext,
  type LaneUsage,
  type PhoneRecord,
} from '../domain/model/phone-record.ts'
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

export function sealRecord(sealing: Sealing, hash: string, record: PhoneRecord): Omit<PhoneRow, 'key'> {
  const { device, network, stranger } = record.lanes
  const { identity } = record
  return {
    phoneHash: hash,
    developerId: record.developerId,
    environment: record.environment,
    phone: sealing.sealPhone('phones.phone', hash, record.phone),
    country: record.country,
    deviceSends: formatTimes(device.sends),
    deviceRefilledAt: checksField(device.checks, 'refilledAt'),
    deviceFailures: checksField(device.checks, 'consecutiveFailures'),
    deviceLockedUntil: checksField(device.checks, 'lockedUntil'),
    knownSends: formatTimes(network.sends),
    knownRefilledAt: checksField(network.checks, 'refilledAt'),
    knownFailures: checksField(network.checks, 'consecutiveFailures'),
    knownLockedUntil: checksField(network.checks, 'lockedUntil'),
    strangerSends: formatTimes(stranger.sends),
    strangerRefilledAt: checksField(stranger.checks, 'refilledAt'),
    strangerFailures: checksField(stranger.checks, 'consecutiveFailures'),
    strangerLockedUntil: checksField(stranger.checks, 'lockedUntil'),
    contexts: formatContexts(record.contexts),
    newestRequest: record.newestRequest,
    lastSentAt: record.lastSentAt,
    identityId: identity?.id ?? null,
    verificationCount: identity?.verificationCount ?? null,
    firstVerifiedAt: identity?.firstVerifiedAt ?? null,
    lastVerifiedAt: identity?.lastVerifiedAt ?? null,
    applications: identity?.applications ?? null,
  }
}

const checksField = (checks: CheckBudget | null, field: keyof CheckBudget) => checks?.[field] ?? null

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
