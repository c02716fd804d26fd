import { ServiceError } from '../../domain/model/errors.ts'

/**
 * The driver's own code: `SQLITE_FULL`, or PostgreSQL's SQLSTATE. drizzle wraps what PostgreSQL throws in an error
 * whose message holds the bound parameters, so the message is never looked at.
 */
export function driverCode(error: unknown): string | undefined {
  for (let e: unknown = error, depth = 0; typeof e === 'object' && e !== null && depth < 4; depth++) {
    if ('code' in e && typeof e.code === 'string') return e.code
    e = 'cause' in e ? e.cause : undefined
  }
  return undefined
}

export const isBusy = (error: unknown) => driverCode(error)?.startsWith('SQLITE_BUSY') ?? false

/**
 * Whether the disk refused or corrupted what it was given. After a failed fsync nobody knows what reached the disk,
 * and a second one may claim success for data that is lost (PostgreSQL panics for the same reason).
 */
export const isDiskFault = (error: unknown) => /^SQLITE_(IOERR|CORRUPT|NOTADB)/.test(driverCode(error) ?? '')

/** PostgreSQL: lost connections, too many of them, time-outs, deadlocks and serialization failures. */
const postgresUnavailable = /^(08|40|53|55P03|57)/

/**
 * What a caller may hear of a failure of the database: UNAVAILABLE where waiting may help, otherwise an error that
 * names the driver's code and holds no parameter.
 */
export function toCallerError(error: unknown): unknown {
  if (error instanceof ServiceError) return error
  const code = driverCode(error)
  if (code === undefined) return error
  if (isBusy(error) || isDiskFault(error) || code === 'SQLITE_FULL' || postgresUnavailable.test(code)) {
    return unavailable(code)
  }
  if (code.startsWith('SQLITE_') || /^[0-9A-Z]{5}$/.test(code)) return new StoreError(code)
  return error
}

/** A statement that the database refused: a bug of ours. Carries the code and nothing of what was written. */
export class StoreError extends Error {
  override readonly name = 'StoreError'
  readonly code: string

  constructor(code: string) {
    super(`the database refused a statement (${code})`)
    this.code = code
  }
}

export const unavailable = (code: string) =>
  new ServiceError('UNAVAILABLE', 'The service cannot store anything right now. Try again shortly.', {
    retryAfterSeconds: 1,
    cause: new StoreError(code),
  })
