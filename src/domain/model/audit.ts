import type { auditActions } from '../../shared/audit-actions.ts'
import type { Developer } from './developer.ts'

export type AuditAction = (typeof auditActions)[number]

/** Origin of a change: an API request, a command on the server's machine, or the server's configuration. */
export type Origin = {
  source: 'api' | 'host' | 'server'
  /** Client's IP address, as reported by trusted proxies. */
  ip: string | null
  userAgent: string | null
  /** Trace id of the request, as in its response. */
  traceId: string | null
  /** Id of the API token of the request; null for any other request, and without one. */
  tokenId: string | null
}

/** An authenticated developer with the origin of the request. */
export type Actor = Developer & { origin: Origin }

/** A client that has not logged in yet. Rate limits count by `network`. */
export type Client = { network: string; origin: Origin }

/** Origin of operator commands. */
export const hostOrigin: Origin = { source: 'host', ip: null, userAgent: null, traceId: null, tokenId: null }

export const serverOrigin: Origin = { ...hostOrigin, source: 'server' }

export type AuditEntry = Origin & {
  id: string
  /** Developer whose audit trail has the entry; null for the installation. */
  developerId: string | null
  action: AuditAction
  /** Developer who acted; null for the operator and for failed logins. */
  actorId: string | null
  targetId: string | null
  /** Name of the target at that time. Never a phone number, an address or a secret. */
  targetName: string | null
  detail: string | null
  at: number
}
