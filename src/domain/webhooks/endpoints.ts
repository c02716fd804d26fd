import { selfActor, recordAudit, type AuditDetails } from '../accounts/audit.ts'
import type { Actor } from '../model/audit.ts'
import type { Developer } from '../model/developer.ts'
import { invalidField, notFound, ServiceError } from '../model/errors.ts'
import type { Subscription } from '../../shared/event-kinds.ts'
import { runIdempotently, type IdempotentResult } from '../limits/idempotency.ts'
import type { IdempotencyScope } from '../model/idempotency.ts'
import { isId, type NewId } from '../model/ids.ts'
import { toPage, readIdCursor, type Page, type PageRequest } from '../model/pagination.ts'
import type { Clock } from '../model/clock.ts'
import type { Store, Stores } from '../store/store.ts'
import { deleteDeliveries } from '../store/delete-deliveries.ts'
import { applyHeaderChanges } from './headers.ts'
import type { WebhookEndpoint, EndpointChanges, EndpointHeaders } from '../model/webhook-endpoint.ts'

type NewEndpoint = {
  appId: string
  url: string
  events: Subscription[]
  description?: string | null | undefined
  headers?: Record<string, string> | undefined
}

/** A changed endpoint, and the names of the headers that it lost because its URL's origin changed. */
type ChangedEndpoint = WebhookEndpoint & { droppedHeaders: string[] }

/** Policy of allowed webhook URLs. */
export type WebhookTargets = {
  /** Returns a sentence that says why a URL is not allowed; undefined if it is. */
  findFault(url: string): string | undefined
}

export const webhookUrlLengthMax = 2048

export type WebhookEndpointService = ReturnType<typeof createWebhookEndpointService>

/**
 * Creates the service that manages webhook endpoints.
 *
 * @param needs.endpointsMax maximum number per application
 */
