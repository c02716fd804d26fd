/** Units of time in milliseconds; limits and lifetimes are written with them, such as `30 * dayMs`. */
export const secondMs = 1000
export const minuteMs = 60 * secondMs
export const hourMs = 60 * minuteMs
export const dayMs = 24 * hourMs

/** Returns the UTC day as days since the epoch. */
export const utcDay = (time: number) => Math.floor(time / dayMs)

/** Tells whether a wait goes on. One that began in the future does not: the clock was set back, perhaps by years. */
export const isWithin = ({ since, until }: { since: number; until: number }, now: number): boolean =>
  now >= since && now < until
