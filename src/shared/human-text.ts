/** Formats a time as `2026-11-20 23:24:01` in the local time zone. */
export function localTime(iso: string) {
  const date = new Date(iso)
  const twoDigits = (value: number) => String(value).padStart(2, '0')
  const day = `${date.getFullYear()}-${twoDigits(date.getMonth() + 1)}-${twoDigits(date.getDate())}`
  return `${day} ${twoDigits(date.getHours())}:${twoDigits(date.getMinutes())}:${twoDigits(date.getSeconds())}`
}

/** Formats only the time if it is today, otherwise `11-20 23:24`. */
export function recentTime(iso: string, nowMs: number) {
  const [day = '', time = ''] = localTime(iso).split(' ')
  return localTime(new Date(nowMs).toISOString()).startsWith(day)
    ? time
    : `${day.slice(5)} ${time.slice(0, 5)}`
}

/** Formats a duration in its two largest useful units: `4 min 41 s`, `2 h`; `now` if it is zero or negative. */
export function formatRemaining(durationMs: number) {
  const seconds = Math.round(durationMs / 1000)
  if (seconds <= 0) return 'now'
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return seconds % 60 === 0 ? `${minutes} min` : `${minutes} min ${seconds % 60} s`
  return minutes % 60 === 0 ? `${minutes / 60} h` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** Formats the time left until a moment: `in 40 s`, and `now` once it has passed. */
export function formatTimeUntil(iso: string, nowMs: number) {
  const timeLeft = formatRemaining(Date.parse(iso) - nowMs)
  return timeLeft === 'now' ? timeLeft : `in ${timeLeft}`
}

/**
 * Replaces control characters in text from elsewhere (a project's name, a server's message): they could move the
 * cursor, recolour the screen or forge a line of ours.
 */
export const printable = (text: string) =>
  text.replaceAll(/\p{Cc}|\p{Cf}/gu, (character) => (character === '\u200d' ? character : '�'))

const units = ['B', 'KB', 'MB', 'GB', 'TB']

/** Formats a number of bytes with two digits or more: `312 MB`, `7.1 GB`. */
export function formatBytes(bytes: number): string {
  let value = bytes
  let unit = 0
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000
    unit++
  }
  return `${value < 10 && unit > 0 ? value.toFixed(1) : Math.round(value)} ${units[unit] ?? ''}`
}
