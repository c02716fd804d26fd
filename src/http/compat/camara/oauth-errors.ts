import type { ErrorCode, ServiceError } from '../../../domain/model/errors.ts'

type OAuthError = { status: number; error: string; description: string }

const invalid = {
  status: 400,
  error: 'invalid_request',
  description: 'A parameter is missing, repeated or has the wrong form.',
}
const invalidClient = {
  status: 401,
  error: 'invalid_client',
  description: 'Expected the client ID of an active application, and its joined secrets (otpd app env).',
}
const serverError = { status: 500, error: 'server_error', description: 'The server failed. Retry.' }

/** Errors of the token endpoint (RFC 6749 §5.2). OAuth has no code for some statuses. */
const errors: Partial<Record<ErrorCode, OAuthError>> = {
  UNAUTHENTICATED: invalidClient,
  FORBIDDEN: invalidClient,
  METHOD_NOT_ALLOWED: { ...invalid, status: 405, description: 'Use POST.' },
  PAYLOAD_TOO_LARGE: { ...invalid, status: 413, description: 'The body is larger than 64 KiB.' },
  UNSUPPORTED_MEDIA_TYPE: {
    ...invalid,
    status: 415,
    description: 'Send the body as application/x-www-form-urlencoded.',
  },
  EXPECTATION_FAILED: { ...invalid, status: 417, description: 'The only expectation is 100-continue.' },
  RATE_LIMITED: { status: 429, error: 'temporarily_unavailable', description: 'Too many requests.' },
  INTERNAL: serverError,
  UNAVAILABLE: { status: 503, error: 'temporarily_unavailable', description: 'Service unavailable. Retry.' },
}

const errorsByReason: Record<string, OAuthError> = {
  GRANT_TYPE: {
    status: 400,
    error: 'unsupported_grant_type',
    description: 'Expected the grant type client_credentials.',
  },
  SCOPE: {
    status: 400,
    error: 'invalid_scope',
    description: 'Expected the scope one-time-password-sms:send-validate, or none.',
  },
}

/** Builds an error in the form of OAuth 2.0. */
export function toOAuthError(error: ServiceError) {
  const found = errorsByReason[error.reason ?? ''] ?? errors[error.code] ?? invalid
  return { status: found.status, body: { error: found.error, error_description: found.description } }
}
