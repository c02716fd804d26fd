import { redacted, classifyField, redactPhone, scrub } from '../shared/redact.ts'

export type LogValue = string | number | boolean | null | LogValue[] | { [key: string]: LogValue }

/** Maximum depth of nested error causes. */
const causeDepthMax = 3
const itemsMax = 20

/**
 * Converts the value of a field to a form that is safe to log. Only plain values, lists of them and errors are shown; any
 * other object could contain anything.
 */
function logValue(name: string, value: unknown, withStack: boolean): LogValue {
  const kind = classifyField(name)
  if (value === null || value === undefined) return null
  if (kind === 'secret') return redacted
  if (kind === 'phone' && (typeof value === 'string' || typeof value === 'number'))
    return redactPhone(String(value))
  // Numbers are measurements or counts, except a passcode passed as a number.
  if (name === 'code' && /^\d{6}$/.test(String(value))) return redacted
  if (typeof value === 'string') return scrub(value)
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value)
  if (typeof value === 'boolean') return value
  if (typeof value === 'bigint') return scrub(String(value))
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'no date' : value.toISOString()
  if (value instanceof Error) return describeError(value, withStack, causeDepthMax)
  if (Array.isArray(value)) return value.slice(0, itemsMax).map((item) => logValue(name, item, withStack))
  return `[${typeof value}]`
}

/** Like {@link logValue}, but safe for values that throw when read: throwing accessors, errors made of proxies. */
export function safeLogValue(name: string, value: unknown, withStack: boolean): LogValue {
  try {
    return logValue(name, value, withStack)
  } catch {
    return '[not printable]'
  }
}

function describeError(error: Error, withStack: boolean, depth: number): LogValue {
  const database = databaseFailure(error)
  const code = 'code' in error && typeof error.code === 'string' ? scrub(error.code) : undefined
  const cause = depth > 0 && error.cause instanceof Error ? error.cause : undefined
  return {
    name: scrub(database?.name ?? error.name),
    message: database?.message ?? scrub(error.message),
    ...((database?.code ?? code) === undefined ? {} : { code: database?.code ?? code ?? null }),
    ...(cause && !database ? { cause: describeError(cause, withStack, depth - 1) } : {}),
    ...(withStack ? { stack: stackFrames(error) } : {}),
  }
}

/**
 * Replaces database errors by a fixed message and the driver's code: drizzle puts bound parameters into its messages, and
 * PostgreSQL quotes values in its own.
 */
function databaseFailure(error: Error): { name: string; message: string; code?: string } | undefined {
  const isQuery = 'query' in error && 'params' in error
  const isPostgres = 'severity' in error && 'routine' in error
  if (!isQuery && !isPostgres) return undefined
  const errorWithCode: unknown = isQuery ? error.cause : error
  const code = errorWithCode instanceof Error && 'code' in errorWithCode ? errorWithCode.code : undefined
  const failure = { name: 'DatabaseError', message: 'The database rejected a statement.' }
  return typeof code === 'string' && /^\w{1,40}$/.test(code) ? { ...failure, code } : failure
}

/** Extracts the frames only, since the head of a stack repeats the message. */
function stackFrames(error: Error): LogValue {
  const lines = (error.stack ?? '').split('\n').map((line) => line.trim())
  return lines
    .filter((line) => /^at [^\n]+:\d+(:\d+)?\)?$/.test(line))
    .slice(0, itemsMax)
    .map(scrub)
}
