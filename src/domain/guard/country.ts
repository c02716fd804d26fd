import { utcDay } from '../log/analytics.ts'
import { alertMs, type GuardAlert, type GuardCountry } from '../model/guard.ts'
import { discountPending, guardFigures, isExhausted } from './rules.ts'
import { addTo, closeWindows, countIn, openWindows, type Counts } from './windows.ts'

/**
 * How sure an alert must be, in standard deviations of the usual conversion: at 5, honest traffic of many countries
 * raises one in a few hundred years.
 */
const certainty = 5

/** Least variance that is assumed of a message: where nearly all are verified, a handful of failures proves nothing. */
const varianceMin = 0.15

/** Counts of one country of one developer, as one call changes them. */
export type CountryCounts = ReturnType<typeof openCountry>

/** Opens a copy of the counts that the store keeps. `close` returns it with every change. */
export function openCountry(stored: GuardCountry, now: number) {
  const windows = openWindows(stored.windows)
  const { pending, recent, day, history } = windows
  let { alertUntil, converts } = stored

  function add(at: number, change: Counts): void {
    for (const window of [pending, recent, day]) addTo(window, at, now, change)
    // Messages during an alert are not usual: else a long attack would become the measure of itself.
    if (alertUntil <= now) addTo(history, at, now, change)
  }

  /**
   * A country converts from 20 codes and a fifth of its messages verified on, and until less than a tenth are: an
   * attacker who dilutes its conversion must not get it closed to others.
   */
  function isConverting(): boolean {
    const { convertsFrom, convertsShare } = guardFigures
    const share = converts ? convertsShare / 2 : convertsShare
    return [countIn(history, now), usualCounts()].some(
      ({ unverified, verified }) => verified >= convertsFrom && verified >= share * (unverified + verified),
    )
  }

  /** Counts of the last 14 days but the last half hour, in which an attack would hide by becoming usual. */
  function usualCounts(): Counts {
    const all = countIn(history, now)
    if (alertUntil > now) return all
    const last = countIn(recent, now)
    return {
      unverified: Math.max(0, all.unverified - last.unverified),
      verified: Math.max(0, all.verified - last.verified),
    }
  }

  return {
    /** Whether its conversion is low. */
    hasAlert: () => alertUntil > now,

    /** Whether strangers get no more messages. Never if the country converts. */
    isClosed(): boolean {
      if (isConverting()) return false
      const lastDay = discountPending(countIn(day, now), countIn(pending, now).unverified)
      return isExhausted(lastDay, guardFigures.countryPerDay)
    },

    addUnverified: (messages: number) => add(now, { unverified: messages, verified: 0 }),

    /** Turns messages of a time into a verified code (`verified` 1), or takes them back (0). */
    adjust: (at: number, messages: number, verified: number) => add(at, { unverified: -messages, verified }),

    /**
     * Raises or extends the alert if the conversion of the last half hour is below half of that of the last 14 days.
     *
     * @returns the alert if it is new
     */
    checkConversion(): Omit<GuardAlert, 'country'> | undefined {
      const usual = usualCounts()
      if (usual.verified < guardFigures.convertsFrom) return undefined
      const current = countIn(recent, now)
      const messages = current.unverified + current.verified - countIn(pending, now).unverified
      const share = usual.verified / (usual.unverified + usual.verified)
      const missing = share * messages - current.verified
      const isLow =
        current.verified < (share * messages) / 2 &&
        missing >= certainty * Math.sqrt(messages * Math.max(varianceMin, share * (1 - share)))
      if (!isLow) return undefined
      const isNew = alertUntil <= now
      if (isNew) {
        // Nor are the messages that led to it.
        const { unverified, verified } = current
        addTo(history, now, now, { unverified: -unverified, verified: -verified })
      }
      alertUntil = now + alertMs
      const percent = (value: number) => Math.round(value * 100)
      return isNew
        ? {
            messages: Math.round(messages),
            conversion: percent(current.verified / messages),
            usualConversion: percent(share),
          }
        : undefined
    },

    close(): GuardCountry {
      converts = isConverting()
      return { windows: closeWindows(windows), alertUntil, converts, day: utcDay(now) }
    },
  }
}
