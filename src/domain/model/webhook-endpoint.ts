import type { Subscription } from '../../shared/event-kinds.ts'
import type { Environment } from '../../shared/otp-values.ts'

/**
 * An endpoint's additional headers, by lower-case name. Values are treated as the receiver's credentials: sealed at rest
 * and never shown again.
 */
export type EndpointHeaders = Readonly<Record<string, string>>

/** `failing`: no success for 120 hours. `gone`: the receiver answered 410, which requests it (Standard Webhooks). */
export type DisabledReason = 'failing' | 'gone'

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
  /** None if they cannot be decrypted. */
  headers: EndpointHeaders
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

/** An endpoint with the fields of its application that a message needs. */
export type EndpointWithApplication = Omit<WebhookEndpoint, 'headers'> & {
  projectId: string
  environment: Environment
  /** Null if it cannot be decrypted. */
  webhookSecret: string | null
  /** Null if they cannot be decrypted. */
  headers: EndpointHeaders | null
}
