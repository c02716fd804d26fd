import { selfActor, recordAudit, type Actor, type AuditDetails } from '../accounts/audit.ts'
import type { Developer } from '../accounts/developers.ts'
import { invalidField, notFound, ServiceError } from '../model/errors.ts'
import type { Subscription } from '../model/event-kinds.ts'
import { runIdempotently, type IdempotentResult, type IdempotencyScope } from '../limits/idempotency.ts'
import { isId, type NewId } from '../model/ids.ts'
import { toPage, readIdCursor, type Page, type PageRequest } from '../model/pagination.ts'
import type { Keys } from '../model/keys.ts'
import type { Clock, Random } from '../model/clock.ts'
import type { Store, Stores } from '../store/store.ts'
import type { DisabledReason } from './auto-disable.ts'
import { applyHeaderChanges, type SealedHeaders } from './headers.ts'

/** Where an application is told of its events. */
export type WebhookEndpoint = {
  id: string
  developerId: string
  appId: string
  url: string
  /** At least one, each once. */
  events: Subscription[]
  status: 'enabled' | 'disabled'
  /** Its developer's own words. */
  description: string | null
  headers: SealedHeaders
  /** Why the service itself disabled it; null where a developer did. */
  disabledReason: DisabledReason | null
  /** The first failure since the last success. */
  failingSince: number | null
  /** The last success. */
  lastDeliveryAt: number | null
  createdAt: number
  updatedAt: number
}

export type EndpointChanges = {
  url?: string | undefined
  events?: Subscription[] | undefined
  status?: WebhookEndpoint['status'] | undefined
  description?: string | null | undefined
  /** Those named with null go, those not named stay. */
  headers?: Record<string, string | null> | undefined
}

export type NewEndpoint = {
  appId: string
  url: string
  events: Subscription[]
  description?: string | null | undefined
  headers?: Record<string, string> | undefined
}

type StoredChanges = Omit<EndpointChanges, 'headers'> & { headers?: SealedHeaders }

/** An endpoint with what a message to it needs of its application. */
export type EndpointWithApplication = WebhookEndpoint & {
  projectId: string
  environment: 'live' | 'test'
  webhookSecret: string
}

/** Finders that name a developer do not find what is somebody else's. */
export type WebhookEndpointStore = {
  find(developerId: string, id: string): Promise<WebhookEndpoint | undefined>
  findWithApplication(developerId: string, id: string): Promise<EndpointWithApplication | undefined>
  /** Newest first. @param query.before an id; only older ones are listed */
  list(query: EndpointListQuery): Promise<WebhookEndpoint[]>
  /** The enabled endpoints of an application, in the order of their ids. */
  subscribers(appId: string): Promise<Array<{ id: string; events: readonly string[] }>>
  /** Holds the application until the transaction ends. False where it is absent or somebody else's. */
  lockApplication(developerId: string, appId: string): Promise<boolean>
  count(appId: string): Promise<number>
  insert(endpoint: WebhookEndpoint): Promise<void>
  /** `enabled` also forgets why it was disabled and since when it failed. */
  update(
    developerId: string,
    id: string,
    changes: StoredChanges,
    now: number,
  ): Promise<WebhookEndpoint | undefined>
  /** Holds an endpoint until the transaction ends. */
  lock(id: string): Promise<void>
  findOwner(id: string): Promise<{ developerId: string; appId: string } | undefined>
  /** @param failingSinceBefore only where it fails since then or longer. @returns false where it was not enabled any more */
  disable(
    id: string,
    reason: DisabledReason,
    failingSinceBefore: number | undefined,
    now: number,
  ): Promise<boolean>
  /** With its deliveries. */
  delete(developerId: string, id: string): Promise<boolean>
}

export type EndpointListQuery = {
  developerId: string
  appId?: string | undefined
  limit: number
  before?: string | undefined
}

/** Which URLs events may be sent to. */
export type WebhookTargets = {
  /** What is wrong with a URL, in a sentence for its owner; undefined where nothing is. */
  findFault(url: string): string | undefined
}

export const webhookUrlLengthMax = 2048

export type WebhookEndpointService = ReturnType<typeof createWebhookEndpointService>

