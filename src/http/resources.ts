import type { ResourceKind } from '../domain/model/errors.ts'

/** Kind of the resource that a parameter identifies, by the segment before it. */
const kindsBySegment: Readonly<Record<string, ResourceKind>> = {
  projects: 'project',
  applications: 'application',
  otp: 'otpRequest',
  sessions: 'session',
  deliver: 'relayedMessage',
  webhooks: 'webhookEndpoint',
  deliveries: 'webhookDelivery',
  tokens: 'apiToken',
  rules: 'guardRule',
  templates: 'template',
  users: 'user',
  callbacks: 'callback',
}

/**
 * Finds the kinds of resource that the parameters of a route identify, outermost first.
 *
 * @param route such as `/v1/webhooks/:id/deliveries/:deliveryId`, or with `{id}`
 */
export const resourcesAt = (route: string): ResourceKind[] =>
  [...route.matchAll(/([a-z-]+)\/[:{]/g)].flatMap(([, segment = '']) => kindsBySegment[segment] ?? [])
