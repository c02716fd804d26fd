import type { CliCommand } from './command.ts'
import { durationMs } from '../context.ts'
import { exitCodes } from '../terminal/errors.ts'
import { checkHealth, type Health } from '../client/health.ts'
import type { Io } from '../terminal/io.ts'

const pollIntervalMs = 200

/** Registers the health command. */
export function addHealthCommand(program: CliCommand) {
  program
    .command('health')
    .description('check whether a server is up and ready')
    .option('--wait <time>', 'wait up to this long until it is ready, like 30s')
    .examples('otpd health', 'otpd health --wait 30s --quiet')
    .run(async ({ io, connect, output }, options: { wait?: string }) => {
      const deadlineMs = io.now() + (options.wait === undefined ? 0 : durationMs(options.wait, '--wait'))
      const connection = connect()
      const { server } = connection
      const { response, notReadyReason } = await waitUntilHealthy(io, deadlineMs, () =>
        checkHealth(connection),
      )
      const { paint } = output
      output.printResult(response.body, () =>
        notReadyReason === null
          ? `${paint.green('●')} ${server.url} is operational`
          : `${paint.red('✗')} ${server.url} is not ready: ${notReadyReason}`,
      )
      return notReadyReason === null ? exitCodes.done : exitCodes.negative
    })
}

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
