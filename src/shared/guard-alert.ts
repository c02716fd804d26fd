/** Why the guard alerts: what a country, a prefix or all codes of other systems send unverified. */
export const guardAlertReasons = [
  'rate',
  'nothing_verified',
  'day',
  'pool',
  'allowance',
  'relay_rate',
  'relay_day',
] as const

/** A country, a prefix of numbers, or all codes of other systems, with more unverified messages than usual. */
export type GuardAlert = {
  country: string
  /** First digits of the numbers, with `+`; null if the whole country is meant. */
  prefix: string | null
  /**
   * `rate`: three times as many as usual, at least one a minute; `nothing_verified`: 30 and more, none of them verified;
   * `day`: half as many again as on any of the last 14 days; `pool`: what all countries may send beyond their own
   * allowances is spent; `allowance`: that of the country is spent, so that its customers are refused; `relay_rate` and
   * `relay_day`: as `rate` and `day`, of all codes of other systems together.
   */
  reason: (typeof guardAlertReasons)[number]
  /** Unverified messages of the last ten minutes (`rate`, `relay_rate`) or 24 hours. */
  unverified: number
  /** As many as usual of that time. */
  usual: number
}

/** Formats an alert as the detail of its log entry. */
export const formatGuardAlert = ({ country, prefix, reason, unverified, usual }: GuardAlert): string =>
  `${country} ${prefix === null ? '' : `${prefix} `}${reason} ${unverified} unverified, usually ${usual}`

/** Parses the output of `formatGuardAlert`; undefined for any other text. */
export function parseGuardAlert(text: string | null): GuardAlert | undefined {
  const match = /^(\w+) (?:(\+\d+) )?(\w+) (\d+) unverified, usually (\d+)$/.exec(text ?? '')
  const [, country = '', prefix = null, word, unverified, usual] = match ?? []
  const reason = guardAlertReasons.find((one) => one === word)
  return match && reason
    ? { country, prefix, reason, unverified: Number(unverified), usual: Number(usual) }
    : undefined
}
