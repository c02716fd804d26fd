/**
 * Whether a provider with an open circuit is shown as failing. One that failed is until a message passes: after `openUntil`
 * the next message tries it. A pause that the provider asked for ends by itself.
 */
export const isFailing = ({ failure, openUntil }: { failure: string; openUntil: number }, now: number) =>
  failure !== 'throttled' || openUntil > now
