import type { ResourceKind } from '../../domain/model/errors.ts'
import { resourcesAt } from '../resources.ts'
import type { GeneratedOperation } from './generated.ts'
import type { ErrorName } from './error-examples.ts'

/** Errors that only these operations can respond with. All others follow from the form of an operation. */
const ownErrors: Readonly<Record<string, readonly ErrorName[]>> = {
  sendOtp: [
    'INVALID_PHONE_NUMBER',
    'TEMPLATE_UNKNOWN',
    'VARIABLES_MISSING',
    'SEND_RATE',
    'PHONE_SEND_BUDGET',
    'DESTINATION_BLOCKED',
    'CHALLENGE_REQUIRED',
    'CHALLENGE_FAILED',
    'NO_ROUTE',
    'PROVIDERS_REFUSED',
    'DELIVERY_FAILED',
  ],
  deliverCode: [
    'INVALID_PHONE_NUMBER',
    'SEND_RATE',
    'PHONE_SEND_BUDGET',
    'DESTINATION_BLOCKED',
    'NO_ROUTE',
    'PROVIDERS_REFUSED',
    'DELIVERY_FAILED',
  ],
  reportDeliveredCode: ['OUTCOME_ALREADY_VERIFIED'],
  resendOtp: [
    'INVALID_PHONE_NUMBER',
    'OTP_REQUEST_NOT_FOUND',
    'RESENDS_EXHAUSTED',
    'ALREADY_VERIFIED',
    'OTP_EXPIRED',
    'OTP_CANCELED',
    'NEVER_DELIVERED',
    'ATTEMPTS_EXHAUSTED',
    'SEND_RATE',
    'PHONE_SEND_BUDGET',
    'RESEND_TOO_SOON',
    'DESTINATION_BLOCKED',
    'CHALLENGE_REQUIRED',
    'CHALLENGE_FAILED',
    'NO_ROUTE',
    'PROVIDERS_REFUSED',
    'DELIVERY_FAILED',
  ],
  verifyOtp: [
    'INVALID_PHONE_NUMBER',
    'INVALID_CODE',
    'LAST_INVALID_CODE',
    'INVALID_PAYMENT',
    'OTP_REQUEST_NOT_FOUND',
    'ALREADY_VERIFIED',
    'OTP_EXPIRED',
    'OTP_CANCELED',
    'NEVER_DELIVERED',
    'ATTEMPTS_EXHAUSTED',
    'VERIFY_RATE',
    'PHONE_CHECK_BUDGET',
  ],
  createSession: ['INVALID_PHONE_NUMBER', 'INVALID_RETURN_URL', 'PAGE_DISABLED', 'SESSION_RATE'],
  proveOtp: [
    'INVALID_PHONE_NUMBER',
    'PROOF_NOT_CONFIGURED',
    'PROOF_MALFORMED',
    'PROOF_SIGNATURE',
    'PROOF_FOREIGN',
    'PROOF_EXPIRED',
    'PROOF_FROM_FUTURE',
    'PROOF_NONCE',
    'PROOF_PHONE',
    'PROOF_REUSED',
    'VERIFY_RATE',
    'PROOF_KEYS_UNAVAILABLE',
  ],
  cancelOtp: [
    'INVALID_PHONE_NUMBER',
    'OTP_REQUEST_NOT_FOUND',
    'ALREADY_VERIFIED',
    'OTP_EXPIRED',
    'OTP_CANCELED',
    'NEVER_DELIVERED',
    'ATTEMPTS_EXHAUSTED',
  ],
  listOtpRequests: ['INVALID_PHONE_NUMBER'],
  streamLogs: ['STREAM_LIMIT'],
  putTemplate: ['TEMPLATE_LIMIT_REACHED', 'INVALID_TEMPLATE'],
  createProject: ['PROJECT_LIMIT'],
  deleteProject: ['PROJECT_NOT_EMPTY'],
  createApplication: ['APPLICATION_LIMIT', 'PROJECT_NOT_FOUND', 'IDEMPOTENCY_RESULT_NOT_STORED'],
  getWebhookSecret: ['WEBHOOK_SECRET_UNREADABLE'],
  createWebhook: ['APPLICATION_NOT_FOUND', 'ENDPOINT_LIMIT_REACHED'],
  testWebhook: ['WEBHOOK_TESTS'],
  redeliverWebhook: ['WEBHOOK_REDELIVERIES'],
  recoverWebhook: ['WEBHOOK_REDELIVERIES'],
  createGuardRule: ['APPLICATION_NOT_FOUND', 'GUARD_RULE_LIMIT_REACHED'],
  createApiToken: ['TOKEN_NAME_TAKEN', 'TOKEN_LIMIT_REACHED', 'IDEMPOTENCY_RESULT_NOT_STORED'],
  listUsers: ['INVALID_PHONE_NUMBER'],
  getUser: ['LOOKUP_RATE'],
  eraseUser: ['INVALID_ERASURE', 'ERASURE_IN_PROGRESS', 'PHONE_NOT_FOUND'],
  unlockUser: ['PHONE_NOT_FOUND'],
  listOtpRequestEvents: ['LOOKUP_RATE'],
  changePassword: ['ROUTE_NOT_FOUND', 'PASSWORD_NOT_FOUND', 'LOGIN_ATTEMPTS', 'LOGIN_QUEUE_FULL'],
  proposeTotp: ['ROUTE_NOT_FOUND', 'PASSWORD_NOT_FOUND', 'TOTP_ENABLED'],
  confirmTotp: ['ROUTE_NOT_FOUND', 'TOTP_NOT_PROPOSED'],
  disableTotp: [
    'ROUTE_NOT_FOUND',
    'PASSWORD_NOT_FOUND',
    'TOTP_NOT_ENABLED',
    'LOGIN_ATTEMPTS',
    'LOGIN_QUEUE_FULL',
  ],
  discoverProvider: ['ROUTE_NOT_FOUND'],
  getSigningKeys: ['ROUTE_NOT_FOUND'],
  requestTokens: ['ROUTE_NOT_FOUND'],
  revokeToken: ['ROUTE_NOT_FOUND'],
}

