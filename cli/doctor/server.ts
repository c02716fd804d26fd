import type { Context } from '../context.ts'
import { describeNotReady } from '../client/health.ts'
import { fault, ok, warning, type Check } from '../../src/shared/check.ts'
import { CliError, exitCodes, isOutOfScope } from '../terminal/errors.ts'
import type { HttpResponse } from '../session/http.ts'
import { isRecord } from '../../src/shared/json.ts'
import { clockSkewCheck } from '../../src/shared/operating-checks.ts'
import { zonedTime } from '../terminal/text.ts'
import { fetchServerVersion, versionDifference } from '../session/server-version.ts'
import { version } from '../version.ts'

type Connection = ReturnType<Context['connect']>

/** Checks that the server is alive and ready, its version and clock, and the login there. */
export async function serverChecks(
  { io }: Context,
  connection: Connection,
  localServer: { isHeld: boolean },
): Promise<Check[]> {
  const { send, server } = connection
  const requestedAtMs = io.now()
  const liveness = await send({ method: 'GET', path: '/v1/health' }).catch(asFailure)
  if (liveness instanceof CliError) {
    const remedy =
      localServer.isHeld && liveness.code === 'SERVER_UNREACHABLE'
        ? 'A server is running on the data directory: give its address with --server URL'
        : (liveness.hints.at(-1) ?? '')
    const isAbsent = liveness.code === 'SERVER_UNREACHABLE' && !localServer.isHeld
    return [
      fault(
        'server',
        withoutPeriod(liveness.message),
        isAbsent ? 'Start one: otpd serve; or use another: --server URL' : remedy,
      ),
    ]
  }
  const respondedAtMs = io.now()
  const data = responseData(liveness)
  if (liveness.status !== 200 || data.service !== 'otpd') {
    return [
      fault(
        'server',
        `${server.url} responded with ${liveness.status}, but not like an otpd server`,
        'Use the right address: --server URL',
      ),
    ]
  }
  return [
    await readinessCheck(connection),
    ...(await versionChecks(connection)),
    ...clockChecks(data.time, (requestedAtMs + respondedAtMs) / 2),
    await loginCheck(connection),
  ]
}

const withoutPeriod = (sentence: string) => sentence.replace(/\.$/, '')

/** Returns an expected failure as a value; rethrows anything else, which is a bug. */
function asFailure(error: unknown): CliError {
  if (error instanceof CliError) return error
  throw error
}

const responseData = ({ json }: HttpResponse) => (isRecord(json) && isRecord(json.data) ? json.data : {})

async function readinessCheck({ send, server }: Connection): Promise<Check> {
  const readiness = await send({ method: 'GET', path: '/v1/health/ready' }).catch(asFailure)
  const remedy = 'Check its log, and wait: otpd health --wait 30s'
  if (readiness instanceof CliError) return fault('server', withoutPeriod(readiness.message), remedy)
  if (readiness.status === 200) return ok('server', `${server.url} is ready (${server.source})`)
  return fault('server', `${server.url} is not ready: ${describeNotReady(readiness)}`, remedy)
}

async function versionChecks({ send }: Connection): Promise<Check[]> {
  const serverVersion = await fetchServerVersion(send)
  if (serverVersion === null) return []
  if (serverVersion === version) return [ok('version', `${version}, same as the server`)]
  const { message, remedy } = versionDifference(serverVersion)
  return [warning('version', message, remedy)]
}

/**
 * Compares this machine's clock with the server's.
 *
 * @param time time that the server returned, ISO 8601
 * @param nowMs this machine's time halfway through that request
 */
export function clockChecks(time: unknown, nowMs: number): Check[] {
  const serverMs = typeof time === 'string' ? Date.parse(time) : Number.NaN
  if (Number.isNaN(serverMs)) return []
  return [clockSkewCheck(nowMs - serverMs, 'the server')]
}

async function loginCheck({ api, tokens, server }: Connection): Promise<Check> {
  const logIn = `otpd login --server ${server.url}`
  try {
    const token = await tokens.current()
    if (token === null) return warning('login', `not logged in to ${server.url}`, logIn)
    const developer = await api.asDeveloper('GET', '/v1/developer/me').catch((error: unknown) => {
      if (isOutOfScope(error)) return null
      throw error
    })
    // The call may have renewed the token.
    const { source, expiresAt } = (await tokens.current()) ?? token
    const untilText = expiresAt === null ? '' : ` until ${zonedTime(expiresAt)}`
    return ok(
      'login',
      `${developer?.data.email ?? developer?.data.id ?? 'API token'}, token from ${source}${untilText}`,
    )
  } catch (error) {
    const failure = asFailure(error)
    const isLoggedOut = failure.exitCode === exitCodes.notAllowed && !failure.code.startsWith('CREDENTIALS_')
    const hint = failure.hints.at(-1) ?? logIn
    return (isLoggedOut ? warning : fault)(
      'login',
      withoutPeriod(failure.message),
      isLoggedOut ? logIn : hint,
    )
  }
}
