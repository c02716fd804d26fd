import { CliError, exitCodes } from '../terminal/errors.ts'
import type { Connection, SendHttp } from './http.ts'
import { isRecord } from '../../src/shared/json.ts'
import { version } from '../version.ts'

/** Reads the version of a server from its OpenAPI document; null if there is none, such as behind a proxy that hides it. */
export async function fetchServerVersion(send: SendHttp): Promise<string | null> {
  try {
    const { json } = await send({ method: 'GET', path: '/v1/openapi.json' })
    const info = isRecord(json) ? json.info : null
    return isRecord(info) && typeof info.version === 'string' ? info.version : null
  } catch (error) {
    if (error instanceof CliError) return null
    throw error
  }
}

/** Compares the versions of this program and a server. */
export const versionDifference = (serverVersion: string) => ({
  message: `this program is ${version}, the server is ${serverVersion}`,
  remedy: 'Install the same version on both machines, then restart the server.',
})

/**
 * Explains an unexpected error after a response, or a route or a field that the server lacks. Responses are not checked field
 * by field, because a server of this version sends what its types say; with another version, that is taken for the cause.
 */
export async function explainUnexpected(error: unknown, { server, send }: Connection): Promise<unknown> {
  const isKnown = error instanceof CliError
  const hasUnknownField =
    isKnown && error.fields.some(({ fault }) => /^Unknown (property|query parameter)\b/.test(fault))
  if (isKnown && !hasUnknownField && !isMissingRoute(error)) return error
  const serverVersion = await fetchServerVersion(send)
  if (serverVersion === null || serverVersion === version) return error
  const { message, remedy } = versionDifference(serverVersion)
  if (!isKnown)
    return new CliError(
      exitCodes.bug,
      'UNEXPECTED_ANSWER',
      `${server.url} gave an answer that this version of otpd does not expect: ${message}.`,
      { hints: [remedy], cause: error },
    )
  const { exitCode, code, body, fields, hints } = error
  const extras = { cause: error, ...(body !== undefined && { body }) }
  if (hasUnknownField) {
    const difference = `${server.url} may lack it: ${message}.`
    return new CliError(exitCode, code, error.message, {
      ...extras,
      fields,
      hints: [...hints, difference, remedy],
    })
  }
  const fault = `${server.url} has no such route: ${message}.`
  return new CliError(exitCodes.notFound, code, fault, { ...extras, hints: [remedy] })
}

/** Whether the server lacks the route: its path, or the path with this method. */
const isMissingRoute = ({ reason, code }: CliError) =>
  reason === 'ROUTE_NOT_FOUND' || code === 'METHOD_NOT_ALLOWED'
