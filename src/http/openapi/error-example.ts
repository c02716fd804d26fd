import type { ErrorResponse } from '../errors.ts'

/** An error as the API responds with it, without its trace id. */
export type ErrorExample = Omit<ErrorResponse['body']['error'], 'traceId'>

/** Creates an example. */
export const example = (
  code: ErrorExample['code'],
  message: string,
  extras: Omit<ErrorExample, 'code' | 'message'> = {},
): ErrorExample => ({ code, message, ...extras })
