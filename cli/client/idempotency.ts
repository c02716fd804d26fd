export type IdempotencyOption = { idempotencyKey?: string }

export const idempotencyKeyFlags = '--idempotency-key <key>'
export const idempotencyKeyHelp =
  'text without spaces; a repetition within 24 hours gets the first response again'

/** Headers of a call that is made once, however often it is repeated. */
export const idempotencyHeaders = ({ idempotencyKey }: IdempotencyOption): Record<string, string> =>
  idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }
