import type { ErrorCode } from '../../../src/domain/model/errors.ts'

/** Every `reason` of an error, with the code that it comes with. A test compares the names with those in the sources. */
export const reasons: Record<string, { code: ErrorCode; meaning: string }> = {
  CURSOR_INVALID: {
    code: 'INVALID_ARGUMENT',
    meaning: 'the cursor is not of this list, or from before the data keys were replaced: begin again',
  },
  IDEMPOTENCY_KEY_INVALID: {
    code: 'INVALID_ARGUMENT',
    meaning: 'the key is empty, too long or has spaces',
  },
  MISSING_CREDENTIAL: {
    code: 'UNAUTHENTICATED',
    meaning: 'a header of the application is missing or empty; `metadata.header` names the first',
  },
  TOKEN_MISSING: { code: 'UNAUTHENTICATED', meaning: 'there is no bearer token' },
  TOKEN_INVALID: { code: 'UNAUTHENTICATED', meaning: 'the token is malformed, forged or of another issuer' },
  TOKEN_EXPIRED: { code: 'UNAUTHENTICATED', meaning: 'the token has expired: log in again, or refresh it' },
  TOKEN_REVOKED: { code: 'UNAUTHENTICATED', meaning: 'its session has ended, or the API token was revoked' },
  SIGNATURE_INVALID: {
    code: 'UNAUTHENTICATED',
    meaning: "a callback without the provider's valid signature",
  },
  APPLICATION_DISABLED: { code: 'FORBIDDEN', meaning: 'the application is disabled' },
  PAGE_DISABLED: { code: 'FORBIDDEN', meaning: 'the ready page of the application is off: turn it on' },
  ACCOUNT_NOT_ALLOWED: { code: 'FORBIDDEN', meaning: 'the account does not exist here, or is disabled' },
  SCOPE_MISSING: {
    code: 'FORBIDDEN',
    meaning: 'the API token has too small a scope; `metadata.scope` names it',
  },
  TOTP_REQUIRED: { code: 'FORBIDDEN', meaning: 'the operator requires a second factor: enable it first' },
  ROUTE_NOT_FOUND: { code: 'NOT_FOUND', meaning: 'there is no such path' },
  IDEMPOTENCY_IN_PROGRESS: {
    code: 'CONFLICT',
    meaning: 'the first call with this key has not ended: retry in a second',
  },
  ERASURE_IN_PROGRESS: {
    code: 'CONFLICT',
    meaning: 'another erasure in the account is still running: try again in a moment',
  },
  IDEMPOTENCY_RESULT_NOT_STORED: {
    code: 'CONFLICT',
    meaning: 'the first call succeeded, but its answer holds secrets and was not kept',
  },
  RESENDS_EXHAUSTED: { code: 'CONFLICT', meaning: 'three resends were made: send a new code' },
  SESSION_CLOSED: { code: 'CONFLICT', meaning: 'the session has ended; the ready page alone gets this' },
  PROJECT_NOT_EMPTY: { code: 'CONFLICT', meaning: 'the project still has applications' },
  TOKEN_NAME_TAKEN: { code: 'CONFLICT', meaning: 'you have an API token of this name' },
  GUARD_RULE_LIMIT_REACHED: { code: 'CONFLICT', meaning: 'you have 1,000 guard rules' },
  TEMPLATE_LIMIT_REACHED: { code: 'CONFLICT', meaning: 'the application has 20 templates' },
  TOKEN_LIMIT_REACHED: { code: 'CONFLICT', meaning: 'you have 100 API tokens' },
  EMAIL_TAKEN: { code: 'CONFLICT', meaning: 'an account with this e-mail address exists' },
  TOTP_ENABLED: { code: 'CONFLICT', meaning: 'TOTP is enabled already' },
  TOTP_NOT_ENABLED: { code: 'CONFLICT', meaning: 'TOTP is not enabled' },
  TOTP_NOT_PROPOSED: { code: 'CONFLICT', meaning: 'set TOTP up before you confirm it' },
  WEBHOOK_SECRET_UNREADABLE: {
    code: 'CONFLICT',
    meaning: 'the stored webhook secret cannot be decrypted: rotate it',
  },
  CHALLENGE_FAILED: {
    code: 'CHALLENGE_REQUIRED',
    meaning: 'the token is wrong, too old, was used before or could not be checked: show the new challenge',
  },
  PROOF_NOT_CONFIGURED: {
    code: 'PROOF_REJECTED',
    meaning: 'the operator accepts no such proofs: send a code',
  },
  PROOF_MALFORMED: {
    code: 'PROOF_REJECTED',
    meaning: 'it is no such token, has no phone number, or lives longer than 12 hours',
  },
  PROOF_SIGNATURE: { code: 'PROOF_REJECTED', meaning: 'it is forged, or its key was withdrawn' },
  PROOF_FOREIGN: {
    code: 'PROOF_REJECTED',
    meaning: 'it is of a Firebase project that the server does not accept',
  },
  PROOF_EXPIRED: { code: 'PROOF_REJECTED', meaning: 'it has expired, at `metadata.expiredAt`' },
  PROOF_FROM_FUTURE: {
    code: 'PROOF_REJECTED',
    meaning: "it was issued in the future, at `metadata.issuedAt`: the server's clock is slow",
  },
  PROOF_NONCE: { code: 'PROOF_REJECTED', meaning: 'it has another nonce than the call' },
  PROOF_PHONE: { code: 'PROOF_REJECTED', meaning: 'it is of another phone number than the call' },
  PROOF_REUSED: { code: 'PROOF_REJECTED', meaning: 'it was used before' },
  PROOF_KEYS_UNAVAILABLE: {
    code: 'UNAVAILABLE',
    meaning: 'the keys of Firebase cannot be loaded: retry, or send a code',
  },
  BLOCKED: { code: 'OTP_CANCELED', meaning: 'the guard had refused the destination' },
  DELIVERY_FAILED: { code: 'OTP_CANCELED', meaning: 'no message could be delivered' },
  APP_RATE: { code: 'RATE_LIMITED', meaning: "the application's sends or verifications per minute" },
  CONSOLE_RATE: { code: 'RATE_LIMITED', meaning: "a developer's calls per minute" },
  LOOKUP_RATE: {
    code: 'RATE_LIMITED',
    meaning: 'look-ups of users and histories per minute by an application',
  },
  SESSION_SENDS: {
    code: 'RATE_LIMITED',
    meaning: 'the link of a session has sent ten codes; shown on the page alone',
  },
  SESSION_RATE: { code: 'RATE_LIMITED', meaning: 'sessions of the ready page per minute by an application' },
  PHONE_SEND_BUDGET: { code: 'RATE_LIMITED', meaning: 'codes to this phone: 5 in 10 minutes, 20 a day' },
  PHONE_CHECK_BUDGET: { code: 'RATE_LIMITED', meaning: 'wrong codes for this phone, over all requests' },
  RESEND_TOO_SOON: { code: 'RATE_LIMITED', meaning: 'less than 30 seconds since the last message' },
  LOGIN_ATTEMPTS: { code: 'RATE_LIMITED', meaning: 'failed logins of the account or the network' },
  STREAM_LIMIT: { code: 'RATE_LIMITED', meaning: '20 streams of a developer are open at this node' },
  WEBHOOK_TESTS: { code: 'RATE_LIMITED', meaning: 'test events per minute' },
  WEBHOOK_REDELIVERIES: { code: 'RATE_LIMITED', meaning: 'redeliveries and recoveries per minute' },
  NO_ROUTE: { code: 'DELIVERY_FAILED', meaning: 'no provider serves this number on the channel' },
  PROVIDERS_REFUSED: { code: 'DELIVERY_FAILED', meaning: 'every provider refused the message' },
  INVALID_NUMBER: { code: 'DELIVERY_FAILED', meaning: 'the provider says that the number does not exist' },
  UNREACHABLE: { code: 'DELIVERY_FAILED', meaning: 'the provider cannot reach the number' },
  OPTED_OUT: { code: 'DELIVERY_FAILED', meaning: 'the person asked the provider for no more messages' },
  GEO_BLOCKED: { code: 'DELIVERY_FAILED', meaning: 'the provider account may not send to this country' },
  BLOCKED_BY_CARRIER: {
    code: 'DELIVERY_FAILED',
    meaning: "the provider's fraud filter blocked the message, and no other provider may get it",
  },
  IDENTITY_PROVIDER_UNAVAILABLE: {
    code: 'UNAVAILABLE',
    meaning: "the keys of the developers' identity provider cannot be fetched",
  },
}
