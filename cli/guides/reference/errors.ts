import type { ErrorCode } from '../../../src/domain/model/errors.ts'
import { httpStatusByCode } from '../../../src/http/errors.ts'
import { findExample } from '../../../src/http/openapi/error-catalogue.ts'
import { reasons } from './error-reasons.ts'

type Description = { meaning: string; remedy: string }

/** Meaning and remedy of each code. A new code without a text does not compile. */
const descriptions: Record<ErrorCode, Description> = {
  INVALID_ARGUMENT: {
    meaning: 'A field, parameter or header is missing, unknown or has a wrong value; `details` names each.',
    remedy: 'Correct the request. Retrying it unchanged fails again.',
  },
  MALFORMED_JSON: {
    meaning: 'The body is not valid JSON in UTF-8, or a key is repeated.',
    remedy: 'Send what a JSON library writes.',
  },
  INVALID_PHONE_NUMBER: {
    meaning: 'No phone can have this number.',
    remedy: 'Ask the user for the number with its country code, and send it in E.164 format.',
  },
  INVALID_CODE: {
    meaning:
      'The code is wrong. `metadata.attemptsRemaining` says how many attempts are left; 0 after the last one.',
    remedy: 'Let the user enter it again.',
  },
  PROOF_REJECTED: {
    meaning: 'The token does not prove a phone number; `reason` says why.',
    remedy: 'Send a code instead. After `PROOF_EXPIRED` and `PROOF_REUSED` the app may get a new token.',
  },
  UNAUTHENTICATED: {
    meaning: 'Credentials are missing, wrong, expired or revoked.',
    remedy: 'Applications: check the three headers. Developers: log in again, or use a valid API token.',
  },
  FORBIDDEN: {
    meaning: 'The credentials are right, but may not do this; `reason` says why.',
    remedy: 'Enable the application, use a token with a larger scope, or ask the operator.',
  },
  ENDPOINT_LIMIT_REACHED: {
    meaning: 'The application has as many webhook endpoints as it may have.',
    remedy: 'Delete one, or subscribe an existing one to more events.',
  },
  PLAN_LIMIT_REACHED: {
    meaning: 'Your plan allows no more projects or applications.',
    remedy: 'Delete one, or ask the operator for a larger plan.',
  },
  DESTINATION_BLOCKED: {
    meaning: 'The guard against SMS pumping refused the number, its country or its network.',
    remedy: 'Tell the user that codes cannot be sent there. The log names the rule to the developer.',
  },
  CHALLENGE_REQUIRED: {
    meaning:
      'An allowance of the guard is spent, and a user who passes a challenge still gets a code. `metadata` has what the page needs: `kind` with `siteKey`, or with the proof of work of `altcha`.',
    remedy: 'Show the challenge, and send again with its token as `challenge`: see the guide on the guard.',
  },
  NOT_FOUND: {
    meaning: 'There is no such resource or route, or it belongs to another account or application.',
    remedy: 'Check the id or the path. Both cases look the same on purpose.',
  },
  METHOD_NOT_ALLOWED: {
    meaning: 'The path exists, but not with this method.',
    remedy: 'Use a method that the `Allow` header lists.',
  },
  CONFLICT: {
    meaning: 'The call conflicts with the current state; `reason` says how.',
    remedy: 'Depends on the reason: wait, or change the state first.',
  },
  ALREADY_VERIFIED: {
    meaning: 'The code was entered before. `metadata.verifiedAt` says when.',
    remedy: 'Stop. After a lost answer to your own verification, treat a recent time as success.',
  },
  OTP_EXPIRED: { meaning: 'The code was not entered in time.', remedy: 'Send a new code.' },
  OTP_CANCELED: {
    meaning: 'The request was canceled, or its message could never be delivered.',
    remedy: 'Send a new code, through another channel if the reason is `DELIVERY_FAILED`.',
  },
  ATTEMPTS_EXHAUSTED: {
    meaning: 'Five wrong codes were entered for this request.',
    remedy: 'Send a new code.',
  },
  PAYLOAD_TOO_LARGE: {
    meaning: 'The body is larger than 64 KiB.',
    remedy: 'Send less; `metadata` of a request has room for ten short pairs.',
  },
  UNSUPPORTED_MEDIA_TYPE: {
    meaning: 'The body is not `application/json` in UTF-8, or is compressed.',
    remedy: 'Send `content-type: application/json`, without `content-encoding`.',
  },
  EXPECTATION_FAILED: {
    meaning: 'The header `Expect` asks for something other than `100-continue`.',
    remedy: 'Send the request without it.',
  },
  IDEMPOTENCY_KEY_REUSED: {
    meaning: 'The idempotency key was used with a different body within 24 hours.',
    remedy: 'Use a new key for a new call, and the same body for a retry.',
  },
  RATE_LIMITED: {
    meaning: 'A limit was reached; `reason` and `metadata` name it.',
    remedy: 'Wait for the number of seconds in `Retry-After`.',
  },
  INTERNAL: {
    meaning: 'The server failed unexpectedly. Its log has the cause under `traceId`.',
    remedy: 'Retry once; then report the `traceId` to the operator.',
  },
  DELIVERY_FAILED: {
    meaning: 'No message can be sent to this number: no route serves it, or the providers refuse it.',
    remedy: 'Try another channel, or ask the user for another number.',
  },
  UNAVAILABLE: {
    meaning: 'The server starts, shuts down, is overloaded, or cannot reach its database.',
    remedy: 'Retry after `Retry-After`. Nothing was done.',
  },
}

/** Builds the page of all error codes: an overview, then each with its reasons and an example. */
export function errorReference(): string {
  const codes = Object.keys(httpStatusByCode).filter(isErrorCode)
  const overview = codes.map(
    (code) =>
      `| ${httpStatusByCode[code]} | [\`${code}\`](#${code.toLowerCase()}) | ${descriptions[code].meaning} |`,
  )
  const entries = codes.map((code) => {
    const status = httpStatusByCode[code]
    const { meaning, remedy } = descriptions[code]
    return [
      `### ${code}`,
      `**HTTP ${status}.** ${meaning} ${remedy}`,
      ...reasonTable(code),
      ...example(code),
    ].join('\n\n')
  })
  const table = ['| status | code | meaning |', '| ---: | --- | --- |', ...overview].join('\n')
  return ['## All codes', table, '## Each code', ...entries].join('\n\n')
}

const isErrorCode = (text: string): text is ErrorCode => text in httpStatusByCode

function reasonTable(code: ErrorCode): string[] {
  const rows = Object.entries(reasons[code] ?? {})
  if (rows.length === 0) return []
  const lines = rows.map(([name, meaning]) => `| \`${name}\` | ${meaning} |`)
  return [['| `reason` | meaning |', '| --- | --- |', ...lines].join('\n')]
}

function example(code: ErrorCode): string[] {
  const body = findExample(code)
  return body === undefined ? [] : [`\`\`\`json\n${JSON.stringify(body, null, 2)}\n\`\`\``]
}
