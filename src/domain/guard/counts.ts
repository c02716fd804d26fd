import type { GuardRule, GuardUsage } from './rules.ts'

const minuteMs = 60_000
export const guardHourMs = 60 * minuteMs
export const guardDayMs = 24 * guardHourMs

/** The windows that are counted in; an hour or a day takes in every window that it touches. */
export const guardWindowMs = 15 * minuteMs
/** How far back a country's history counts. */
export const guardHistoryDays = 14

/** How long each kind of count is looked at. */
export const guardLifetimes = {
  windowsMs: guardDayMs + guardWindowMs,
  addressCountriesMs: guardDayMs,
  days: guardHistoryDays + 1,
  decisionsMs: guardDayMs + guardHourMs,
}

/** Every message of a request counts at the time of its first one, where its verification finds it again. */
export const windowStart = (at: number) => Math.floor(at / guardWindowMs) * guardWindowMs

/** Messages and what became of them, counted in windows. The subjects tell neither a phone nor an address. */
export type GuardStore = {
  /** Of up to three subjects; those of which nothing is known are left out. Only windows that start after the times. */
  usage(subjects: readonly string[], after: { hour: number; day: number }): Promise<Map<string, GuardUsage>>
  /** One unverified message more for each. */
  addUnverified(subjects: readonly string[], startsAt: number): Promise<void>
  /**
   * Takes messages back from the unverified ones of a window, never below none, and adds verified codes.
   *
   * @returns whether any of the subjects was counted in that window
   */
  adjustCounts(
    subjects: readonly string[],
    startsAt: number,
    change: { messages: number; verified: number },
  ): Promise<boolean>

  /** Countries that the address sent to after a time, and whether a code of theirs was verified after it. */
  addressCountries(subject: string, after: number): Promise<Array<{ country: string; verified: boolean }>>
  addAddressCountry(subject: string, country: string, at: number): Promise<void>
  verifyAddressCountry(subject: string, country: string, at: number): Promise<void>

  /** The most codes verified on one day, from that day on. */
  maxVerifiedInDay(subject: string, fromDay: number): Promise<number>
  addVerified(subject: string, day: number): Promise<void>
  sentOn(subject: string, day: number): Promise<number>
  /**
   * Counts a message if fewer than `max` were sent: one guarded statement.
   *
   * @returns how many there are now; undefined where it was not counted
   */
  addSent(subject: string, day: number, max: number): Promise<number | undefined>

  addDecision(decision: { hour: number; rule: GuardRule; country: string; blocked: boolean }): Promise<void>
  /** From that hour on. */
  decisions(fromHour: number): Promise<GuardDecisions[]>
  /** About `chunk` rows of each kind that no rule looks at any more. False when none was left. */
  deleteOldest(now: number, batchSize: number): Promise<boolean>
}

/** How often a rule had its say about a country. */
export type GuardDecisions = { rule: GuardRule; country: string; flagged: number; blocked: number }
