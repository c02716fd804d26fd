import type { Developer } from './developers.ts'
import type { NewId } from '../model/ids.ts'
import { toPage, readIdCursor, type Page, type PageRequest } from '../model/pagination.ts'
import type { Store, Stores } from '../store/store.ts'

/** What is noted, by the noun that it happens to. */
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

/** Where a change comes from: a call, a command on the server's machine, or the server's own configuration. */
export type Origin = {
  source: 'api' | 'host' | 'server'
  /** Of the client, as far as trusted proxies tell it. */
  ip: string | null
  userAgent: string | null
  /** Of the call, as its answer has it. */
  traceId: string | null
}

/** A developer, and where the call comes from that speaks for them. */
export type Actor = Developer & { origin: Origin }

/** Somebody who logs in, and is nobody yet. `network` is what limits count by. */
export type Client = { network: string; origin: Origin }

export const hostOrigin: Origin = { source: 'host', ip: null, userAgent: null, traceId: null }
export const serverOrigin: Origin = { ...hostOrigin, source: 'server' }

export type AuditEntry = Origin & {
  id: string
  /** Whose trail it stands in; null where it concerns the installation. */
  developerId: string | null
  action: AuditAction
  /** The developer who did it; null for the operator, and for whoever failed to log in. */
  actorId: string | null
  targetId: string | null
  /** As the developer named it then. Never a phone number, an address or a secret. */
  targetName: string | null
  detail: string | null
  at: number
}

export type AuditQuery = {
  action?: AuditAction | undefined
  targetId?: string | undefined
  limit: number
  /** An id; only older ones. */
  before?: string | undefined
  /** The lowest id. */
  from?: string | undefined
}

export type AuditStore = {
  insert(entry: AuditEntry): Promise<void>
  delete(id: string): Promise<void>
  /** Newest first. @param developerId undefined: everybody's, and the installation's own */
  list(developerId: string | undefined, query: AuditQuery): Promise<AuditEntry[]>
  /** About `chunk` of the oldest, up to a time. False when none was left. */
  deleteOldest(until: number, batchSize: number): Promise<boolean>
}

/** What happened, without who and where. */
export type AuditDetails = {
  action: AuditAction
  targetId?: string | null
  targetName?: string | null
  detail?: string | null
}

/** Whose trail, who, and from where. */
export type AuditActor = { developerId: string | null; actorId: string | null; origin: Origin }

/** A developer who changes what is theirs. */
export const selfActor = ({ id, origin }: Actor): AuditActor => ({ developerId: id, actorId: id, origin })

/** Browsers and programs name themselves at any length. */
const userAgentMax = 200

/**
 * Writes down who changed what. Part of the transaction that changes it, so that neither is ever without the other.
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

export function createAuditService({ store }: { store: Store }) {
  return {
    /** What happened to a developer's account and all that is in it, newest first. @throws INVALID_ARGUMENT (CURSOR_INVALID) */
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
