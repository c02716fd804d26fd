import { selfActor, recordAudit, type Actor, type AuditDetails } from '../accounts/audit.ts'
import type { Developer } from '../accounts/developers.ts'
import { invalidField, notFound, ServiceError } from '../model/errors.ts'
import type { Subscription } from '../../shared/event-kinds.ts'
import { runIdempotently, type IdempotentResult, type IdempotencyScope } from '../limits/idempotency.ts'
import { isId, type NewId } from '../model/ids.ts'
import { toPage, readIdCursor, type Page, type PageRequest } from '../model/pagination.ts'
import type { Keys } from '../model/keys.ts'
import { reject } from '../model/rejected.ts'
import type { Clock } from '../model/clock.ts'
import type { Random } from '../model/random.ts'
import type { Store, Stores } from '../store/store.ts'
import type { DisabledReason } from './auto-disable.ts'
import { applyHeaderChanges, type SealedHeaders } from './headers.ts'

/** A URL that receives an application's events. */
export type WebhookEndpoint = {
  id: string
  developerId: string
  appId: string
  url: string
  /** At least one, without duplicates. */
  events: Subscription[]
  status: 'enabled' | 'disabled'
  /** Free text of the developer. */
  description: string | null
  headers: SealedHeaders
  /** Reason why the service disabled it; null if a developer did, or if it is enabled. */
  disabledReason: DisabledReason | null
  /** Time of the first failure since the last success. */
  failingSince: number | null
  /** Time of the last success. */
  lastDeliveryAt: number | null
  createdAt: number
  updatedAt: number
}

export type EndpointChanges = {
  url?: string | undefined
  events?: Subscription[] | undefined
  status?: WebhookEndpoint['status'] | undefined
  description?: string | null | undefined
  /** Merge patch: null removes a header, headers that are not named stay. */
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

/** An endpoint with the fields of its application that a message needs. */
export type EndpointWithApplication = WebhookEndpoint & {
  projectId: string
  environment: 'live' | 'test'
  webhookSecret: string
}

/** Methods with a `developerId` find only that developer's endpoints. */
export type WebhookEndpointStore = {
  find(developerId: string, id: string): Promise<WebhookEndpoint | undefined>
  findWithApplication(developerId: string, id: string): Promise<EndpointWithApplication | undefined>
  /** Lists newest first. @param query.before an id; lists older endpoints only */
  list(query: EndpointListQuery): Promise<WebhookEndpoint[]>
  /** Lists the enabled endpoints of an application in the order of their ids. */
  subscribers(appId: string): Promise<Array<{ id: string; events: readonly string[] }>>
  /** Locks the application until the transaction ends. @returns false if it does not exist or is another developer's */
  lockApplication(developerId: string, appId: string): Promise<boolean>
  count(appId: string): Promise<number>
  insert(endpoint: WebhookEndpoint): Promise<void>
  /** Updates an endpoint. Enabling it also clears `disabledReason` and `failingSince`. */
  update(
    developerId: string,
    id: string,
    changes: StoredChanges,
    now: number,
  ): Promise<WebhookEndpoint | undefined>
  /** Locks an endpoint until the transaction ends. */
  lock(id: string): Promise<void>
  findOwner(id: string): Promise<{ developerId: string; appId: string } | undefined>
  /**
   * Disables an enabled endpoint.
   *
   * @param failingSinceBefore only if it has been failing since then or longer
   * @returns false if nothing changed
   */
  disable(
    id: string,
    reason: DisabledReason,
    failingSinceBefore: number | undefined,
    now: number,
  ): Promise<boolean>
  /** Deletes an endpoint with its deliveries. */
  delete(developerId: string, id: string): Promise<boolean>
}

export type EndpointListQuery = {
  developerId: string
  appId?: string | undefined
  limit: number
  before?: string | undefined
}

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

  /** Locks the endpoint, so that concurrent changes are not lost. */
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
      const matchesNothing = appId !== undefined && !isId('app', appId)
      const query = { developerId: developer.id, appId, limit: page.limit + 1, before }
      const rows = matchesNothing ? [] : await store.read.webhookEndpoints.list(query)
      return toPage(rows, page.limit, (endpoint) => endpoint.id)
    },

    /** @throws NOT_FOUND it does not exist or is another developer's */
    async get(developer: Developer, id: string): Promise<WebhookEndpoint> {
      const endpoint = isId('whk', id) ? await store.read.webhookEndpoints.find(developer.id, id) : undefined
      if (!endpoint) throw notFound()
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
      const headers = applyHeaderChanges(needs, id, {}, input.headers ?? {})
      return runIdempotently(store, clock, idempotency, async (tx) => {
        const isLocked =
          isId('app', input.appId) && (await tx.webhookEndpoints.lockApplication(developer.id, input.appId))
        if (!isLocked) return reject(notFound())
        if ((await tx.webhookEndpoints.count(input.appId)) >= endpointsMax)
          return reject(endpointLimitReached(endpointsMax))
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
     * time are not sent to it.
     *
     * @throws INVALID_ARGUMENT the URL or a header is not allowed; NOT_FOUND
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

    /** Deletes an endpoint with its deliveries, pending ones included. @throws NOT_FOUND */
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
  new ServiceError(
    'ENDPOINT_LIMIT_REACHED',
    `An application can have at most ${limit} webhook endpoints. Delete one first.`,
    { metadata: { limit } },
  )
