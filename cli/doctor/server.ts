import type { Context } from '../context.ts'
import { causeOf } from '../commands/health.ts'
import { fault, ok, warning, type Check } from './check.ts'
import { CliError, exitCodes } from '../terminal/errors.ts'
import type { HttpReply } from '../client/http.ts'
import { isRecord } from '../session/profile.ts'
import { localTime, remaining } from '../terminal/text.ts'
import { version } from '../version.ts'

type Connection = ReturnType<Context['connect']>

/** Whether the server answers, is ready, of this version and of this time, and who is logged in there. */
export async function serverChecks(
  { io }: Context,
  connection: Connection,
  here: { isHeld: boolean },
): Promise<Check[]> {
  const { send, server } = connection
  const askedAtMs = io.now()
  const alive = await send({ method: 'GET', path: '/v1/health' }).catch(asFailure)
  if (alive instanceof CliError) {
    const remedy = here.isHeld
      ? 'A server runs on the data directory: name its address with --server URL'
      : (alive.hints.at(-1) ?? '')
    const isAbsent = alive.code === 'SERVER_UNREACHABLE' && !here.isHeld
    return [
      fault(
        'server',
        trimmed(alive.message),
        isAbsent ? 'Start one: otpd serve; or name it: --server URL' : remedy,
      ),
    ]
  }
  const answeredAtMs = io.now()
  const data = dataOf(alive)
  if (alive.status !== 200 || data.service !== 'otpd') {
    return [
      fault(
        'server',
        `${server.url} answered ${alive.status}, and not like otpd`,
        'Name the right one: --server URL',
      ),
    ]
  }
  return [
    await readinessCheck(connection),
    ...(await versionChecks(connection)),
    ...clockChecks(data.time, (askedAtMs + answeredAtMs) / 2),
    await loginCheck(connection),
  ]
}

const trimmed = (sentence: string) => sentence.replace(/\.$/, '')

/** An answer that did not come, as a value; anything else is a bug and stays one. */
function asFailure(error: unknown): CliError {
  if (error instanceof CliError) return error
  throw error
}

const dataOf = ({ json }: HttpReply) => (isRecord(json) && isRecord(json.data) ? json.data : {})

async function readinessCheck({ send, server }: Connection): Promise<Check> {
  const ready = await send({ method: 'GET', path: '/v1/health/ready' }).catch(asFailure)
  const remedy = 'Look at its log, and wait: otpd health --wait 30s'
  if (ready instanceof CliError) return fault('server', trimmed(ready.message), remedy)
  if (ready.status === 200) return ok('server', `${server.url} is ready (${server.from})`)
  return fault('server', `${server.url} is not ready: ${causeOf(ready)}`, remedy)
}

/** The version of a server stands in its document; a proxy that hides it is no fault. */
async function versionChecks({ send }: Connection): Promise<Check[]> {
  const document = await send({ method: 'GET', path: '/v1/openapi.json' }).catch(asFailure)
  const info = !(document instanceof CliError) && isRecord(document.json) ? document.json.info : null
  if (!isRecord(info) || typeof info.version !== 'string') return []
  if (info.version === version) return [ok('version', `${version}, as the server`)]
  return [
    warning(
      'version',
      `this program is ${version}, the server ${info.version}`,
      'Install the same version on both sides, then restart the server.',
    ),
  ]
}

/** A token made now must not lie in the future of the other side, which tolerates 30 s. */
const skewMsMax = 5000

/** @param nowMs of this machine when the server told the time */
export function clockChecks(time: unknown, nowMs: number): Check[] {
  const theirsMs = typeof time === 'string' ? Date.parse(time) : Number.NaN
  if (Number.isNaN(theirsMs)) return []
  const skewMs = nowMs - theirsMs
  if (Math.abs(skewMs) <= skewMsMax) return [ok('clock', "agrees with the server's")]
  return [
    warning(
      'clock',
      `it is ${remaining(Math.abs(skewMs))} ${skewMs > 0 ? 'ahead of' : 'behind'} the server's: tokens end early or late`,
      'Let the network set it, on both machines: timedatectl set-ntp true. Then start a server anew that ran before.',
    ),
  ]
}

async function loginCheck({ api, tokens, server }: Connection): Promise<Check> {
  const logIn = `otpd login --server ${server.url}`
  try {
    const token = await tokens.current()
    if (token === null) return warning('login', `not logged in to ${server.url}`, logIn)
    const me = await api.asDeveloper('GET', '/v1/developer/me')
    // The call may have renewed the token.
    const { from, expiresAt } = (await tokens.current()) ?? token
    const until = expiresAt === null ? '' : ` until ${localTime(expiresAt)}`
    return ok('login', `${me.data.email ?? me.data.id}, token from ${from}${until}`)
  } catch (error) {
    const failure = asFailure(error)
    const isLoggedOut = failure.exitCode === exitCodes.notAllowed && !failure.code.startsWith('CREDENTIALS_')
    const hint = failure.hints.at(-1) ?? logIn
    return (isLoggedOut ? warning : fault)('login', trimmed(failure.message), isLoggedOut ? logIn : hint)
  }
}