/** These developers need not have enabled the second factor that the server requires. */
const beforeTotp = new Set([
  'getProfile',
  'updateProfile',
  'changePassword',
  'proposeTotp',
  'confirmTotp',
  'disableTotp',
])

const notFoundErrors = {
  project: 'PROJECT_NOT_FOUND',
  application: 'APPLICATION_NOT_FOUND',
  otpRequest: 'OTP_REQUEST_NOT_FOUND',
  session: 'SESSION_NOT_FOUND',
  relayedMessage: 'RELAYED_MESSAGE_NOT_FOUND',
  webhookEndpoint: 'WEBHOOK_ENDPOINT_NOT_FOUND',
  webhookDelivery: 'WEBHOOK_DELIVERY_NOT_FOUND',
  apiToken: 'API_TOKEN_NOT_FOUND',
  guardRule: 'GUARD_RULE_NOT_FOUND',
  template: 'TEMPLATE_NOT_FOUND',
  user: 'USER_NOT_FOUND',
  callback: 'ROUTE_NOT_FOUND',
} as const satisfies Record<ResourceKind, ErrorName>

/** Lists the errors that an operation can respond with. Probes of liveness have their own 503. */
export function operationErrors(
  operation: GeneratedOperation,
  method: string,
  path: string,
  security: ReadonlyArray<Record<string, readonly string[]>>,
): ErrorName[] {
  const { operationId, parameters = [], requestBody } = operation
  const has = (name: string) => parameters.some((parameter) => parameter.name === name)
  const isForDevelopers = security.some((scheme) => 'console' in scheme)
  const isForApplications = security.some((scheme) => 'apiKey' in scheme)
  const needsLogin = isForDevelopers && !security.some((scheme) => 'apiToken' in scheme)
  const takesAnyBody = method !== 'get' && security.length > 0
  const hasJsonBody = requestBody?.content['application/json'] !== undefined
  const names: Array<ErrorName | false> = [
    'REPEATED_PARAMETER',
    hasJsonBody && 'INVALID_BODY',
    // Also of a body that the operation does not take.
    takesAnyBody && 'MALFORMED_JSON',
    has('limit') && 'INVALID_QUERY',
    has('cursor') && 'CURSOR_INVALID',
    isForApplications && 'MISSING_CREDENTIAL',
    isForApplications && 'WRONG_CREDENTIALS',
    ...(isForDevelopers
      ? (['TOKEN_MISSING', 'TOKEN_INVALID', 'TOKEN_EXPIRED', 'TOKEN_REVOKED'] as const)
      : []),
    isForApplications && 'APPLICATION_DISABLED',
    (isForDevelopers || isForApplications) && 'ACCOUNT_NOT_ALLOWED',
    isForDevelopers && (needsLogin ? 'LOGIN_REQUIRED' : 'SCOPE_MISSING'),
    isForDevelopers && !beforeTotp.has(operationId) && 'TOTP_REQUIRED',
    has('appId') && 'APPLICATION_NOT_FOUND',
    has('projectId') && 'PROJECT_NOT_FOUND',
    ...resourcesAt(path).map((kind) => notFoundErrors[kind]),
    'PAYLOAD_TOO_LARGE',
    takesAnyBody && 'UNSUPPORTED_MEDIA_TYPE',
    ...(has('Idempotency-Key')
      ? (['IDEMPOTENCY_KEY_INVALID', 'IDEMPOTENCY_IN_PROGRESS', 'IDEMPOTENCY_KEY_REUSED'] as const)
      : []),
    isForDevelopers && 'CONSOLE_RATE',
    'INTERNAL',
    'SHUTTING_DOWN',
    isForDevelopers && 'IDENTITY_PROVIDER_UNAVAILABLE',
    ...(ownErrors[operationId] ?? []),
  ]
  return [...new Set(names.filter((name) => name !== false))]
}
