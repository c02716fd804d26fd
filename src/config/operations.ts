import type { RetentionSettings } from '../domain/upkeep/retention.ts'
import type { Reader } from './reader.ts'
import { parseInteger, parseListen, type ListenAddress } from './values.ts'

/** Ten years. */
const daysMax = 3650

/** Where metrics are told; null: nowhere. */
export function readMetricsListen(reader: Reader, show: (address: ListenAddress) => string) {
  const showOrNull = (address: ListenAddress | null) => (address === null ? null : show(address))
  return reader.read<ListenAddress | null>('metricsListen', parseListen, null, { show: showOrNull }).value
}

export function readRetention({ read }: Reader): RetentionSettings {
  const parseDays = parseInteger(0, daysMax)
  return {
    phoneDays: read('retentionPhoneDays', parseDays, 30).value,
    logDays: read('retentionLogDays', parseDays, 90).value,
    requestDays: read('retentionRequestDays', parseDays, 0).value,
    auditDays: read('retentionAuditDays', parseDays, 365).value,
  }
}
