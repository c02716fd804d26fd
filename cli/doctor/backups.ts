import type { BackupInspection } from '../../src/host/host.ts'
import { dayMs } from '../../src/shared/durations.ts'
import { formatBytes } from '../terminal/text.ts'
import { formatAge, lateBackupChecks } from '../../src/shared/operating-checks.ts'
import { ok, warning, type Check } from '../../src/shared/check.ts'

/** Reports on schedule and age of the backups, and on where they are; nothing if there are neither. */
export function backupChecks(inspection: BackupInspection, nowMs: number): Check[] {
  const { every, last, onDataDisk, missingFolder } = inspection
  const name = 'backups'
  const late = lateBackupChecks(inspection, nowMs)
  if (missingFolder !== null) return late
  // These come first: see `missingBackupChecks`.
  if (every === null && isMissing(inspection, nowMs)) return []
  const checks = [...late]
  if (onDataDisk !== null)
    checks.push(
      warning(
        name,
        `${onDataDisk} is on the disk of the data: both would be lost together`,
        'Send them elsewhere, in [backup]: to = "s3://BUCKET/PREFIX", or a folder on another disk.',
      ),
    )
  if (checks.length > 0 || last === null) return checks
  const schedule = every === null ? 'no schedule' : `every ${every}`
  return [
    ok(
      name,
      `the last one is ${formatAge(last.at, nowMs)} old, ${formatBytes(last.bytes)}, ${last.file}; ${schedule}`,
    ),
  ]
}

/** Warns if nothing makes backups: there is no schedule, and no other program made one lately. */
export function missingBackupChecks(inspection: BackupInspection, nowMs: number): Check[] {
  const { every, last } = inspection
  if (every !== null || !isMissing(inspection, nowMs)) return []
  const state = last === null ? 'none' : `the last one is ${formatAge(last.at, nowMs)} old`
  return [
    warning(
      'backups',
      `${state}, and no schedule: with this disk, all data would be lost`,
      'Set in [backup]: every = "24h", to = "s3://BUCKET/PREFIX" or a folder on another disk (otpd docs backup)',
    ),
  ]
}

/** A timer that runs `otpd backup` every week is a schedule, too. */
const unscheduledMsMax = 8 * dayMs

const isMissing = ({ last }: BackupInspection, nowMs: number) =>
  last === null || nowMs - last.at > unscheduledMsMax
