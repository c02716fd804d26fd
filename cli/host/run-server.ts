import { join } from 'node:path'
import type { Config, Flags } from '../../src/config/config.ts'
import type { Log, RunningServer } from '../../src/server/start.ts'
import type { Context } from '../context.ts'
import { exitCodes, type ExitCode } from '../terminal/errors.ts'
import { startRefusedError } from './commands.ts'
import type { Io } from '../terminal/io.ts'
import type { Output } from '../terminal/output.ts'
import { loadServerConfig, requireConfig } from './config.ts'
import { defaultServer } from '../session/server-choice.ts'
import { formatFacts, formatRemaining, shellWord, shortPath } from '../terminal/text.ts'
import { version } from '../version.ts'

/**
 * Runs the server until a signal ends it. stdout gets one thing, once it is ready: the greeting, or with
 * `--log-format json` the line `{"level":"info","msg":"ready","url":…}`. The log is on stderr.
 */
export async function runServer({ io, output }: Context, flags: Flags): Promise<ExitCode> {
  const config = requireConfig(await loadServerConfig(flags), exitCodes.startRefused)
  const { startServer, createLog, descriptorSink } = await import('../../src/server/bundle.ts')
  const clock = { now: io.now }
  const log = createLog({ ...config.log, write: descriptorSink(2), clock })

  const server = await startServer(config, { log, version }).catch((error: unknown) => {
    throw startRefusedError(error) ?? error
  })
  reloadOnHangup(server, flags, log)
  // Nobody who stops a server is told that it crashed: the handlers stand before the line that says it is there.
  const exitCodePromise = Promise.race([
    waitForSignal(server, output),
    server.failed.then(() => exitCodes.bug),
  ])
  // Counted from the start of the process.
  const readyMs = Math.round(performance.now())
  if (config.log.format === 'json') {
    const stdoutLog = createLog({ format: 'json', level: 'info', write: descriptorSink(1), clock })
    const { dataDir, metricsUrl } = server
    const metrics = metricsUrl === null ? {} : { metricsUrl }
    stdoutLog.info('ready', { url: reachableUrl(server.url), version, dataDir, readyMs, ...metrics })
    await stdoutLog.flush()
  } else printBanner(io, output, server, { config, readyMs })
  printSetupHint(io, output, server, config)
  // What only the start needed goes back to the machine: its garbage, and its code, which can be loaded again.
  Bun.gc(true)
  Bun.shrink()

  const exitCode = await exitCodePromise
  await server.stop()
  await Promise.race([log.flush(), io.sleep(1000)])
  return exitCode
}

/**
 * SIGHUP reads the configuration anew and takes its providers, routes and guard; the rest of it holds from the next start
 * on. A configuration with faults changes nothing.
 */
function reloadOnHangup(server: RunningServer, flags: Flags, log: Log) {
  process.on('SIGHUP', () => {
    const reload = async () => {
      const { config, problems } = await loadServerConfig(flags)
      for (const { source, message, remedy } of problems) {
        log.error('configuration not taken', { source, problem: message, remedy })
      }
      if (config) await server.reload(config)
    }
    reload().catch((error: unknown) => log.error('configuration not taken', { error }))
  })
}

/** The first signal lets the server finish its work, the second does not. */
function waitForSignal(server: RunningServer, output: Output): Promise<ExitCode> {
  const { promise, resolve } = Promise.withResolvers<ExitCode>()
  let isStopping = false
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)
    process.on(signal, () => {
      if (isStopping) process.exit(code)
      isStopping = true
      output.note('Shutting down; once more to end at once.')
      void server.stop().then(() => resolve(exitCodes.done))
    })
  return promise
}

function printBanner(
  io: Io,
  output: Output,
  server: RunningServer,
  { config, readyMs }: { config: Config; readyMs: number },
) {
  const { paint } = output
  const url = config.publicUrl ?? reachableUrl(server.url)
  const data = `${shortPath(server.dataDir, io.homeDirectory)}${config.dataDir === null ? ' (removed at the end)' : ''}`
  const pairs: [string, string | null][] = [
    ['API', `${url}/v1`],
    ['Docs', `${url}/v1/docs`],
    ['Metrics', server.metricsUrl],
    ['Listens', url === server.url ? null : server.url],
    ['Data', data],
    ['Config', config.configFile],
  ]
  io.writeOut(
    `${paint.bold(`otpd ${version}`)} ${paint.green('ready')} in ${readyMs} ms\n\n${formatFacts(pairs, paint)}\n`,
  )
}

/** "Every address" is where a server listens, and nothing that a client could be told. */
const reachableUrl = (url: string) => url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')

/** The token is shown to a terminal alone. Elsewhere stderr may end up in a collection of logs. */
function printSetupHint(
  io: Io,
  output: Output,
  { setupToken, dataDir, ...server }: RunningServer,
  config: Config,
) {
  const { paintError } = output
  if (setupToken !== undefined) {
    const file = join(dataDir, 'setup-token')
    const token = io.stderrIsTerminal ? setupToken.token : `"$(cat ${shellWord(file)})"`
    const url = config.publicUrl ?? reachableUrl(server.url)
    const serverFlag = url === defaultServer ? '' : ` --server ${url}`
    const timeLeft = formatRemaining(setupToken.expiresAt - io.now())
    io.writeError(
      [
        '',
        `  No account yet. Make the first one within ${timeLeft}, in another terminal:`,
        '',
        ...(isInPath(io) ? [] : [`    ${paintError.bold(`alias otpd=${shellWord(process.execPath)}`)}`]),
        `    ${paintError.bold(`otpd login${serverFlag} --setup-token ${token}`)}`,
        '',
      ].join('\n'),
    )
  }
  if (io.stderrIsTerminal) io.writeError(paintError.dim(`\n  Stop with Ctrl+C.\n`))
}

/** Who started the program by its path, as `npm start` does, cannot type the commands that it tells as they are. */
const isInPath = ({ env }: Io) =>
  !Bun.isStandaloneExecutable || Bun.which('otpd', { PATH: env.PATH ?? '' }) !== null
