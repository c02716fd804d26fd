/** Conversion of a country that fell: fewer people than usual enter the codes that are sent there. */
export type GuardAlert = {
  country: string
  /** Messages of the last half hour, without those of the last two minutes. */
  messages: number
  /** Per cent of them that were verified. */
  conversion: number
  /** Per cent that were verified in the last 14 days. */
  usualConversion: number
}

/** Formats an alert as the detail of its log entry. */
export const formatGuardAlert = ({ country, messages, conversion, usualConversion }: GuardAlert): string =>
  `${country} ${conversion} % of ${messages} messages verified, usually ${usualConversion} %`

/** Parses the output of `formatGuardAlert`; undefined for any other text. */
export function parseGuardAlert(text: string | null): GuardAlert | undefined {
  const match = /^(\w+) (\d+) % of (\d+) messages verified, usually (\d+) %$/.exec(text ?? '')
  if (!match) return undefined
  const [, country = '', conversion, messages, usualConversion] = match
  return {
    country,
    messages: Number(messages),
    conversion: Number(conversion),
    usualConversion: Number(usualConversion),
  }
}
