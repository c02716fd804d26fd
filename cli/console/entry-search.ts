import { auditActions } from '../../src/shared/audit-actions.ts'
import { failureTypes, logTypes } from '../../src/shared/event-kinds.ts'
import type { Application, AuditEntry } from '../client/resources.ts'
import { isFullId } from '../client/find.ts'
import type { LogSearch } from '../client/recent-log.ts'
import { isLastDigits, readLastDigits } from '../client/last-digits.ts'
import { readPhone } from './request-search.ts'

type NamedApplication = Pick<Application, 'id' | 'name'>

/** Event types by the name of their group. */
export const typesByKind: Record<string, string | undefined> = {
  all: undefined,
  failures: [...failureTypes, 'otp.attempt_failed', 'otp.refused'].join(','),
  sent: 'otp.sent',
  delivery: 'otp.delivered,otp.undelivered',
  verified: 'otp.verified',
  guard: 'otp.blocked,guard.flagged,guard.alert',
}

/** A filter of the log that finds entries of any age. */
export type LogQuery = Pick<LogSearch, 'appId' | 'phoneEnd' | 'requestId' | 'type'>

/**
 * Reads what was typed into the search of the log: a type or a group of types, an application, an OTP request, a phone
 * number or its last digits.
 *
 * @returns null if the server cannot search for it; the console then searches the rows that it has
 */
export function parseLogSearch(text: string, applications: readonly NamedApplication[]): LogQuery | null {
  const typed = text.trim()
  if (isFullId(typed, 'otp') || isFullId(typed, 'msg')) return { requestId: typed }
  if (isLastDigits(typed)) return { phoneEnd: readLastDigits(typed) }
  const phone = readPhone(typed)
  if (phone !== null) return { phoneEnd: `+${phone.replace(/^00/, '').replaceAll(/\D/g, '')}` }
  const word = typed.toLowerCase()
  const type =
    logTypes.find((name) => name === word) ??
    (Object.hasOwn(typesByKind, word) ? typesByKind[word] : undefined)
  if (type !== undefined) return { type }
  const app = applications.find(({ id, name }) => id === typed || name === typed)
  return app === undefined ? null : { appId: app.id }
}

/** A filter of the audit trail that the server applies. */
type AuditQuery = { action?: AuditEntry['action']; targetId?: string }

/**
 * Reads what was typed into the search of the audit trail: an action, an application, or the id of a resource.
 *
 * @returns null if the server cannot search for it
 */
export function parseAuditSearch(text: string, applications: readonly NamedApplication[]): AuditQuery | null {
  const typed = text.trim()
  const action = auditActions.find((name) => name === typed.toLowerCase())
  if (action !== undefined) return { action }
  if (/^[a-z]{3}_[0-9a-z]{26}$/.test(typed)) return { targetId: typed }
  const app = applications.find(({ name }) => name === typed)
  return app === undefined ? null : { targetId: app.id }
}
