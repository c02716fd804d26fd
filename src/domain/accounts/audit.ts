import type { Developer } from './developers.ts'
import type { NewId } from '../model/ids.ts'
import { toPage, readIdCursor, type Page, type PageRequest } from '../model/pagination.ts'
import type { Store, Stores } from '../store/store.ts'

/** Audited actions, named by the noun that they change. */
export const auditActions = [
  'account.created',
  'account.updated',
  'account.enabled',
  'account.disabled',
  'account.deleted',
  'account.plan_changed',
  'login.succeeded',
  'login.failed',
  'login.ended',
  'login.token_reused',
  'password.changed',
  'password.change_failed',
  'password.reset',
  'token.issued',
  'setup_token.created',
  'signing_key.rotated',
  'project.created',
  'project.updated',
  'project.deleted',
  'application.created',
  'application.updated',
  'application.enabled',
  'application.disabled',
  'application.deleted',
  'application.unlocked',
  'credential.rotated',
  'webhook.created',
  'webhook.updated',
  'webhook.enabled',
  'webhook.disabled',
  'webhook.deleted',
  'phone.erased',
  'phone.unlocked',
] as const
export type AuditAction = (typeof auditActions)[number]

/** Origin of a change: an API request, a command on the server's machine, or the server's configuration. */
export type Origin = {
  source: 'api' | 'host' | 'server'
  /** Client's IP address, as reported by trusted proxies. */
  ip: string | null
  userAgent: string | null
  /** Trace id of the request, as in its response. */
  traceId: string | null
}

/** An authenticated developer with the origin of the request. */
export type Actor = Developer & { origin: Origin }

/** A client that has not logged in yet. Rate limits count by `network`. */
export type Client = { network: string; origin: Origin }

/** Origin of operator commands. */
export const hostOrigin: Origin = { source: 'host', ip: null, userAgent: null, traceId: null }
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

export type AuditQuery = {
  action?: AuditAction | undefined
  targetId?: string | undefined
  limit: number
  /** An id; older entries only. */
  before?: string | undefined
  /** The lowest id. */
  from?: string | undefined
}

export type AuditStore = {
  insert(entry: AuditEntry): Promise<void>
  delete(id: string): Promise<void>
  /** Lists newest first. @param developerId undefined: all developers and the installation */
  list(developerId: string | undefined, query: AuditQuery): Promise<AuditEntry[]>
  /** Deletes a batch of the oldest entries up to a time. @returns true if there may be more */
  deleteOldest(until: number, batchSize: number): Promise<boolean>
}

/** The action of an audit entry, without actor and origin. */
export type AuditDetails = {
  action: AuditAction
  targetId?: string | null
  targetName?: string | null
  detail?: string | null
}

/** The audit trail that an entry belongs to, its actor and its origin. */
export type AuditActor = { developerId: string | null; actorId: string | null; origin: Origin }

/** Actor for a developer who changes their own resources. */
export const selfActor = ({ id, origin }: Actor): AuditActor => ({ developerId: id, actorId: id, origin })

/** User agents have no length limit of their own. */
const userAgentMax = 200

/**
 * Records an audit entry. Must run in the transaction of the change, so that both are atomic.
 *
 * @returns the id of the entry
 */
export async function recordAudit(
  tx: Stores,
  newId: NewId,
  { developerId, actorId, origin }: AuditActor,
  { action, targetId = null, targetName = null, detail = null }: AuditDetails,
  at: number,
): Promise<string> {
  const id = newId('aud')
  const { source, ip, traceId } = origin
  const userAgent = origin.userAgent?.slice(0, userAgentMax) ?? null
  await tx.audit.insert({
    id,
    developerId,
    actorId,
    action,
    targetId,
    targetName,
    detail,
    source,
    ip,
    userAgent,
    traceId,
    at,
  })
  return id
}

export type AuditService = ReturnType<typeof createAuditService>

/** Creates the service that lists the audit trail. */
export function createAuditService({ store }: { store: Store }) {
  return {
    /**
     * Lists the entries of a developer's account and its resources, newest first.
     *
     * @throws INVALID_ARGUMENT (CURSOR_INVALID)
     */
    async list(
      developer: Developer,
      filter: Pick<AuditQuery, 'action' | 'targetId'>,
      page: PageRequest,
    ): Promise<Page<AuditEntry>> {
      const before = readIdCursor(page, 'aud')
      const isFiltered = filter.action !== undefined || filter.targetId !== undefined
      const from = isFiltered ? await store.read.scanLimits.forAudit(developer.id, before) : undefined
      const rows = await store.read.audit.list(developer.id, {
        ...filter,
        limit: page.limit + 1,
        before,
        from,
      })
      return toPage(rows, page.limit, ({ id }) => id, from)
    },
  }
}
