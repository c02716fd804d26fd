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
 * Explains an unexpected error after a response, or a route that the server lacks. Responses are not checked field by field,
 * because a server of this version sends what its types say; with another version, that is taken for the cause.
 */
export async function explainUnexpected(error: unknown, { server, send }: Connection): Promise<unknown> {
  const isKnown = error instanceof CliError
  if (isKnown && error.reason !== 'ROUTE_NOT_FOUND') return error
  const serverVersion = await fetchServerVersion(send)
  if (serverVersion === null || serverVersion === version) return error
  const { message, remedy } = versionDifference(serverVersion)
  const fault = isKnown ? 'has no such route' : 'gave an answer that this version of otpd does not expect'
  return new CliError(
    isKnown ? error.exitCode : exitCodes.bug,
    isKnown ? error.code : 'UNEXPECTED_ANSWER',
    `${server.url} ${fault}: ${message}.`,
    { hints: [remedy], cause: error, ...(isKnown && error.body !== undefined && { body: error.body }) },
  )
}
