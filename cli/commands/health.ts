import type { Command } from 'commander'
import { durationMs, type RunCommand } from '../context.ts'
import { exitCodes } from '../terminal/errors.ts'
import { examples } from '../help.ts'
import type { HttpResponse, SendHttp } from '../session/http.ts'
import { responseError } from '../session/response-error.ts'
import { isRecord } from '../session/profile.ts'
import type { ServerChoice } from '../session/server-choice.ts'
import type { Io } from '../terminal/io.ts'

const pollIntervalMs = 200

/** Registers the health command. */
export function addHealthCommand(program: Command, runCommand: RunCommand) {
  program
    .command('health')
    .description('check whether a server is up and ready')
    .option('--wait <time>', 'wait up to this long until it is ready, like 30s')
    .addHelpText('after', examples('otpd health', 'otpd health --wait 30s --quiet'))
    .action((options: { wait?: string }, command: Command) =>
      runCommand(command, async ({ io, connect, output }) => {
        const deadlineMs = io.now() + (options.wait === undefined ? 0 : durationMs(options.wait, '--wait'))
        const { send, server } = connect()
        const { response, notReadyReason } = await waitUntilHealthy(io, deadlineMs, () =>
          checkHealth(send, server),
        )
        const { paint } = output
        output.printResult(response.body, () =>
          notReadyReason === null
            ? `${paint.green('●')} ${server.url} is operational`
            : `${paint.red('✗')} ${server.url} is not ready: ${notReadyReason}`,
        )
        return notReadyReason === null ? exitCodes.done : exitCodes.negative
      }),
    )
}

type Health = { response: HttpResponse; notReadyReason: string | null }

async function waitUntilHealthy(io: Io, deadlineMs: number, check: () => Promise<Health>): Promise<Health> {
  for (;;) {
    const isLastAttempt = io.now() + pollIntervalMs > deadlineMs
    const health = await check().catch((error: unknown) => {
      if (isLastAttempt) throw error
      return null
    })
    if (health !== null && (health.notReadyReason === null || isLastAttempt)) return health
    await io.sleep(pollIntervalMs)
  }
}

/** Checks liveness, which needs no database, then readiness: the database is writable and no shutdown is under way. */
async function checkHealth(send: SendHttp, server: ServerChoice): Promise<Health> {
  const liveness = await send({ method: 'GET', path: '/v1/health' })
  const isOtpd =
    isRecord(liveness.json) && isRecord(liveness.json.data) && liveness.json.data.service === 'otpd'
  if (liveness.status !== 200 || !isOtpd) throw responseError(server, liveness)
  const readiness = await send({ method: 'GET', path: '/v1/health/ready' })
  return readiness.status === 200
    ? { response: liveness, notReadyReason: null }
    : { response: readiness, notReadyReason: describeNotReady(readiness) }
}

/** Describes why a server is not ready. */
export function describeNotReady({ json, status }: HttpResponse) {
  const cause = isRecord(json) && isRecord(json.data) ? json.data.cause : null
  return (typeof cause === 'string' ? causeTexts[cause] : undefined) ?? `it responded with ${status}`
}

const causeTexts: Record<string, string> = {
  draining: 'it is shutting down',
  database: 'it cannot write to its database',
  migrations: 'its database needs a migration',
}
