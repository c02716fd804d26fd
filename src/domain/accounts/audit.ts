import type { Developer } from '../model/developer.ts'
import { lowestId, type NewId } from '../model/ids.ts'
import { toPage, readIdCursor, type Page, type PageRequest } from '../model/pagination.ts'
import type { Store, Stores } from '../store/store.ts'
import type { AuditAction, Origin, Actor, AuditEntry } from '../model/audit.ts'
import type { AuditQuery } from '../store/audit.ts'
import { minuteMs } from '../../shared/durations.ts'

/** The action of an audit entry, without actor and origin. */
export type AuditDetails = {
  action: AuditAction
  targetId?: string | null
  targetName?: string | null
  detail?: string | null
}

/** The audit trail that an entry belongs to, its actor and its origin. */
type AuditActor = { developerId: string | null; actorId: string | null; origin: Origin }

/** Actor for a developer who changes their own resources. */
export const selfActor = ({ id, origin }: Actor): AuditActor => ({ developerId: id, actorId: id, origin })

/** User agents have no length limit of their own. */
const userAgentMax = 200

/** Records an audit entry. Must run in the transaction of the change, so that both are atomic. */
export async function recordAudit(
  tx: Pick<Stores, 'audit'>,
  newId: NewId,
  { developerId, actorId, origin }: AuditActor,
  { action, targetId = null, targetName = null, detail = null }: AuditDetails,
  at: number,
): Promise<void> {
  const { source, ip, traceId, tokenId } = origin
  const userAgent = origin.userAgent?.slice(0, userAgentMax) ?? null
  await tx.audit.insert({
    id: newId('aud'),
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
    tokenId,
    at,
  })
}

/**
 * Tells whether the same change of the same client was recorded in the last minute, so that repeating it adds no
 * entry. Entries never change: only the first call writes one. The caller must hold a lock on the developer.
 */
export async function isAuditRepeated(
  tx: Pick<Stores, 'audit'>,
  { developerId, actorId, origin }: AuditActor & { developerId: string },
  { action, targetId = null, detail = null }: AuditDetails,
  now: number,
): Promise<boolean> {
  const from = lowestId('aud', Math.max(0, now - minuteMs + 1))
  const recent = await tx.audit.list(developerId, { action, from, limit: recentMax })
  return recent.some(
    (entry) =>
      entry.actorId === actorId &&
      entry.targetId === targetId &&
      entry.detail === detail &&
      entry.source === origin.source &&
      entry.ip === origin.ip &&
      entry.tokenId === origin.tokenId,
  )
}

/** Different changes from different addresses; repeated ones are not among them. */
const recentMax = 50

export type AuditService = ReturnType<typeof createAuditService>

/** Creates the service that lists the audit trail. */
export function createAuditService({ store }: { store: Store<'audit'> }) {
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
      const query = { ...filter, limit: page.limit + 1, before }
      const rows = await store.read.audit.list(developer.id, query)
      return toPage(rows, page.limit, ({ id }) => id)
    },
  }
}
