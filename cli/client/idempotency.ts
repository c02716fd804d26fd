import { Option } from 'commander'

export type IdempotencyOption = { idempotencyKey?: string }

/** Creates the option with which a command can be repeated safely. */
export const idempotencyKeyOption = () =>
  new Option(
    '--idempotency-key <key>',
    'text without spaces; a repetition within 24 hours gets the first response again',
  )

/** Headers of a call that is made once, however often it is repeated. */
export const idempotencyHeaders = ({ idempotencyKey }: IdempotencyOption): Record<string, string> =>
  idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }
