import { ServiceError } from '../../domain/model/errors.ts'
import { GuardFault } from '../../domain/model/guard.ts'

/**
 * Finds the driver's error code: `SQLITE_FULL`, or PostgreSQL's SQLSTATE. drizzle wraps PostgreSQL's errors in one
 * whose message contains the bound parameters, so messages are only compared with known ones.
 */
export function driverCode(error: unknown): string | undefined {
  for (const e of causes(error)) {
    if ('code' in e && typeof e.code === 'string') return e.code
    if (e instanceof Error && e.message in codesByMessage) return codesByMessage[e.message]
  }
  return undefined
}

function* causes(error: unknown) {
  for (let e: unknown = error, depth = 0; typeof e === 'object' && e !== null && depth < 4; depth++) {
    yield e
    e = 'cause' in e ? e.cause : undefined
  }
}

/** Finds what PostgreSQL refused a privilege for, like `table projects`; undefined if it says so in another language. */
function deniedObject(error: unknown): string | undefined {
  for (const e of causes(error)) {
    const [, object] = (e instanceof Error && /^permission denied for (\w+ \w+)$/.exec(e.message)) || []
    if (object !== undefined) return object
  }
  return undefined
}

/** Another connection holds the lock of the SQLite database. */
export const isBusy = (error: unknown) => driverCode(error)?.startsWith('SQLITE_BUSY') ?? false

/** A row with the same key exists on PostgreSQL. */
export const isDuplicate = (error: unknown) => driverCode(error) === '23505'

/**
 * The disk failed a write or returned corrupt data. After a failed fsync it is unknown which pages reached the disk,
 * and a second fsync may report success for lost data ("fsyncgate"; PostgreSQL panics for the same reason).
 */
export const isDiskFault = (error: unknown) => /^SQLITE_(IOERR|CORRUPT|NOTADB)/.test(driverCode(error) ?? '')

/** SQLite: a full disk, or a database that is no longer at its path. */
const sqliteUnavailable = new Set(['SQLITE_FULL', 'SQLITE_READONLY_DBMOVED'])

/**
 * PostgreSQL: lost or too many connections, a full disk or one that fails, time-outs, deadlocks and serialization failures,
 * a server that only reads, and transactions that it ended; and the network's errors on the way to it.
 */
const postgresUnavailable =
  /^(08|40|53|55P03|57|58|25006|25P02|25P03|25P04|ECONN|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|POSTGRES_)/

/** PostgreSQL: the role lacks a privilege, which an operator can grant while the server runs. */
const postgresDenied = '42501'

/** The driver reports these without a code. */
const codesByMessage: Readonly<Record<string, string>> = {
  'Connection terminated': 'POSTGRES_CONNECTION_LOST',
  'Connection terminated unexpectedly': 'POSTGRES_CONNECTION_LOST',
  'Connection terminated due to connection timeout': 'POSTGRES_CONNECT_TIMEOUT',
  'Client has encountered a connection error and is not queryable': 'POSTGRES_CONNECTION_LOST',
  'Client was closed and is not queryable': 'POSTGRES_CONNECTION_LOST',
  'timeout exceeded when trying to connect': 'POSTGRES_CONNECTIONS_IN_USE',
  'Query read timeout': 'POSTGRES_NO_ANSWER',
}

/**
 * Converts a database error to one that is safe to return or log: UNAVAILABLE if retrying may help, otherwise a
 * StoreError with the driver's code and no parameter values. Other errors pass unchanged.
 */
export function toCallerError(error: unknown): unknown {
  // The caller goes on without the guard.
  if (error instanceof ServiceError || error instanceof GuardFault) return error
  if (error instanceof ForeignCommitError) return unavailable('FOREIGN_COMMIT')
  if (error instanceof RaceLostError) return unavailable('ROW_ADDED')
  const code = driverCode(error)
  if (code === undefined) return error
  const isPostgresRefusal = postgresUnavailable.test(code) || code === postgresDenied
  if (isBusy(error) || isDiskFault(error) || sqliteUnavailable.has(code) || isPostgresRefusal) {
    return unavailable(code)
  }
  if (code.startsWith('SQLITE_') || /^[0-9A-Z]{5}$/.test(code)) return new StoreError(code)
  return error
}

/**
 * Creates a `toCallerError` that also reports each error for which callers are told to retry.
 *
 * @param onUnavailable gets the driver's code, and what the database refused a privilege for, like `table projects`
 */
export const createErrorConverter =
  (onUnavailable: (code: string, denied?: string) => void = () => {}) =>
  (error: unknown): unknown => {
    const converted = toCallerError(error)
    if (converted !== error && converted instanceof ServiceError)
      onUnavailable(driverCode(error) ?? '', deniedObject(error))
    return converted
  }

/**
 * Converts the error of a new connection. Whatever the reason, such as a password, an address or a certificate that is not
 * accepted any more: it lies with the server, and the next call may succeed.
 */
export function toConnectError(error: unknown): unknown {
  const code = driverCode(error) ?? 'UNKNOWN'
  if (postgresUnavailable.test(code)) return error
  return Object.assign(new Error('the server refused the connection'), { code: `POSTGRES_REFUSED_${code}` })
}

/** Another process changed the database so that this one must not write any more. */
export class ForeignCommitError extends Error {
  override readonly name = 'ForeignCommitError'

  constructor(cause: unknown) {
    super('another process changed the database', { cause })
  }
}

/** Another transaction came first: one that runs again finds what it has written. */
export class RaceLostError extends Error {
  override readonly name = 'RaceLostError'

  constructor(cause?: unknown) {
    super('another transaction came first', { cause })
  }
}

/**
 * A call decides on a row that was not read and locked for it, on PostgreSQL: a call before it in the same transaction
 * changed which rows it means. In a later transaction it finds them.
 */
export class RowNotNamedError extends Error {
  override readonly name = 'RowNotNamedError'

  constructor() {
    super('an operation reads a row that it did not name')
  }
}

/** The database rejected a statement, which is a bug in otpd. Carries the driver's code and no values. */
class StoreError extends Error {
  override readonly name = 'StoreError'
  readonly code: string

  constructor(code: string) {
    super(`the database rejected a statement (${code})`)
    this.code = code
  }
}

/** Builds the UNAVAILABLE error, to retry after one second. */
export const unavailable = (code: string) =>
  new ServiceError('UNAVAILABLE', 'The service cannot store anything right now. Try again shortly.', {
    retryAfterSeconds: 1,
    cause: new StoreError(code),
  })
