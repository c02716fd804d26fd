import type { Command } from 'commander'
import type { Api } from '../api.ts'
import { durationMs } from '../context.ts'
import { CliError, exitCodes } from '../errors.ts'
import { examples } from '../examples.ts'
import type { Io } from '../io.ts'
import type { Run } from '../program.ts'
import { printable } from '../text.ts'

type Health = { status: string; service: string; time: string }

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
        const { api, server } = connect()
        const health = await untilHealthy(io, api, giveUpAt)
        output.answer(
          health.body,
          () =>
            `${output.paint.green('●')} ${printable(health.data.status)}  ${printable(health.data.service)} at ${server.url}`,
        )
      }),
    )
}

async function untilHealthy(io: Io, api: Api, giveUpAt: number) {
  for (;;) {
    try {
      return await checkHealth(api)
    } catch (error) {
      if (io.now() + pauseMs > giveUpAt) throw error
      await io.sleep(pauseMs)
    }
  }
}

/** Alive (the document's health check) and ready (its database can be written, it is not shutting down). */
async function checkHealth(api: Api) {
  const health = await api.asNobody<Health>('GET', '/v1/health')
  await api.asNobody('GET', '/v1/health/ready').catch((error: unknown) => {
    if (!(error instanceof CliError) || error.status !== 503) throw error
    throw new CliError(exitCodes.negative, error.code, `Not healthy: ${error.message}`, error)
  })
  return health
}
