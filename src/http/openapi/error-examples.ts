import { internalMessage } from '../errors.ts'
import { example } from './error-example.ts'
import { pageExamples } from './page-examples.ts'
import { templateExamples } from './template-examples.ts'
import { proofExamples } from './proof-examples.ts'
import { rateLimitExamples } from './rate-limit-examples.ts'

/**
 * One example of every error of the API: the reference of the document, from which `operation-errors.ts` chooses. The
 * name is the reason, or else the code; errors that share both have names of their own.
 */
export const errorExamples = {
  INVALID_BODY: example('INVALID_ARGUMENT', 'Invalid request. name: Required, but missing.', {
    details: [{ in: 'body', path: 'name', code: 'REQUIRED', message: 'Required, but missing.' }],
  }),
  INVALID_QUERY: example(
    'INVALID_ARGUMENT',
    'Invalid request. limit: Expected a whole number from 1 to 200.',
    {
      details: [
        { in: 'query', path: 'limit', code: 'INVALID', message: 'Expected a whole number from 1 to 200.' },
      ],
    },
  ),
  REPEATED_PARAMETER: example(
    'INVALID_ARGUMENT',
    'Invalid request. limit: The query parameter is repeated. Send it once.',
    {
      details: [
        {
          in: 'query',
          path: 'limit',
          code: 'REPEATED',
          message: 'The query parameter is repeated. Send it once.',
        },
      ],
    },
  ),
  CURSOR_INVALID: example(
    'INVALID_ARGUMENT',
    'The cursor is invalid for this list. Use the nextCursor of the previous page, or omit it.',
    { reason: 'CURSOR_INVALID' },
  ),
  IDEMPOTENCY_KEY_INVALID: example(
    'INVALID_ARGUMENT',
    'Invalid request. idempotency-key: Expected 1 to 255 visible ASCII characters, bare or as a quoted string.',
    {
      reason: 'IDEMPOTENCY_KEY_INVALID',
      details: [
        {
          in: 'header',
          path: 'idempotency-key',
          code: 'INVALID',
          message: 'Expected 1 to 255 visible ASCII characters, bare or as a quoted string.',
        },
      ],
    },
  ),
  MALFORMED_JSON: example('MALFORMED_JSON', 'The body is not valid JSON.'),
  INVALID_PHONE_NUMBER: example(
    'INVALID_PHONE_NUMBER',
    'The phone number is invalid. Write it in E.164 format, with + and the country code.',
    {
      details: [
        {
          in: 'body',
          path: 'phone',
          code: 'INVALID_PHONE_NUMBER',
          message: 'Expected a number with + and country code (E.164), such as +14155550100.',
        },
      ],
    },
  ),
  INVALID_CODE: example('INVALID_CODE', 'The code is wrong. Check it and enter it again.', {
    metadata: { attemptsRemaining: 4 },
  }),
  LAST_INVALID_CODE: example('INVALID_CODE', 'The code is wrong. It was the last attempt: send a new code.', {
    metadata: { attemptsRemaining: 0 },
  }),
  ...proofExamples,
  TOKEN_MISSING: example('UNAUTHENTICATED', 'An ID token or an API token is required, as a bearer token.', {
    reason: 'TOKEN_MISSING',
  }),
  TOKEN_INVALID: example('UNAUTHENTICATED', 'The ID token is invalid. Log in again.', {
    reason: 'TOKEN_INVALID',
  }),
  TOKEN_EXPIRED: example('UNAUTHENTICATED', 'The ID token has expired. Log in again, or refresh it.', {
    reason: 'TOKEN_EXPIRED',
  }),
  TOKEN_REVOKED: example('UNAUTHENTICATED', 'The session of this ID token has ended. Log in again.', {
    reason: 'TOKEN_REVOKED',
  }),
  MISSING_CREDENTIAL: example(
    'UNAUTHENTICATED',
    'The header x-client-id is missing or empty. Send x-client-id, x-client-secret and x-api-key together.',
    { reason: 'MISSING_CREDENTIAL', metadata: { header: 'x-client-id' } },
  ),
  WRONG_CREDENTIALS: example(
    'UNAUTHENTICATED',
    'The application credentials are wrong. Check that x-client-id, x-client-secret and x-api-key are current, and of one application.',
  ),
  APPLICATION_DISABLED: example('FORBIDDEN', 'This application is disabled. Enable it, then retry.', {
    reason: 'APPLICATION_DISABLED',
  }),
  ACCOUNT_NOT_ALLOWED: example(
    'FORBIDDEN',
    'This account is not allowed to use the service. Ask the operator for access.',
    { reason: 'ACCOUNT_NOT_ALLOWED' },
  ),
  TOTP_REQUIRED: example(
    'FORBIDDEN',
    'This server requires a second factor. Enable TOTP for your account first.',
    { reason: 'TOTP_REQUIRED' },
  ),
  SCOPE_MISSING: example('FORBIDDEN', 'This API token lacks the scope write. Use a token that has it.', {
    reason: 'SCOPE_MISSING',
    metadata: { scope: 'write' },
  }),
  LOGIN_REQUIRED: example('FORBIDDEN', 'API tokens may not do this. Log in, and use an ID token.', {
    reason: 'SCOPE_MISSING',
    metadata: { scope: null },
  }),
  PROJECT_LIMIT: example(
    'PLAN_LIMIT_REACHED',
    'Your plan allows at most 10 projects. Delete one, or ask for a larger plan.',
    { metadata: { resource: 'projects', limit: 10, plan: 'free' } },
  ),
  APPLICATION_LIMIT: example(
    'PLAN_LIMIT_REACHED',
    'Your plan allows at most 5 applications. Delete one, or ask for a larger plan.',
    { metadata: { resource: 'applications', limit: 5, plan: 'free' } },
  ),
  ENDPOINT_LIMIT_REACHED: example(
    'ENDPOINT_LIMIT_REACHED',
    'An application can have at most 20 webhook endpoints. Delete one first.',
    { metadata: { limit: 20 } },
  ),
  ...pageExamples,
  ...templateExamples,
  DESTINATION_BLOCKED: example(
    'DESTINATION_BLOCKED',
    'Codes to this destination are blocked. Ask the operator if this is a mistake.',
    { metadata: { requestId: 'otp_01kaaaaaaaeekr1q2v3w4x5y6z' } },
  ),
  CHALLENGE_REQUIRED: example(
    'CHALLENGE_REQUIRED',
    'Let the user pass the challenge, and send again with its token as `challenge`.',
    { metadata: { kind: 'turnstile', siteKey: '0x4AAAAAAADnPIDROrmt1Wwj' } },
  ),
  CHALLENGE_FAILED: example(
    'CHALLENGE_REQUIRED',
    'This challenge was not passed, is too old or was used before. Let the user pass the new one.',
    {
      reason: 'CHALLENGE_FAILED',
      metadata: {
        kind: 'altcha',
        algorithm: 'SHA-256',
        challenge: '6d1c4ed8e8eb1c6fa9df3d39af2f1a1f5e35b4ea9c9c3d8fbd2c0f3a94b4d6e1',
        maxnumber: 200000,
        salt: '5f2b1c0a9e8d7c6b5a493827?expires=1795608600&',
        signature: '0f9b6a7c5d4e3f2a1b0c9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a3b2c1d0e9f8a',
      },
    },
  ),
  PROJECT_NOT_FOUND: example('NOT_FOUND', 'No project with this id.'),
  APPLICATION_NOT_FOUND: example('NOT_FOUND', 'No application with this id.'),
  OTP_REQUEST_NOT_FOUND: example('NOT_FOUND', 'No OTP request with this id.'),
  RELAYED_MESSAGE_NOT_FOUND: example('NOT_FOUND', 'No message of the last 24 hours with this id.'),
  WEBHOOK_ENDPOINT_NOT_FOUND: example('NOT_FOUND', 'No webhook endpoint with this id.'),
  WEBHOOK_DELIVERY_NOT_FOUND: example('NOT_FOUND', 'No webhook delivery with this id.'),
  API_TOKEN_NOT_FOUND: example('NOT_FOUND', 'No API token with this id.'),
  GUARD_RULE_NOT_FOUND: example('NOT_FOUND', 'No guard rule with this id.'),
  USER_NOT_FOUND: example('NOT_FOUND', 'No user with this phone number.'),
  PHONE_NOT_FOUND: example('NOT_FOUND', 'Nothing is kept about this phone number.'),
  PASSWORD_NOT_FOUND: example(
    'NOT_FOUND',
    'This account has no password here: it belongs to another identity provider.',
  ),
  ROUTE_NOT_FOUND: example(
    'NOT_FOUND',
    'There is no such route: this server uses another identity provider.',
    { reason: 'ROUTE_NOT_FOUND' },
  ),
  METHOD_NOT_ALLOWED: example('METHOD_NOT_ALLOWED', 'Method not allowed for this route. Use POST.', {
    metadata: { allowed: 'POST' },
  }),
  PROJECT_NOT_EMPTY: example('CONFLICT', 'This project still has applications. Delete them first.', {
    reason: 'PROJECT_NOT_EMPTY',
  }),
  RESENDS_EXHAUSTED: example(
    'CONFLICT',
    'This code was already resent 3 times, the maximum. Send a new code.',
    { reason: 'RESENDS_EXHAUSTED', metadata: { resendsMax: 3 } },
  ),
  IDEMPOTENCY_IN_PROGRESS: example(
    'CONFLICT',
    'The first request with this idempotency key is still in progress. Retry in a second.',
    { reason: 'IDEMPOTENCY_IN_PROGRESS' },
  ),
  INVALID_ERASURE: example('INVALID_ARGUMENT', 'Invalid request. erase: Required, but missing.', {
    details: [{ in: 'query', path: 'erase', code: 'REQUIRED', message: 'Required, but missing.' }],
  }),
  ERASURE_IN_PROGRESS: example(
    'CONFLICT',
    'Another erasure in this account is still running. Try again in a moment.',
    { reason: 'ERASURE_IN_PROGRESS' },
  ),
  IDEMPOTENCY_RESULT_NOT_STORED: example(
    'CONFLICT',
    'The first request with this idempotency key succeeded. Its response held credentials, so it was not stored.',
    { reason: 'IDEMPOTENCY_RESULT_NOT_STORED' },
  ),
  WEBHOOK_SECRET_UNREADABLE: example(
    'CONFLICT',
    'The stored webhook secret cannot be decrypted. Rotate it.',
    { reason: 'WEBHOOK_SECRET_UNREADABLE' },
  ),
  TOKEN_NAME_TAKEN: example(
    'CONFLICT',
    'You already have an API token with this name. Revoke it, or choose another name.',
    { reason: 'TOKEN_NAME_TAKEN' },
  ),
  TOKEN_LIMIT_REACHED: example('CONFLICT', 'You already have 100 API tokens, the maximum. Revoke one.', {
    reason: 'TOKEN_LIMIT_REACHED',
    metadata: { limit: 100 },
  }),
  GUARD_RULE_LIMIT_REACHED: example(
    'CONFLICT',
    'You already have 1000 guard rules, the maximum. Delete one.',
    { reason: 'GUARD_RULE_LIMIT_REACHED', metadata: { limit: 1000 } },
  ),
  TOTP_ENABLED: example('CONFLICT', 'TOTP is enabled already. Disable it first to set it up again.', {
    reason: 'TOTP_ENABLED',
  }),
  TOTP_NOT_ENABLED: example('CONFLICT', 'TOTP is not enabled for this account.', {
    reason: 'TOTP_NOT_ENABLED',
  }),
  TOTP_NOT_PROPOSED: example('CONFLICT', 'There is no secret to confirm. Set TOTP up first.', {
    reason: 'TOTP_NOT_PROPOSED',
  }),
  ALREADY_VERIFIED: example(
    'ALREADY_VERIFIED',
    'This code was already verified. There is nothing left to do.',
    { metadata: { verifiedAt: '2026-11-20T12:01:30.000Z' } },
  ),
  OUTCOME_ALREADY_VERIFIED: example(
    'ALREADY_VERIFIED',
    'The code of this message was reported as verified before. There is nothing left to do.',
  ),
  OTP_EXPIRED: example('OTP_EXPIRED', 'This code has expired. Send a new one.', {
    metadata: { expiresAt: '2026-11-20T12:05:00.000Z' },
  }),
  OTP_CANCELED: example('OTP_CANCELED', 'This code was canceled. Send a new one.'),
  NEVER_DELIVERED: example('OTP_CANCELED', 'This code was never delivered. Send a new one.', {
    reason: 'DELIVERY_FAILED',
  }),
  ATTEMPTS_EXHAUSTED: example('ATTEMPTS_EXHAUSTED', 'Too many wrong codes were entered. Send a new code.'),
  PAYLOAD_TOO_LARGE: example('PAYLOAD_TOO_LARGE', 'The body is larger than 64 KiB. Send a smaller one.', {
    metadata: { bytesMax: 65536 },
  }),
  UNSUPPORTED_MEDIA_TYPE: example(
    'UNSUPPORTED_MEDIA_TYPE',
    'Unsupported media type. Send the body as application/json, in UTF-8.',
  ),
  EXPECTATION_FAILED: example(
    'EXPECTATION_FAILED',
    'The only expectation that this server meets is 100-continue. Send the request without the header expect.',
  ),
  IDEMPOTENCY_KEY_REUSED: example(
    'IDEMPOTENCY_KEY_REUSED',
    'This idempotency key was already used with a different body. Use a new key.',
  ),
  ...rateLimitExamples,
  INTERNAL: example('INTERNAL', internalMessage),
  NO_ROUTE: example(
    'DELIVERY_FAILED',
    'No route for whatsapp leads to this phone number in GB. Choose another channel, or ask the operator to add a route.',
    { reason: 'NO_ROUTE', metadata: { requestId: 'otp_01kaaaaaaaeekr1q2v3w4x5y6z' } },
  ),
  PROVIDERS_REFUSED: example(
    'DELIVERY_FAILED',
    'Every provider refused the message. Try another channel, or again later.',
    { reason: 'PROVIDERS_REFUSED', metadata: { requestId: 'otp_01kaaaaaaaeekr1q2v3w4x5y6z' } },
  ),
  DELIVERY_FAILED: example(
    'DELIVERY_FAILED',
    'The code could not be delivered to this phone number. Check the number, or try another channel.',
    { reason: 'INVALID_NUMBER', metadata: { requestId: 'otp_01kaaaaaaaeekr1q2v3w4x5y6z' } },
  ),
  SHUTTING_DOWN: example('UNAVAILABLE', 'The server is shutting down. Retry in a second.'),
  LOGIN_QUEUE_FULL: example('UNAVAILABLE', 'Too many logins at once. Try again shortly.'),
  IDENTITY_PROVIDER_UNAVAILABLE: example(
    'UNAVAILABLE',
    'The identity provider cannot be reached. Try again shortly.',
    { reason: 'IDENTITY_PROVIDER_UNAVAILABLE' },
  ),
}

export type ErrorName = keyof typeof errorExamples
