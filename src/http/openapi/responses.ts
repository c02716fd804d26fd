import { errorStatus } from './error-catalogue.ts'
import { errorExamples, type ErrorName } from './error-examples.ts'
import type { GeneratedOperation } from './generated.ts'
import { headerReferences, responseHeaderNames } from './headers.ts'
import type { createSchemaConverter, JsonSchema } from './schemas.ts'

const statusTexts: Readonly<Record<string, string>> = {
  200: 'Success.',
  201: 'Created.',
  400: 'Invalid request; correct it before you retry.',
  401: 'Credentials are missing, wrong or expired.',
  403: 'Forbidden; retrying will not help.',
  404: 'Not found, or not yours.',
  409: 'Conflicts with the current state.',
  410: 'The OTP request has ended; send a new code.',
  413: 'The body is larger than 64 KiB.',
  415: 'Unsupported media type or content coding of the body.',
  422: 'The Idempotency-Key was used with a different request.',
  429: 'Rate limited; retry after `Retry-After` seconds.',
  500: 'Unexpected server error.',
  502: 'No provider accepted the message.',
  503: 'Temporarily unavailable; retry.',
}

/** Examples of the errors of the token endpoints, which have the form of OAuth (RFC 6749 §5.2). */
const oauthExamples: Readonly<Record<string, object>> = {
  400: {
    invalid_grant: {
      error: 'invalid_grant',
      error_description: 'The e-mail address or the password is wrong.',
    },
    mfa_required: {
      error: 'mfa_required',
      error_description: 'This account has a second factor. Send its code as totp.',
    },
    invalid_request: { error: 'invalid_request', error_description: 'Missing parameter: grant_type.' },
  },
  413: {
    invalid_request: {
      error: 'invalid_request',
      error_description: 'The body is larger than 64 KiB. Send a smaller one.',
    },
  },
  415: {
    invalid_request: {
      error: 'invalid_request',
      error_description: 'Unsupported media type. Send the body as application/x-www-form-urlencoded.',
    },
  },
  429: {
    rate_limited: {
      error: 'rate_limited',
      error_description: 'Too many failed logins. Try again in 12 min.',
      reason: 'LOGIN_ATTEMPTS',
    },
  },
  503: {
    temporarily_unavailable: {
      error: 'temporarily_unavailable',
      error_description: 'Too many logins at once. Try again shortly.',
    },
  },
}

/** The media type and the schema that a route declares for a status. The plugin moves the title up into the response. */
function declaredBody({ title, content }: GeneratedOperation['responses'][string]) {
  const titled = { ...content?.['application/json']?.schema, ...(title !== undefined && { title }) }
  const { contentMediaType = 'application/json', ...schema }: JsonSchema = titled
  return { mediaType: String(contentMediaType), schema }
}

/**
 * Describes the responses of an operation: the bodies that its route declares, and an example of each other error that it
 * can respond with. Routes declare no error of the API: the framework would compile a check of each at the first call.
 *
 * @param errors see `operationErrors`
 * @param errorSchema converted once: every operation has it for each status
 */
export function describeResponses(
  operation: GeneratedOperation,
  security: ReadonlyArray<Record<string, readonly string[]>>,
  errors: readonly ErrorName[],
  converter: ReturnType<typeof createSchemaConverter>,
  errorSchema: unknown,
): object {
  const { operationId, responses } = operation
  const headersFor = responseHeaderNames(operation, security)
  const own = new Map(Object.entries(responses))
  const byStatus = Map.groupBy(errors, (name) => String(errorStatus(name)))
  const statuses = [...new Set([...own.keys(), ...byStatus.keys()])].toSorted()
  return Object.fromEntries(statuses.map((status) => [status, describe(status)]))

  function describe(status: string) {
    const response = own.get(status)
    const names = response ? [] : (byStatus.get(status) ?? [])
    const codes = [...new Set(names.map((name) => `\`${errorExamples[name].code}\``))]
    const text = statusTexts[status] ?? 'Success.'
    return {
      description: codes.length > 0 ? `${text} Codes: ${codes.join(', ')}.` : text,
      headers: headerReferences(headersFor(status)),
      content: response ? ownContent(status, response) : errorContent(names),
    }
  }

  function ownContent(status: string, response: GeneratedOperation['responses'][string]) {
    const { mediaType, schema } = declaredBody(response)
    const examples = Object.entries(isOAuth() ? (oauthExamples[status] ?? {}) : {})
    return {
      [mediaType]: {
        schema:
          mediaType === 'application/json'
            ? converter.convertResponse(schema, operationId)
            : converter.convert(schema, 'response'),
        ...(examples.length > 0 && {
          examples: Object.fromEntries(examples.map(([name, value]) => [name, { value }])),
        }),
      },
    }
  }

  /** The token endpoints take forms. */
  function isOAuth() {
    return operation.requestBody?.content['application/x-www-form-urlencoded'] !== undefined
  }

  function errorContent(names: readonly ErrorName[]) {
    const examples = names.map((name) => [name, { $ref: `#/components/examples/${name}` }])
    return {
      'application/json': {
        schema: errorSchema,
        examples: Object.fromEntries(examples),
      },
    }
  }
}
