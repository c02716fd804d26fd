import type { Command } from 'commander'
import { durationMs } from '../context.ts'
import { exitCodes } from '../terminal/errors.ts'
import { examples } from '../examples.ts'
import type { HttpReply, SendHttp } from '../client/http.ts'
import { replyError } from '../client/reply-error.ts'
import { isRecord } from '../session/profile.ts'
import type { Run } from '../program.ts'
import type { ServerChoice } from '../session/server-choice.ts'
import type { Io } from '../terminal/io.ts'

const pauseMs = 200

export function addHealthCommand(program: Command, run: Run) {
  program
    .command('health')
    .description('ask a server whether it works')
    .option('--wait <time>', 'keep asking for this long until it does, like 30s')
    .addHelpText('after', examples('otpd health', 'otpd health --wait 30s --quiet'))
    .action((options: { wait?: string }, command: Command) =>
      run(command, async ({ io, connect, output }) => {
        const giveUpAt = io.now() + (options.wait === undefined ? 0 : durationMs(options.wait, '--wait'))
        const { send, server } = connect()
        const { reply, unready } = await untilHealthy(io, giveUpAt, () => checkHealth(send, server))
        const { paint } = output
        output.answer(reply.body, () =>
          unready === null
            ? `${paint.green('●')} ${server.url} is operational`
            : `${paint.red('✗')} ${server.url} is not ready: ${unready}`,
        )
        return unready === null ? exitCodes.done : exitCodes.negative
      }),
    )
}

type Health = { reply: HttpReply; unready: string | null }

async function untilHealthy(io: Io, giveUpAt: number, check: () => Promise<Health>): Promise<Health> {
  for (;;) {
    const isLast = io.now() + pauseMs > giveUpAt
    const health = await check().catch((error: unknown) => {
      if (isLast) throw error
      return null
    })
    if (health !== null && (health.unready === null || isLast)) return health
    await io.sleep(pauseMs)
  }
}

/** Alive, which needs no database, and then ready: the database can be written and nothing is being shut down. */
async function checkHealth(send: SendHttp, server: ServerChoice): Promise<Health> {
  const alive = await send({ method: 'GET', path: '/v1/health' })
  const isOtpd = isRecord(alive.json) && isRecord(alive.json.data) && alive.json.data.service === 'otpd'
  if (alive.status !== 200 || !isOtpd) throw replyError(server, alive)
  const ready = await send({ method: 'GET', path: '/v1/health/ready' })
  return ready.status === 200 ? { reply: alive, unready: null } : { reply: ready, unready: causeOf(ready) }
}

/** In words, why a server is not ready. */
export function causeOf({ json, status }: HttpReply) {
  const cause = isRecord(json) && isRecord(json.data) ? json.data.cause : null
  return (typeof cause === 'string' ? causes[cause] : undefined) ?? `it answered ${status}`
}

const causes: Record<string, string> = {
  draining: 'it is shutting down',
  database: 'its database cannot be written',
  migrations: 'its database needs a migration',
}
