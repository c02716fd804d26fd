/**
 * Reads a date or a time of ISO 8601 in milliseconds since the epoch, as `Date.parse` does, but not a day or an hour that does
 * not exist: that takes February 30 for March 2.
 *
 * @returns NaN for any other text
 */
export function parseTime(text: string): number {
  const [, day = '', hour] = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d))?/.exec(text) ?? []
  const startMs = Date.parse(day)
  const exists = !Number.isNaN(startMs) && new Date(startMs).toISOString().startsWith(day) && hour !== '24'
  return exists ? Date.parse(text) : Number.NaN
}
