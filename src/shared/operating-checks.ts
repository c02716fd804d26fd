import { fault, ok, warning, type Check } from './check.ts'
import { formatRemaining } from './human-text.ts'

const megabyte = 1_000_000
const freeBytesLow = 1000 * megabyte
const freeBytesMin = 100 * megabyte

/** Checks the free space of the disk that has the data. */
export function freeSpaceCheck(freeBytes: number): Check {
  const name = 'disk space'
  const freeText =
    freeBytes < freeBytesLow
      ? `${Math.floor(freeBytes / megabyte)} MB`
      : `${(freeBytes / 1000 / megabyte).toFixed(1)} GB`
  const remedy = 'Free disk space, or move the data directory: on a full disk, no code is sent or verified.'
  if (freeBytes < freeBytesMin) return fault(name, `${freeText} free`, remedy)
  if (freeBytes < freeBytesLow) return warning(name, `${freeText} free`, remedy)
  return ok(name, `${freeText} free`)
}

/** Reports backups that the schedule should have made. Nothing without a schedule. */
export function lateBackupChecks(
  {
    every,
    everyMs,
    last,
    missingFolder,
  }: {
    /** The interval of the schedule as in the setting; null without one. */
    every: string | null
    everyMs: number | null
    last: { at: number } | null
    /** Folder that the configuration names, if it is not there. */
    missingFolder: string | null
  },
  nowMs: number,
): Check[] {
  const name = 'backups'
  if (missingFolder !== null)
    return [
      fault(
        name,
        `there is no folder ${missingFolder}: no backup is made`,
        'Mount or create it, or correct backup.to',
      ),
    ]
  if (every === null || everyMs === null) return []
  const see = 'Look for "backup failed" in the log of the server; make one now: otpd backup'
  if (last === null) return [warning(name, `none yet, although one is due every ${every}`, see)]
  if (nowMs - last.at <= 2 * everyMs) return []
  const age = formatAge(last.at, nowMs)
  return [warning(name, `the last one is ${age} old, although one is due every ${every}`, see)]
}

/** Formats how long ago something was: `3 h 20 min`, `0 s`. */
export const formatAge = (at: number, nowMs: number): string =>
  formatRemaining(Math.max(0, nowMs - at)).replace('now', '0 s')

/**
 * Reports a provider whose circuit is open. The time of the next try is left out: an alert is read long after it.
 *
 * @param isLast whether no other provider is left
 */
export const openCircuitCheck = (
  { name, failure }: { name: string; failure: string },
  isLast: boolean,
): Check =>
  (isLast ? fault : warning)(
    `provider ${name}`,
    `circuit open: ${failure}${isLast ? '; no other provider is available' : ''}`,
    `Test it: otpd provider test ${name} PHONE`,
  )

/** Reports more unverified messages than usual: of a country, of many (`pool`), or with codes of other systems (`relays`). */
export const guardAlertCheck = (country: string): Check =>
  warning(
    guardAlertName,
    `${countryText(country)}: more messages than usual are not verified, which may be SMS pumping`,
    `See whose they are: otpd guard status; look at otpd logs --type guard.alert,otp.sent,message.sent; to stop sending there at once: otpd guard deny ${country in manyCountries ? 'COUNTRY' : country}`,
  )

const guardAlertName = 'guard alert'
const manyCountries: Record<string, string> = { pool: 'many countries', relays: 'codes of other systems' }
const countryText = (country: string) => manyCountries[country] ?? country

/** Settings of the daily limits of the installation, by the rule of the guard. */
const capSettings = { TOTAL_DAILY: 'guard.totalPerDay', SPEND_DAILY: 'guard.spendPerDay' } as const
type Cap = keyof typeof capSettings
const isCap = (subject: string): subject is Cap => subject in capSettings

const dailyLimitName = 'daily limit'

/** Reports a daily limit of the installation that refuses messages. */
export const spentCapCheck = (cap: Cap): Check =>
  fault(
    dailyLimitName,
    `${capSettings[cap]} is used up: codes are refused until 00:00 UTC`,
    'See where they went: otpd analytics --by country; to send more today, raise it in [guard], then: systemctl reload otpd',
  )

/** Describes the state of a country or a daily limit after its alert. */
export const guardEndText = (subject: string): string =>
  isCap(subject)
    ? `${dailyLimitName}: ${capSettings[subject]} refuses no codes`
    : `${guardAlertName}: ${countryText(subject)}: no more unverified messages than usual`

/** Reports a node that did not stop, and was not seen lately. */
export const goneNodeCheck = ({ name, seenAt }: { name: string; seenAt: number }, nowMs: number): Check =>
  warning(
    'nodes',
    `${name} did not stop, and was last seen ${formatRemaining(nowMs - seenAt)} ago`,
    'Start it again; its row disappears a day after it was last seen.',
  )

/** Well before the 30 s of clock skew that the server tolerates in a token's times. */
const skewMsMax = 5000

/** Compares two clocks. @param reference the other clock, as the message names it */
export function clockSkewCheck(aheadMs: number, reference: string): Check {
  const name = 'clock'
  if (Math.abs(aheadMs) <= skewMsMax) return ok(name, `in sync with ${reference}`)
  return warning(
    name,
    `${formatRemaining(Math.abs(aheadMs))} ${aheadMs > 0 ? 'ahead of' : 'behind'} ${reference}: tokens expire early or late`,
    'Synchronize both clocks: timedatectl set-ntp true. Then restart the server.',
  )
}