/** @param needs.endpointsMax how many an application may have */
export function createWebhookEndpointService(needs: {
  store: Store
  clock: Clock
  newId: NewId
  random: Random
  keys: Pick<Keys, 'webhookHeader'>
  targets: WebhookTargets
  endpointsMax: number
}) {
  const { store, clock, newId, targets, endpointsMax } = needs

  const addAuditEntry = (tx: Stores, actor: Actor, id: string, details: AuditDetails) =>
    recordAudit(tx, newId, selfActor(actor), { targetId: id, ...details }, clock.now())

  const requireAllowedUrl = (url: string) => {
    const fault = targets.findFault(url)
    if (fault === undefined) return
    throw invalidField('body', 'url', fault)
  }

  /** The endpoint is held meanwhile: of two changes at once neither is lost. */
  async function mergeHeaders(
    tx: Stores,
    developerId: string,
    id: string,
    changes: Record<string, string | null>,
  ) {
    await tx.webhookEndpoints.lock(id)
    const endpoint = await tx.webhookEndpoints.find(developerId, id)
    if (!endpoint) throw notFound()
    return applyHeaderChanges(needs, id, endpoint.headers, changes)
  }

  return {
    /**
     * @param appId one that is not the developer's gives an empty list
     * @throws INVALID_ARGUMENT (CURSOR_INVALID)
     */
    async list(
      developer: Developer,
      appId: string | undefined,
      page: PageRequest,
    ): Promise<Page<WebhookEndpoint>> {
      const before = readIdCursor(page, 'whk')
      const matchesNothing = appId !== undefined && !isId('app', appId)
      const query = { developerId: developer.id, appId, limit: page.limit + 1, before }
      const rows = matchesNothing ? [] : await store.read.webhookEndpoints.list(query)
      return toPage(rows, page.limit, (endpoint) => endpoint.id)
    },

    /** @throws NOT_FOUND absent or somebody else's */
    async get(developer: Developer, id: string): Promise<WebhookEndpoint> {
      const endpoint = isId('whk', id) ? await store.read.webhookEndpoints.find(developer.id, id) : undefined
      if (!endpoint) throw notFound()
      return endpoint
    },

    /**
     * Atomic: the application is held while its endpoints are counted, so that the limit is never passed.
     *
     * @throws INVALID_ARGUMENT the URL is not one that events may be sent to, or headers may not be set; NOT_FOUND the
     *   application is absent or somebody else's; ENDPOINT_LIMIT_REACHED; IDEMPOTENCY_KEY_REUSED
     */
    async create(
      developer: Actor,
      input: NewEndpoint,
      idempotency?: IdempotencyScope,
    ): Promise<IdempotentResult<WebhookEndpoint>> {
      requireAllowedUrl(input.url)
      const id = newId('whk')
      const headers = applyHeaderChanges(needs, id, {}, input.headers ?? {})
      return runIdempotently(store, clock, idempotency, async (tx) => {
        const isLocked =
          isId('app', input.appId) && (await tx.webhookEndpoints.lockApplication(developer.id, input.appId))
        if (!isLocked) return notFound()
        if ((await tx.webhookEndpoints.count(input.appId)) >= endpointsMax)
          return endpointLimitReached(endpointsMax)
        const now = clock.now()
        const endpoint: WebhookEndpoint = {
          ...input,
          id,
          developerId: developer.id,
          description: input.description ?? null,
          headers,
          status: 'enabled',
          disabledReason: null,
          failingSince: null,
          lastDeliveryAt: null,
          createdAt: now,
          updatedAt: now,
        }
        await tx.webhookEndpoints.insert(endpoint)
        await addAuditEntry(tx, developer, id, { action: 'webhook.created', detail: input.appId })
        return endpoint
      })
    },

    /**
     * What waits to be sent to a disabled endpoint goes on waiting until it is enabled again; what happens meanwhile
     * is not sent to it.
     *
     * @throws INVALID_ARGUMENT the URL is not one that events may be sent to, or headers may not be set; NOT_FOUND
     */
    async update(developer: Actor, id: string, changes: EndpointChanges): Promise<WebhookEndpoint> {
      if (changes.url !== undefined) requireAllowedUrl(changes.url)
      if (!isId('whk', id)) throw notFound()
      return store.write(async (tx) => {
        const { headers, ...otherChanges } = changes
        const now = clock.now()
        const headerChanges = headers && { headers: await mergeHeaders(tx, developer.id, id, headers) }
        const changed = await tx.webhookEndpoints.update(
          developer.id,
          id,
          { ...otherChanges, ...headerChanges },
          now,
        )
        if (!changed) throw notFound()
        const action = changes.status ? (`webhook.${changes.status}` as const) : 'webhook.updated'
        await addAuditEntry(tx, developer, id, { action, detail: Object.keys(changes).join(',') })
        return changed
      })
    },

    /** With all that still waits to be sent to it. @throws NOT_FOUND */
    async delete(developer: Actor, id: string): Promise<void> {
      if (!isId('whk', id)) throw notFound()
      await store.write(async (tx) => {
        if (!(await tx.webhookEndpoints.delete(developer.id, id))) throw notFound()
        await addAuditEntry(tx, developer, id, { action: 'webhook.deleted' })
      })
    },
  }
}

const endpointLimitReached = (limit: number) =>
  new ServiceError('ENDPOINT_LIMIT_REACHED', 'The application can have no more webhook endpoints.', {
    metadata: { limit },
  })
