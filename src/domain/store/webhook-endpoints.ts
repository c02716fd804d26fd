import type {
  EndpointChanges,
  EndpointHeaders,
  WebhookEndpoint,
  EndpointWithApplication,
  DisabledReason,
} from '../model/webhook-endpoint.ts'
import type { EventSubscriber } from './operation.ts'

type StoredChanges = Omit<EndpointChanges, 'headers'> & { headers?: EndpointHeaders }

export type EndpointListQuery = {
  developerId: string
  appId?: string | undefined
  limit: number
  before?: string | undefined
}

/** Methods with a `developerId` find only that developer's endpoints. */
export type WebhookEndpointStore = {
  find(developerId: string, id: string): Promise<WebhookEndpoint | undefined>
  findWithApplication(developerId: string, id: string): Promise<EndpointWithApplication | undefined>
  /** Lists newest first. @param query.before an id; lists older endpoints only */
  list(query: EndpointListQuery): Promise<WebhookEndpoint[]>
  /** Lists the endpoints of an application in the order of their ids. */
  subscribers(appId: string): Promise<readonly EventSubscriber[]>
  /** Locks the application until the transaction ends. @returns false if it does not exist or is another developer's */
  lockApplication(developerId: string, appId: string): Promise<boolean>
  count(appId: string): Promise<number>
  insert(endpoint: WebhookEndpoint): Promise<void>
  /** Updates an endpoint. Enabling it also clears `disabledReason` and `failingSince`; a URL clears `failingSince`. */
  update(
    developerId: string,
    id: string,
    changes: StoredChanges,
    now: number,
  ): Promise<WebhookEndpoint | undefined>
  /** Locks an endpoint until the transaction ends. */
  lock(id: string): Promise<void>
  /** Lists the endpoints of all developers that were disabled for failing, in the order of their ids. */
  listDisabled(): Promise<Array<{ id: string; reason: DisabledReason }>>
  /**
   * Disables an enabled endpoint.
   *
   * @param only.url only if it still has this one
   * @param only.failingSinceBefore only if it has been failing since then or longer
   * @returns whose it is; undefined if nothing changed
   */
  disable(
    id: string,
    reason: DisabledReason,
    only: { url: string; failingSinceBefore: number | undefined },
    now: number,
  ): Promise<{ developerId: string; appId: string } | undefined>
  /** Deletes an endpoint with its deliveries. */
  delete(developerId: string, id: string): Promise<boolean>
}
