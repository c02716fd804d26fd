/** Sends to a phone that a limit refused, one after another. */
export type RefusedSends = {
  /** Reason of the last refusal: `APP_RATE`, `PHONE_SEND_BUDGET`, `CHALLENGE_REQUIRED` or `CHALLENGE_FAILED`. */
  reason: string
  count: number
  /** Time of the first. */
  since: number
  /** Time from which the limit of the last refusal admits another send. */
  nextAt: number
}

/** Formats refused sends as the detail of their log entry. */
export const formatRefusedSends = ({ reason, count, since, nextAt }: RefusedSends): string =>
  `${reason} ${count} since ${new Date(since).toISOString()}, next at ${new Date(nextAt).toISOString()}`

/** Parses the output of `formatRefusedSends`; undefined for any other text. */
export function parseRefusedSends(text: string | null): RefusedSends | undefined {
  const match = /^([A-Z_]+) (\d+) since (\S+), next at (\S+)$/.exec(text ?? '')
  const [, reason = '', count, since = '', nextAt = ''] = match ?? []
  return match
    ? { reason, count: Number(count), since: Date.parse(since), nextAt: Date.parse(nextAt) }
    : undefined
}
