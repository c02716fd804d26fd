import type { Data } from './routes.ts'

/** The API's resources as the commands show them, in the server's own types. */
export type Project = Data<'GET', '/v1/projects'>[number]
export type Application = Data<'GET', '/v1/applications'>[number]
/** The answer of the create call, the only one that holds every credential. */
export type CreatedApplication = Data<'POST', '/v1/applications'>
export type AuditEntry = Data<'GET', '/v1/audit'>[number]
export type LogEntry = Data<'GET', '/v1/logs'>[number]
export type InboxItem = Data<'GET', '/v1/inbox'>[number]
export type SentOtp = Data<'POST', '/v1/otp/send'>
export type OtpRequest = Data<'GET', '/v1/otp'>[number]
export type WebhookEndpoint = Data<'GET', '/v1/webhooks'>[number]
export type WebhookDelivery = Data<'GET', '/v1/webhooks/:id/deliveries'>[number]
export type WebhookDeliveryDetail = Data<'GET', '/v1/webhooks/:id/deliveries/:deliveryId'>
export type User = Data<'GET', '/v1/users'>[number]
export type DeveloperProfile = Data<'GET', '/v1/developer/me'>
export type Summary = Data<'GET', '/v1/analytics/summary'>
export type DayCounts = Data<'GET', '/v1/analytics/timeseries'>[number]
