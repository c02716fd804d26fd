import type { CountryDay } from '../store/analytics.ts'

/** Fewer messages a day say nothing of a country. */
const sentMin = 50
/** Days before the compared one, which tell the usual share. */
export const usualDays = 7

/** A country where fewer codes of a day were verified than usual, in shares of the messages that were sent. */
export type HalvedConversion = { country: string; day: number; share: number; usualShare: number }

/**
 * Finds the countries where the share of verified codes is less than half of that of the week before. The compared day is
 * today once it has enough messages, otherwise yesterday.
 *
 * @param today UTC day, in days since the epoch
 * @param rows counts of live messages since `today - 1 - usualDays`
 */
export function findHalvedConversions(rows: readonly CountryDay[], today: number): HalvedConversion[] {
  const countries = [...new Set(rows.map(({ country }) => country))].toSorted()
  return countries.flatMap((country) => {
    const days = rows.filter((row) => row.country === country)
    const hasEnough = days.some(({ day, sent }) => day === today && sent >= sentMin)
    const comparedDay = hasEnough ? today : today - 1
    const compared = sum(days.filter(({ day }) => day === comparedDay))
    const usual = sum(days.filter(({ day }) => day < comparedDay && day >= comparedDay - usualDays))
    if (compared.sent < sentMin || usual.sent < sentMin) return []
    const [share, usualShare] = [compared.verified / compared.sent, usual.verified / usual.sent]
    return share < usualShare / 2 ? [{ country, day: comparedDay, share, usualShare }] : []
  })
}

const sum = (days: readonly CountryDay[]) => ({
  sent: days.reduce((total, { sent }) => total + sent, 0),
  verified: days.reduce((total, { verified }) => total + verified, 0),
})
