import type { Developer } from './developers.ts'
import { notFound, ServiceError } from './errors.ts'
import type { Subscription } from './event-kinds.ts'
import { answerOnce, type Answer, type IdempotencyScope } from './idempotency.ts'
import { isId, type NewId } from './ids.ts'
import { pageOf, readPosition, type Page, type PageRequest } from './pages.ts'
import type { Clock } from './ports.ts'
import type { Store } from './store.ts'

/** Where an application is told of its events. */
export type WebhookEndpoint = {
  id: string
  developerId: string
  appId: string
  url: string
  /** At least one, each once. */
  events: Subscription[]
  status: 'enabled' | 'disabled'
  /** Why the service itself disabled it; null where a developer did. */
  disabledReason: string | null
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
}

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
  /** The enabled endpoints of an application. */
  subscribers(appId: string): Promise<Array<{ id: string; events: readonly string[] }>>
  /** Holds the application until the transaction ends. False where it is absent or somebody else's. */
  lockApplication(developerId: string, appId: string): Promise<boolean>
  count(appId: string): Promise<number>
  insert(endpoint: WebhookEndpoint): Promise<void>
  /** `enabled` also forgets why it was disabled and since when it failed. */
  update(
    developerId: string,
    id: string,
    changes: EndpointChanges,
    now: number,
  ): Promise<WebhookEndpoint | undefined>
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
  faultOf(url: string): string | undefined
}

export const webhookUrlLengthMax = 2048

export type WebhookEndpointService = ReturnType<typeof createWebhookEndpointService>

/** @param needs.endpointsMax how many an application may have */
export function createWebhookEndpointService(needs: {
  store: Store
  clock: Clock
  newId: NewId
  targets: WebhookTargets
  endpointsMax: number
}) {
  const { store, clock, newId, targets, endpointsMax } = needs

  const refuseBadUrl = (url: string) => {
    const fault = targets.faultOf(url)
    if (fault === undefined) return
    throw new ServiceError('INVALID_ARGUMENT', 'The request is not valid. See details.', {
      details: [{ in: 'body', path: 'url', code: 'INVALID', message: fault }],
    })
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
      const before = readPosition(page, 'whk')
      const nowhere = appId !== undefined && !isId('app', appId)
      const query = { developerId: developer.id, appId, limit: page.limit + 1, before }
      const rows = nowhere ? [] : await store.read.webhookEndpoints.list(query)
      return pageOf(rows, page.limit, (endpoint) => endpoint.id)
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
     * @throws INVALID_ARGUMENT the URL is not one that events may be sent to; NOT_FOUND the application is absent or
     *   somebody else's; ENDPOINT_LIMIT_REACHED; IDEMPOTENCY_KEY_REUSED
     */
    async create(
      developer: Developer,
      input: { appId: string; url: string; events: Subscription[] },
      idempotency?: IdempotencyScope,
    ): Promise<Answer<WebhookEndpoint>> {
      refuseBadUrl(input.url)
      return answerOnce(store, clock, idempotency, async (tx) => {
        const found =
          isId('app', input.appId) && (await tx.webhookEndpoints.lockApplication(developer.id, input.appId))
        if (!found) return notFound()
        if ((await tx.webhookEndpoints.count(input.appId)) >= endpointsMax) return limitReached(endpointsMax)
        const now = clock.now()
        const endpoint: WebhookEndpoint = {
          ...input,
          id: newId('whk'),
          developerId: developer.id,
          status: 'enabled',
          disabledReason: null,
          failingSince: null,
          lastDeliveryAt: null,
          createdAt: now,
          updatedAt: now,
        }
        await tx.webhookEndpoints.insert(endpoint)
        return endpoint
      })
    },

    /**
     * What waits to be sent to a disabled endpoint goes on waiting until it is enabled again; what happens meanwhile
     * is not sent to it.
     *
     * @throws INVALID_ARGUMENT the URL is not one that events may be sent to; NOT_FOUND
     */
    async update(developer: Developer, id: string, changes: EndpointChanges): Promise<WebhookEndpoint> {
      if (changes.url !== undefined) refuseBadUrl(changes.url)
      const changed = isId('whk', id)
        ? await store.write((tx) => tx.webhookEndpoints.update(developer.id, id, changes, clock.now()))
        : undefined
      if (!changed) throw notFound()
      return changed
    },

    /** With all that still waits to be sent to it. @throws NOT_FOUND */
    async delete(developer: Developer, id: string): Promise<void> {
      const deleted =
        isId('whk', id) && (await store.write((tx) => tx.webhookEndpoints.delete(developer.id, id)))
      if (!deleted) throw notFound()
    },
  }
}

const limitReached = (limit: number) =>
  new ServiceError('ENDPOINT_LIMIT_REACHED', 'The application can have no more webhook endpoints.', {
    metadata: { limit },
  })
