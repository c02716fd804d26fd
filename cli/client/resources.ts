import type { ResponseData } from './routes.ts'

// The API's resources, in the server's own types.

export type Project = ResponseData<'GET', '/v1/projects'>[number]
export type Application = ResponseData<'GET', '/v1/applications'>[number]
export type ApplicationPage = ResponseData<'GET', '/v1/applications/:id/page'>
export type Template = ResponseData<'GET', '/v1/applications/:id/templates'>[number]
/** Response of the create call, the only one with every credential. */
export type CreatedApplication = ResponseData<'POST', '/v1/applications'>
export type ApiToken = ResponseData<'GET', '/v1/tokens'>[number]
export type CreatedApiToken = ResponseData<'POST', '/v1/tokens'>
export type AuditEntry = ResponseData<'GET', '/v1/audit'>[number]
export type LogEntry = ResponseData<'GET', '/v1/logs'>[number]
export type InboxItem = ResponseData<'GET', '/v1/inbox'>[number]
export type SentOtp = ResponseData<'POST', '/v1/otp/send'>
export type OtpRequest = MissingBefore<ResponseData<'GET', '/v1/otp'>[number], 'template'>
export type RequestEvent = ResponseData<'GET', '/v1/otp/:id/events'>[number]
export type WebhookEndpoint = ResponseData<'GET', '/v1/webhooks'>[number]
export type WebhookDelivery = ResponseData<'GET', '/v1/webhooks/:id/deliveries'>[number]
export type WebhookDeliveryDetail = ResponseData<'GET', '/v1/webhooks/:id/deliveries/:deliveryId'>
export type User = ResponseData<'GET', '/v1/users'>[number]
export type DeveloperProfile = ResponseData<'GET', '/v1/developer/me'>
export type Summary = ResponseData<'GET', '/v1/analytics/summary'>
export type DayCounts = ResponseData<'GET', '/v1/analytics/timeseries'>[number]
/** Fields that servers up to 0.2.0 do not send: a newer console shows what they do. */
type MissingBefore<T, Name extends keyof T> = Omit<T, Name> & Partial<Pick<T, Name>>

export type BreakdownRow = MissingBefore<
  ResponseData<'GET', '/v1/analytics/breakdown'>[number],
  | 'blocked'
  | 'medianSeconds'
  | 'currency'
  | 'cost'
  | 'estimatedCost'
  | 'costPerVerified'
  | 'unpriced'
  | 'relayed'
  | 'relayedCost'
>
export type ProviderState = MissingBefore<ResponseData<'GET', '/v1/providers'>[number], 'recentRefusals'>
export type GuardState = MissingBefore<ResponseData<'GET', '/v1/guard'>, 'allowances' | 'relays' | 'pool'>
/** Counts and costs of the codes that one provider has sent to one country. */
export type CostRow = ResponseData<'GET', '/v1/analytics/costs'>[number]
export type RouteState = ResponseData<'GET', '/v1/routes'>[number]
export type GuardListRule = ResponseData<'GET', '/v1/guard/rules'>[number]
