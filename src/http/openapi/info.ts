import { errorCatalogue } from './error-catalogue.ts'

const introduction = `Issues and verifies one-time passcodes for phone numbers.

# Conventions

- **Bodies** are JSON objects of up to 64 KiB, sent as \`application/json\`. Unknown properties are rejected; an
  operation that takes no body ignores what a valid one says. A successful response has \`data\`; a failed one has
  \`error\`, with a stable machine-readable \`code\`.
- **Status codes** tell the client what to do. 400: correct the request. 409: conflict, such as a code that is already
  verified. 410: send a new code. 429: retry after \`Retry-After\` seconds.
- **Lists** are paginated by \`limit\` and \`cursor\`. Pass \`pagination.nextCursor\` as \`cursor\` until it is null. A cursor
  works for its list and its developer, until the server's keys are replaced.
- **Phone numbers** are in E.164 format. After the retention period an opaque pseudonym replaces the number.
- **Times** are RFC 3339 in UTC. **Ids** are opaque. A resource of another developer is reported as not found.
- **Rate limits** are reported in \`RateLimit-Policy\` and \`RateLimit\` on every response to send,
  resend and verify, to calls with a bearer token, and to look-ups with an API key alone.
- **Every response** has \`X-Request-Id\`, which errors repeat as \`traceId\`. A \`traceparent\` header (W3C Trace Context) is
  read: its trace id then is the \`traceId\`, and providers of kind http and webhooks get the header. Later versions may add
  fields to responses: ignore those that you do not know.
- **Request line and headers** are limited to 16 KiB together. Above that, every operation responds 431 without a body
  and without \`X-Request-Id\`, and closes the connection.

# Errors

Every error has \`code\`, \`message\` and \`traceId\`; many have \`reason\` and the values behind the message in \`metadata\`, and
an invalid request has \`details\`. Decide by the status, then by the code, then by the reason. Messages are for people
and may change.

${errorCatalogue()}
`

const tag = (name: string, description: string) => ({ name, description })

const applicationHeader = (name: string, description: string) => ({
  type: 'apiKey' as const,
  in: 'header' as const,
  name,
  description,
})

/** Introduction, tags and security schemes of the document. */
export const documentation = {
  info: {
    title: 'otpd',
    version: '',
    license: { name: 'MIT', identifier: 'MIT' },
    contact: { name: 'The operator of this server' },
    description: introduction,
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
        description:
          'ID token of a developer, as `Authorization: Bearer …`. `otpd auth token` prints one, and `POST /v1/auth/token` issues one, unless the server uses another identity provider (`GET /v1/auth/config`).',
      },
      apiToken: {
        type: 'http' as const,
        scheme: 'bearer',
        description:
          'API token of a program, as `Authorization: Bearer otpd_pat_…`. `otpd token create` makes one, and `POST /v1/tokens` too. Scopes: `otp:read` reads OTP requests, users, logs and analytics; `support` also unlocks and erases phone numbers; `read` reads everything but webhook secrets and the inbox; `write` may do all but manage API tokens and the login.',
      },
      clientId: applicationHeader(
        'x-client-id',
        'Client ID of an application, `ph_live_client_…` or `ph_test_client_…`, as the header x-client-id together with x-client-secret and x-api-key. `otpd app get` shows it, and `GET /v1/applications/{id}`.',
      ),
      clientSecret: applicationHeader(
        'x-client-secret',
        'Client secret of an application, `ph_live_secret_…` or `ph_test_secret_…`, as the header x-client-secret together with x-client-id and x-api-key. Shown once, by `otpd app create` or `POST /v1/applications`; `otpd rotate secret` replaces it.',
      ),
      apiKey: applicationHeader(
        'x-api-key',
        'API key of an application, `ph_live_api_…` or `ph_test_api_…`, as the header x-api-key. Shown once, by `otpd app create` or `POST /v1/applications`; `otpd rotate api` replaces it.',
      ),
    },
  },
}
