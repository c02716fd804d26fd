import { Elysia, type AnyElysia } from 'elysia'
import bundlePath from 'swagger-ui-dist/swagger-ui-bundle.js' with { type: 'file' }
import stylePath from 'swagger-ui-dist/swagger-ui.css' with { type: 'file' }
import { completeDocument, type GeneratedDocument } from './openapi.ts'

/**
 * The OpenAPI document and the page that shows it. Script and style are in the binary: no page of otpd loads anything
 * from another host.
 *
 * @param api every route that the document describes
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

/** Swagger UI sets inline styles. */
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

- **Bodies** are JSON objects of up to 64 KiB, as \`application/json\`; properties that an operation does not name are
  refused. What succeeds answers \`data\`; what fails answers \`error\`, with a \`code\` from a closed list.
- **Statuses** decide what a client does: 400 retype, 410 ask for a new code, 429 wait, 409 it is already done. A 429
  has \`Retry-After\`.
- **Lists** take \`limit\` and \`cursor\`; \`pagination.nextCursor\` leads on and is null on the last page.
- **Phones** are E.164. When the operator keeps a number no longer, an opaque pseudonym stands in its place.
- **Times** are RFC 3339 in UTC. **Ids** are opaque; what belongs to somebody else is answered as if it were not there.
- **Rates** are told by \`RateLimit-Policy\` and \`RateLimit\` on every answer to send, resend and verify.
- **Every answer** has \`X-Request-Id\`, which an error repeats as \`traceId\`. Expect fields that are not here yet.
- **Request line and headers** together have up to 16 KiB. Above that, whatever the operation, the answer is a bare
  431 without \`X-Request-Id\` and without a body, and the connection ends.`,
  },
  tags: [
    tag('OTP', 'Send and verify codes, for the backend of an application; look at them, for developers.'),
    tag('Projects', 'Hold applications together.'),
    tag('Applications', 'Each with credentials of its own, for live traffic or for tests.'),
    tag('Webhooks', 'Where an application is told of its events, signed as Standard Webhooks says.'),
    tag('Users', 'Virtual phone identities: the phones that your applications have verified.'),
    tag('Inbox', 'Messages to virtual numbers and of test applications, which never leave the service.'),
    tag('Logs', 'Every event of every OTP request.'),
    tag('Audit', 'Who changed what in your account, and from where.'),
    tag('Analytics', 'Counts, over all and by day.'),
    tag('Developer profile', 'Who you are here, and what your plan allows.'),
    tag('Login', 'How to get an ID token where no other identity provider is in charge.'),
    tag('Health', 'For supervisors and load balancers.'),
  ],
  components: {
    securitySchemes: {
      console: {
        type: 'http' as const,
        scheme: 'bearer',
        bearerFormat: 'JWT',
        description: 'An ID token of the identity provider, as `otpd auth token` prints it.',
      },
      clientId: applicationHeader('x-client-id', 'Together with x-client-secret and x-api-key.'),
      clientSecret: applicationHeader('x-client-secret', 'Together with x-client-id and x-api-key.'),
      apiKey: applicationHeader('x-api-key', 'Of an application.'),
    },
  },
}

async function buildDocument(api: AnyElysia, version: string): Promise<object> {
  // 2 MB that a server needs only once it is asked.
  const { swagger } = await import('@elysiajs/swagger')
  const generator = new Elysia()
    .use(api)
    .use(swagger({ path: '/page', specPath: '/document', documentation, excludeStaticFile: false }))
  const response = await generator.handle(new Request('http://localhost/document'))
  // The plugin's own output.
  return completeDocument((await response.json()) as GeneratedDocument, version)
}
