import type { RetentionSettings } from '../domain/upkeep/retention.ts'
import type { Reader } from './reader.ts'
import { parseInteger } from './values.ts'

/** Ten years; a longer retention is more likely a typing mistake. */
const daysMax = 3650

/** Reads after how many days data is deleted. */
export function readRetention({ read }: Reader): RetentionSettings {
  const parseDays = parseInteger(0, daysMax)
  return {
    phoneDays: read('retentionPhoneDays', parseDays, 30).value,
    logDays: read('retentionLogDays', parseDays, 90).value,
    requestDays: read('retentionRequestDays', parseDays, 0).value,
    auditDays: read('retentionAuditDays', parseDays, 365).value,
  }
}
