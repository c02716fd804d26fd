import { type ErrorResponse, internalMessage } from './errors.ts'

type ErrorBody = ErrorResponse['body']['error']

/**
 * Returns an example of the error that an operation responds with for a status. Examples tell readers more than the
 * schema that all errors share.
 *
 * @returns undefined for a status that is no error
 */
export function errorExample(status: string, operationId: string): ErrorResponse['body'] | undefined {
  const listExample = operationId.startsWith('list') ? listExamples[status] : undefined
  const example = operationExamples[`${operationId} ${status}`] ?? listExample ?? statusExamples[status]
  return example && { error: { ...example, traceId: 'req_01kaaaaaaaeekr1q2v3w4x5y6z' } }
}

const alreadyVerified = {
  code: 'ALREADY_VERIFIED',
  message: 'This code was already verified. There is nothing left to do.',
  metadata: { verifiedAt: '2026-11-20T12:01:30.000Z' },
} as const

const wrongCredentials = {
  code: 'UNAUTHENTICATED',
  message:
    'The application credentials are missing or wrong. Check the x-client-id, x-client-secret and x-api-key headers.',
} as const

const applicationDisabled = {
  code: 'FORBIDDEN',
  message: 'This application is disabled. Enable it, then retry.',
  reason: 'APPLICATION_DISABLED',
} as const

const planLimitReached = (resource: string, limit: number) =>
  ({
    code: 'PLAN_LIMIT_REACHED',
    message: `Your plan allows at most ${limit} ${resource}. Delete one, or ask for a larger plan.`,
    metadata: { resource, limit, plan: 'free' },
  }) as const

const operationExamples: Record<string, Omit<ErrorBody, 'traceId'>> = {
  'sendOtp 400': {
    code: 'INVALID_PHONE_NUMBER',
    message: 'The phone number is invalid. Write it in E.164 format, with + and the country code.',
  },
  'sendOtp 401': wrongCredentials,
  'sendOtp 403': applicationDisabled,
  'deliverCode 401': wrongCredentials,
  'deliverCode 403': applicationDisabled,
  'resendOtp 401': wrongCredentials,
  'resendOtp 403': applicationDisabled,
  'resendOtp 409': {
    code: 'CONFLICT',
    message: 'This code was already resent 3 times, the maximum. Send a new code.',
    reason: 'RESENDS_EXHAUSTED',
  },
  'verifyOtp 400': {
    code: 'INVALID_CODE',
    message: 'The code is wrong. Check it and enter it again.',
    metadata: { attemptsRemaining: 4 },
  },
  'verifyOtp 401': wrongCredentials,
  'verifyOtp 403': applicationDisabled,
  'verifyOtp 409': alreadyVerified,
  'cancelOtp 401': wrongCredentials,
  'cancelOtp 403': applicationDisabled,
  'cancelOtp 409': alreadyVerified,
  'createProject 403': planLimitReached('projects', 10),
  'createApplication 403': planLimitReached('applications', 5),
  'createApiToken 403': {
    code: 'FORBIDDEN',
    message: 'API tokens may not do this. Log in, and use an ID token.',
    reason: 'SCOPE_MISSING',
    metadata: { scope: null },
  },
  'createApiToken 409': {
    code: 'CONFLICT',
    message: 'You already have an API token with this name. Revoke it, or choose another name.',
    reason: 'TOKEN_NAME_TAKEN',
  },
  'deleteProject 409': {
    code: 'CONFLICT',
    message: 'This project still has applications. Delete them first.',
    reason: 'PROJECT_NOT_EMPTY',
  },
}

const listExamples: Record<string, Omit<ErrorBody, 'traceId'>> = {
  400: {
    code: 'INVALID_ARGUMENT',
    message: 'Invalid request. limit: Expected a whole number from 1 to 200.',
    details: [
      { in: 'query', path: 'limit', code: 'INVALID', message: 'Expected a whole number from 1 to 200.' },
    ],
  },
}

/** Used when the operation has no example of its own. */
const statusExamples: Record<string, Omit<ErrorBody, 'traceId'>> = {
  400: {
    code: 'INVALID_ARGUMENT',
    message: 'Invalid request. name: Required, but missing.',
    details: [{ in: 'body', path: 'name', code: 'REQUIRED', message: 'Required, but missing.' }],
  },
  401: {
    code: 'UNAUTHENTICATED',
    message: 'An ID token or an API token is required.',
    reason: 'TOKEN_MISSING',
  },
  403: {
    code: 'FORBIDDEN',
    message: 'This account is not allowed to use the service. Ask the operator for access.',
    reason: 'ACCOUNT_NOT_ALLOWED',
  },
  404: {
    code: 'NOT_FOUND',
    message: 'Resource not found. Check its id and that it belongs to this account or application.',
  },
  409: {
    code: 'CONFLICT',
    message: 'The first request with this idempotency key is still in progress. Retry in a second.',
    reason: 'IDEMPOTENCY_IN_PROGRESS',
  },
  410: { code: 'OTP_EXPIRED', message: 'This code has expired. Send a new one.' },
  413: { code: 'PAYLOAD_TOO_LARGE', message: 'The body is larger than 64 KiB. Send a smaller one.' },
  415: {
    code: 'UNSUPPORTED_MEDIA_TYPE',
    message: 'Unsupported media type. Send the body as application/json, in UTF-8.',
  },
  422: {
    code: 'IDEMPOTENCY_KEY_REUSED',
    message: 'This idempotency key was already used with a different body. Use a new key.',
  },
  429: {
    code: 'RATE_LIMITED',
    message: 'Too many requests: the limit is 5 per 60 seconds. Wait, then retry.',
    reason: 'APP_RATE',
    metadata: { policy: 'otp-send', limit: 5, windowSeconds: 60 },
  },
  500: { code: 'INTERNAL', message: internalMessage },
  502: {
    code: 'DELIVERY_FAILED',
    message:
      'The code could not be delivered to this phone number. Check the number, or try another channel.',
    reason: 'NO_ROUTE',
  },
  503: { code: 'UNAVAILABLE', message: 'The server is shutting down. Retry in a second.' },
}
