import type { RequiredScope } from '../domain/model/api-token.ts'

/**
 * Required scope of each route for developers. The OpenAPI document shows it, and a test fails for a route that is
 * missing here.
 */
export const routeScopes: Readonly<Record<string, RequiredScope>> = {
  'GET /v1/analytics/breakdown': 'otp:read',
  'GET /v1/analytics/costs': 'otp:read',
  'GET /v1/analytics/summary': 'otp:read',
  'GET /v1/analytics/timeseries': 'otp:read',
  'GET /v1/guard/rules': 'otp:read',
  'GET /v1/logs': 'otp:read',
  'GET /v1/logs/stream': 'otp:read',
  'GET /v1/otp': 'otp:read',
  'GET /v1/otp/:id': 'otp:read',
  'GET /v1/otp/:id/events': 'otp:read',
  'GET /v1/otp/sessions/:id': 'otp:read',
  'GET /v1/users': 'otp:read',
  'GET /v1/users/:phoneNumber': 'otp:read',

  'DELETE /v1/users/:phoneNumber': 'support',
  'POST /v1/users/:phoneNumber/unlock': 'support',

  'GET /v1/applications': 'read',
  'GET /v1/applications/:id': 'read',
  'GET /v1/applications/:id/page': 'read',
  'GET /v1/applications/:id/templates': 'read',
  'GET /v1/applications/:id/templates/:name': 'read',
  'GET /v1/audit': 'read',
  'GET /v1/developer/me': 'read',
  'GET /v1/guard': 'read',
  'GET /v1/projects': 'read',
  'GET /v1/projects/:id': 'read',
  'GET /v1/providers': 'read',
  'GET /v1/routes': 'read',
  'GET /v1/webhooks': 'read',
  'GET /v1/webhooks/:id': 'read',
  'GET /v1/webhooks/:id/deliveries': 'read',
  'GET /v1/webhooks/:id/deliveries/:deliveryId': 'read',

  // Codes and secrets give more than a look.
  'GET /v1/inbox': 'write',
  'GET /v1/applications/:id/webhook-secret': 'write',
  'POST /v1/applications': 'write',
  'PATCH /v1/applications/:id': 'write',
  'PATCH /v1/applications/:id/page': 'write',
  'PUT /v1/applications/:id/templates/:name': 'write',
  'DELETE /v1/applications/:id/templates/:name': 'write',
  'DELETE /v1/applications/:id': 'write',
  'POST /v1/applications/:id/rotate/:type': 'write',
  'PATCH /v1/developer/me': 'write',
  'POST /v1/guard/rules': 'write',
  'DELETE /v1/guard/rules/:id': 'write',
  'POST /v1/projects': 'write',
  'PATCH /v1/projects/:id': 'write',
  'DELETE /v1/projects/:id': 'write',
  'POST /v1/webhooks': 'write',
  'PATCH /v1/webhooks/:id': 'write',
  'DELETE /v1/webhooks/:id': 'write',
  'POST /v1/webhooks/:id/test': 'write',
  'POST /v1/webhooks/:id/recover': 'write',
  'POST /v1/webhooks/:id/deliveries/:deliveryId/redeliver': 'write',

  // A token must not outlive its revocation by making another one, or take over the account.
  'POST /v1/auth/password': 'login',
  'POST /v1/developer/me/totp': 'login',
  'POST /v1/developer/me/totp/confirm': 'login',
  'DELETE /v1/developer/me/totp': 'login',
  'GET /v1/tokens': 'login',
  'POST /v1/tokens': 'login',
  'DELETE /v1/tokens/:id': 'login',
}

/**
 * Finds what a route requires. A route that is not listed requires a login, so that API tokens never reach it.
 *
 * @param route pattern of the path, such as `/v1/projects/:id`
 */
export function requiredScope(method: string, route: string): RequiredScope {
  // The framework runs the GET handler for HEAD, and registers lists with a trailing slash.
  const name = method.toUpperCase() === 'HEAD' ? 'GET' : method.toUpperCase()
  return routeScopes[`${name} ${route.replace(/\/$/, '')}`] ?? 'login'
}
