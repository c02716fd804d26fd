import { Elysia, type AnyElysia } from 'elysia'
import bundlePath from 'swagger-ui-dist/swagger-ui-bundle.js' with { type: 'file' }
import stylePath from 'swagger-ui-dist/swagger-ui.css' with { type: 'file' }
import { completeDocument, type GeneratedDocument } from './openapi.ts'

/**
 * Serves the OpenAPI document and Swagger UI for it. Scripts and styles are embedded in the binary, so the page loads
 * nothing from other hosts.
 *
 * @param api the routes to describe
 */
export function docsRoutes(api: AnyElysia, version: string) {
  let document: Promise<object> | undefined
  const hiddenRoute = { detail: { hide: true } }

  const serveAsset = (path: string, type: string) => () =>
    new Response(Bun.file(path), { headers: { 'content-type': type, 'cache-control': 'max-age=86400' } })

  return new Elysia({ prefix: '/v1' })
    .get('/openapi.json', () => (document ??= buildDocument(api, version)), hiddenRoute)
    .get(
      '/docs',
      () =>
        new Response(docsPage, {
          headers: { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': pagePolicy },
        }),
      hiddenRoute,
    )
    .get('/docs/start.js', () => new Response(startScript, { headers: javascript }), hiddenRoute)
    .get('/docs/swagger-ui.js', serveAsset(bundlePath, javascript['content-type']), hiddenRoute)
    .get('/docs/swagger-ui.css', serveAsset(stylePath, 'text/css; charset=utf-8'), hiddenRoute)
}

const javascript = { 'content-type': 'text/javascript; charset=utf-8' }

/** Inline styles are allowed, because Swagger UI sets them. */
const pagePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const docsPage = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>otpd API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
<div id="docs"></div>
<script src="docs/swagger-ui.js"></script>
<script src="docs/start.js"></script>
</html>
`

const startScript = `SwaggerUIBundle({ url: 'openapi.json', dom_id: '#docs', validatorUrl: null, docExpansion: 'list', deepLinking: true, defaultModelsExpandDepth: 0, displayRequestDuration: true })\n`

const tag = (name: string, description: string) => ({ name, description })

const applicationHeader = (name: string, description: string) => ({
  type: 'apiKey' as const,
  in: 'header' as const,
  name,
  description,
})

const documentation = {
  info: {
    title: 'otpd',
    version: '',
    license: { name: 'MIT', identifier: 'MIT' },
    description: `Issues and verifies one-time passcodes for phone numbers.

- **Bodies** are JSON objects of up to 64 KiB, sent as \`application/json\`. Unknown properties are rejected. A successful
  response has \`data\`; a failed one has \`error\`, with a stable machine-readable \`code\`.
- **Status codes** tell the client what to do. 400: correct the request. 409: conflict, such as a code that is already
  verified. 410: send a new code. 429: retry after \`Retry-After\` seconds.
- **Lists** are paginated by \`limit\` and \`cursor\`. Pass \`pagination.nextCursor\` as \`cursor\` until it is null. A cursor
  works for its list and its developer, until the server's keys are replaced.
- **Phone numbers** are in E.164 format. After the retention period an opaque pseudonym replaces the number.
- **Times** are RFC 3339 in UTC. **Ids** are opaque. A resource of another developer is reported as not found.
- **Rate limits** are reported in \`RateLimit-Policy\` and \`RateLimit\` on every response to send,
  resend and verify, to calls with a bearer token, and to look-ups with an API key alone.
- **Every response** has \`X-Request-Id\`, which errors repeat as \`traceId\`. Later versions may add fields to responses:
  ignore those that you do not know.
- **Request line and headers** are limited to 16 KiB together. Above that, every operation responds 431 without a body
  and without \`X-Request-Id\`, and closes the connection.`,
  },
  tags: [
    tag('OTP', 'Send and verify codes from the backend of an application; list OTP requests as a developer.'),
    tag('Projects', 'Groups of applications.'),
    tag('Applications', 'Applications, each with its own credentials, for live or test traffic.'),
    tag(
      'Webhooks',
      'Endpoints that receive the events of an application, signed as Standard Webhooks specifies.',
    ),
    tag('Users', 'Virtual phone identities: the phone numbers that your applications have verified.'),
    tag('Inbox', 'Messages to virtual numbers and from test applications. They never leave the server.'),
    tag('Logs', 'The event log: every event of every OTP request.'),
    tag('Audit', 'The audit trail: who changed what in your account, and from where.'),
    tag('Analytics', 'Totals and daily counts.'),
    tag(
      'Delivery',
      'How messages are sent: the providers of the operator, and the guard against SMS pumping.',
    ),
    tag('Developer profile', 'Your profile and the limits of your plan.'),
    tag('API tokens', 'Tokens with which programs call this API in your name, limited by scopes.'),
    tag(
      'Login',
      'The built-in identity provider: how to get an ID token, unless the server uses another provider.',
    ),
    tag('Health', 'Liveness and readiness probes for supervisors and load balancers.'),
  ],
  components: {
    securitySchemes: {
      console: {
        type: 'http' as const,
        scheme: 'bearer',
        bearerFormat: 'JWT',
        description: 'ID token of the identity provider; `otpd auth token` prints one.',
      },
      apiToken: {
        type: 'http' as const,
        scheme: 'bearer',
        description:
          'API token of a program; `otpd token create` makes one. Scopes: `otp:read` reads codes, users, logs and analytics; `read` everything but webhook secrets and the inbox; `write` may do all but manage API tokens and the login.',
      },
      clientId: applicationHeader(
        'x-client-id',
        'Client id of an application. Send it with x-client-secret and x-api-key.',
      ),
      clientSecret: applicationHeader(
        'x-client-secret',
        'Client secret of an application. Send it with x-client-id and x-api-key.',
      ),
      apiKey: applicationHeader('x-api-key', 'API key of an application.'),
    },
  },
}

async function buildDocument(api: AnyElysia, version: string): Promise<object> {
  // Loaded on the first request: it takes 2 MB of memory.
  const { swagger } = await import('@elysiajs/swagger')
  const generator = new Elysia()
    .use(api)
    .use(swagger({ path: '/page', specPath: '/document', documentation, excludeStaticFile: false }))
  const response = await generator.handle(new Request('http://localhost/document'))
  // The plugin generated it, so its shape is known.
  return completeDocument((await response.json()) as GeneratedDocument, version)
}