export function createWebhookEndpointService(needs: {
  store: Store<'audit' | 'idempotency' | 'webhookDeliveries' | 'webhookEndpoints'>
  clock: Clock
  newId: NewId
  targets: WebhookTargets
  endpointsMax: number
}) {
  const { store, clock, newId, targets, endpointsMax } = needs

  const addAuditEntry = (tx: Pick<Stores, 'audit'>, actor: Actor, id: string, details: AuditDetails) =>
    recordAudit(tx, newId, selfActor(actor), { targetId: id, ...details }, clock.now())

  const requireAllowedUrl = (url: string) => {
    const fault = targets.findFault(url)
    if (fault === undefined) return
    throw invalidField('body', 'url', fault)
  }

  /**
   * Merges changed headers. A change of the URL's origin drops the headers that the same call does not set: they may be
   * credentials of the former receiver. Locks the endpoint, so that concurrent changes are not lost.
   *
   * @throws NOT_FOUND; INVALID_ARGUMENT as `applyHeaderChanges`
   */
  async function mergeHeaders(
    tx: Pick<Stores, 'webhookEndpoints'>,
    developerId: string,
    id: string,
    { url, headers: changes = {} }: EndpointChanges,
  ): Promise<{ headers: EndpointHeaders; droppedHeaders: string[] }> {
    await tx.webhookEndpoints.lock(id)
    const endpoint = await tx.webhookEndpoints.find(developerId, id)
    if (!endpoint) throw notFound('webhookEndpoint')
    const hasMoved = url !== undefined && new URL(url).origin !== new URL(endpoint.url).origin
    const headers = applyHeaderChanges(hasMoved ? {} : endpoint.headers, changes)
    const named = new Set(Object.keys(changes).map((name) => name.toLowerCase()))
    const droppedHeaders = hasMoved ? Object.keys(endpoint.headers).filter((name) => !named.has(name)) : []
    return { headers, droppedHeaders }
  }

  return {
    /**
     * Lists endpoints, newest first.
     *
     * @param appId another developer's gives an empty list
     * @throws INVALID_ARGUMENT (CURSOR_INVALID)
     */
    async list(
      developer: Developer,
      appId: string | undefined,
      page: PageRequest,
    ): Promise<Page<WebhookEndpoint>> {
      const before = readIdCursor(page, 'whk')
      const query = { developerId: developer.id, appId, limit: page.limit + 1, before }
      const rows = await store.read.webhookEndpoints.list(query)
      return toPage(rows, page.limit, (endpoint) => endpoint.id)
    },

    /** @throws NOT_FOUND it does not exist or is another developer's */
    async get(developer: Developer, id: string): Promise<WebhookEndpoint> {
      const endpoint = isId('whk', id) ? await store.read.webhookEndpoints.find(developer.id, id) : undefined
      if (!endpoint) throw notFound('webhookEndpoint')
      return endpoint
    },

    /**
     * Creates an endpoint. Atomic: the application is locked while its endpoints are counted, so that the limit
     * holds.
     *
     * @throws INVALID_ARGUMENT the URL or a header is not allowed; NOT_FOUND the application does not exist or is
     *   another developer's; ENDPOINT_LIMIT_REACHED; IDEMPOTENCY_KEY_REUSED
     */
    async create(
      developer: Actor,
      input: NewEndpoint,
      idempotency?: IdempotencyScope,
    ): Promise<IdempotentResult<WebhookEndpoint>> {
      requireAllowedUrl(input.url)
      const id = newId('whk')
      const headers = applyHeaderChanges({}, input.headers ?? {})
      return runIdempotently(store, clock, idempotency, async (tx) => {
        const isLocked =
          isId('app', input.appId) && (await tx.webhookEndpoints.lockApplication(developer.id, input.appId))
        if (!isLocked) throw notFound('application')
        if ((await tx.webhookEndpoints.count(input.appId)) >= endpointsMax)
          throw endpointLimitReached(endpointsMax)
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
     * Updates an endpoint. While it is disabled its pending deliveries wait until it is enabled again; events of that
     * time become skipped deliveries. `mergeHeaders` says what happens to its headers.
     *
     * @returns the endpoint, and the names of the headers that were dropped because the URL's origin changed
     * @throws INVALID_ARGUMENT the URL or a header is not allowed; NOT_FOUND
     */
    async update(developer: Actor, id: string, changes: EndpointChanges): Promise<ChangedEndpoint> {
      if (changes.url !== undefined) requireAllowedUrl(changes.url)
      if (!isId('whk', id)) throw notFound('webhookEndpoint')
      return store.write(async (tx) => {
        const { headers: _, ...otherChanges } = changes
        const now = clock.now()
        const mayChangeHeaders = changes.headers !== undefined || changes.url !== undefined
        const merged = mayChangeHeaders ? await mergeHeaders(tx, developer.id, id, changes) : undefined
        const changed = await tx.webhookEndpoints.update(
          developer.id,
          id,
          { ...otherChanges, ...(merged && { headers: merged.headers }) },
          now,
        )
        if (!changed) throw notFound('webhookEndpoint')
        const action = changes.status ? (`webhook.${changes.status}` as const) : 'webhook.updated'
        await addAuditEntry(tx, developer, id, { action, detail: Object.keys(changes).join(',') })
        return { ...changed, droppedHeaders: merged?.droppedHeaders ?? [] }
      })
    },

    /**
     * Deletes an endpoint with its deliveries, pending ones included. A call that fails midway has deleted some of them, and
     * can be repeated.
     *
     * @throws NOT_FOUND
     */
    async delete(developer: Actor, id: string): Promise<void> {
      const endpoint = isId('whk', id) && (await store.read.webhookEndpoints.find(developer.id, id))
      if (!endpoint) throw notFound('webhookEndpoint')
      await deleteDeliveries(store, id)
      await store.write(async (tx) => {
        if (!(await tx.webhookEndpoints.delete(developer.id, id))) throw notFound('webhookEndpoint')
        await addAuditEntry(tx, developer, id, { action: 'webhook.deleted' })
      })
    },
  }
}

const endpointLimitReached = (limit: number) =>
  new ServiceError(
    'ENDPOINT_LIMIT_REACHED',
    `An application can have at most ${limit} webhook endpoints. Delete one first.`,
    { metadata: { limit } },
  )
