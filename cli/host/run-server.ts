import { join } from 'node:path'
import type { Config, Flags, LoadedConfig } from '../../src/config/config.ts'
import type { DevLine, Log, RunningServer } from '../../src/server/start.ts'
import type { Context } from '../context.ts'
import { exitCodes, usageError, type ExitCode } from '../terminal/errors.ts'
import { startRefusedError } from './commands.ts'
import type { Io } from '../terminal/io.ts'
import type { Output } from '../terminal/output.ts'
import { loadServerConfig, requireConfig } from './config.ts'
import { defaultServer } from '../session/server-choice.ts'
import type { OnStep } from '../../src/shared/progress.ts'
import { createProgress } from '../terminal/progress.ts'
import { shellWord } from '../../src/shared/shell-word.ts'
import { completeCommands } from '../../src/shared/suggested-commands.ts'
import { localTime, formatFacts, formatRemaining, shortPath } from '../terminal/text.ts'
import { firstProblems } from '../terminal/problems.ts'
import { version } from '../version.ts'

/** Flags of `otpd serve`: settings, and what is for one start only. */
export type ServeFlags = Flags & { new?: true }

/**
 * Runs the server until a signal ends it. Once it is ready, writes one thing to stdout: the banner, or with
 * `--log-format json` the line `{"level":"info","msg":"ready","url":…}`. The log goes to stderr.
 *
 * @returns 0 after a graceful shutdown, 1 if the server failed
 */
export async function runServer(context: Context, flags: ServeFlags): Promise<ExitCode> {
  const { io, output } = context
  const loaded = await loadServerConfig(io, flags)
  const config = requireConfig(loaded, exitCodes.startRefused)
  const mustBeNew = flags.new === true
  if (mustBeNew && config.dataDir === null)
    throw usageError(
      '--new creates a database in a data directory, and this server has none.',
      'Leave it out.',
    )
  const { startServer, createLog, descriptorSink, certifiedUrl } = await import('../../src/server/bundle.ts')
  const clock = { now: io.now }
  const complete = createCompleter(flags, config)
  const log = createLog({ ...config.log, write: descriptorSink(2), clock, completeCommands: complete })

  logWarnings(loaded, log)
  const { settings } = loaded
  const progress = createProgress(context)
  const onStep: OnStep = config.log.format === 'json' ? createStepLog(io) : progress.onStep
  const onDevLine = (line: DevLine) => io.writeError(`${formatDevLine(line, config, output, io.now())}\n`)
  const starting = startServer(config, {
    log,
    version,
    settings,
    mustBeNew,
    onStep,
    onDevLine,
    command: selfCommand(),
    completeCommands: complete,
  })
  reloadOnHangup(io, starting, flags, log)
  const server = await starting
    .catch((error: unknown) => {
      throw startRefusedError(error) ?? error
    })
    .finally(progress.end)
  // Install the signal handlers before announcing readiness: a stop right after that must be a graceful shutdown.
  const exitCodePromise = Promise.race([
    waitForSignal(server, () => {
      if (config.log.format === 'json') log.info('shutting down')
      else output.note('Shutting down; send the signal again to exit at once.')
    }),
    server.failed.then(() => exitCodes.bug),
  ])
  const end = async (exitCode: ExitCode) => {
    await server.stop()
    await Promise.race([log.flush(), io.sleep(1000)])
    return exitCode
  }
  // The first certificate may take long; until then no client could connect.
  const exitedBefore = await Promise.race([server.listening, exitCodePromise])
  if (exitedBefore !== undefined) return end(exitedBefore)
  // Milliseconds since the start of the process.
  const readyMs = Math.round(performance.now())
  if (config.log.format === 'json') {
    const stdoutLog = createLog({ format: 'json', level: 'info', write: descriptorSink(1), clock })
    const { dataDir, metricsUrl } = server
    const data = dataDir === null ? { node: config.node } : { dataDir }
    const metrics = metricsUrl === null ? {} : { metricsUrl }
    const compat = config.compat.length === 0 ? {} : { compat: config.compat }
    stdoutLog.info('ready', {
      url: reachableUrl(server.url),
      version,
      ...data,
      readyMs,
      ...metrics,
      ...compat,
    })
    await stdoutLog.flush()
  }
  const clientUrl = config.publicUrl ?? certifiedUrl(reachableUrl(server.url), config)
  if (config.log.format === 'text') printBanner(io, output, server, { config, readyMs, url: clientUrl })
  announceSetup(context, server, { config, url: clientUrl, complete }, log)
  // Return to the system the memory that only startup needed: garbage, and code that can be loaded again.
  Bun.gc(true)
  Bun.shrink()

  return end(await exitCodePromise)
}

/** Completes suggested commands with what the flags named, as absolute paths: log and alerts are read elsewhere. */
function createCompleter(flags: ServeFlags, { dataDir, configFile }: Config) {
  const place = {
    dataDir: flags.dataDir === undefined ? undefined : (dataDir ?? undefined),
    config: flags.config === undefined ? undefined : (configFile ?? undefined),
  }
  return (text: string) => completeCommands(text, place)
}

/** Starts this program: the executable, or in a checkout Bun with the sources. */
const selfCommand = () =>
  Bun.main.startsWith('/$bunfs/') ? [process.execPath] : [process.execPath, Bun.main]

/** Formats a request or a code of the inbox. Only development mode has such lines. */
function formatDevLine(line: DevLine, { log }: Config, { paintError: paint }: Output, nowMs: number) {
  const time = new Date(nowMs).toISOString()
  if (log.format === 'json') return JSON.stringify({ level: 'info', msg: line.kind, ...line, time })
  const clock = paint.dim(localTime(time).slice(11))
  if (line.kind === 'code')
    return `${clock} ${paint.bold(line.code)} for ${line.phone}  ${line.requestId ?? ''}`
  const { method, route, status, durationMs } = line
  const colour = status >= 500 ? paint.red : status >= 400 ? paint.yellow : paint.green
  return `${clock} ${colour(String(status))} ${method} ${route ?? '(unknown path)'}  ${durationMs} ms`
}

/** Writes a line for each step at once: the log writes when this thread is free, which is after the migration. */
function createStepLog(io: Io): OnStep {
  let last = ''
  return ({ step }) => {
    const time = new Date(io.now()).toISOString()
    if (step !== last) io.writeError(`${JSON.stringify({ level: 'info', msg: 'migration', step, time })}\n`)
    last = step
  }
}

/**
 * On SIGHUP, reloads providers, routes, guard and send budget from the configuration; other settings apply at the next start. An
 * invalid configuration is logged and changes nothing.
 *
 * @param starting a start may take long, such as with a migration: a signal meanwhile must not end the process
 */
function reloadOnHangup(io: Io, starting: Promise<RunningServer>, flags: Flags, log: Log) {
  // A failure is that of the start.
  let reloading: Promise<unknown> = starting.catch(() => {})
  process.on('SIGHUP', () => {
    const reload = async () => {
      const server = await starting
      const loaded = await loadServerConfig(io, flags)
      const { config, problems, settings } = loaded
      for (const { source, message, remedy } of firstProblems(problems)) {
        log.error('configuration reload failed', { source, problem: message, remedy })
      }
      logWarnings(loaded, log)
      if (config) await server.reload(config, settings)
    }
    // One after the other: a reload that waits for a provider to close must not apply the rest after a later one.
    reloading = reloading
      .then(reload)
      .catch((error: unknown) => log.error('configuration reload failed', { error }))
  })
}

/** Logs settings that are ignored, or will be a problem. */
function logWarnings({ warnings }: LoadedConfig, log: Log) {
  for (const { source, message, remedy } of warnings)
    log.warn('configuration warning', { source, problem: message, remedy })
}

/** Shuts down gracefully on the first SIGINT or SIGTERM; exits at once on the second. */
function waitForSignal(server: RunningServer, announce: () => void): Promise<ExitCode> {
  const { promise, resolve } = Promise.withResolvers<ExitCode>()
  let isStopping = false
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)
    process.on(signal, () => {
      if (isStopping) process.exit(code)
      isStopping = true
      announce()
      void server.stop().then(() => resolve(exitCodes.done))
    })
  return promise
}

function printBanner(
  io: Io,
  output: Output,
  server: RunningServer,
  { config, readyMs, url }: { config: Config; readyMs: number; url: string },
) {
  const { paint } = output
  const data =
    server.dataDir === null
      ? `PostgreSQL, as node ${config.node}`
      : `${shortPath(server.dataDir, io.homeDirectory)}${config.dataDir === null ? ' (removed at exit)' : ''}`
  const pairs: [string, string | null][] = [
    ['API', `${url}/v1`],
    ['Docs', `${url}/docs/`],
    ['Metrics', server.metricsUrl],
    ['Compatible', config.compat.length === 0 ? null : config.compat.join(', ')],
    ['Listening', url === server.url ? null : server.url],
    ['Data', data],
    ['Config', config.configFile],
  ]
  io.writeOut(
    `${paint.bold(`otpd ${version}`)} ${paint.green('ready')} in ${readyMs} ms\n\n${formatFacts(pairs, paint)}\n`,
  )
}

/** Replaces a wildcard listen address, which clients cannot connect to, by loopback. */
const reachableUrl = (url: string) => url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')

/**
 * Says how to create the first account. A setup token itself stays in its file: an argument is visible in the list of
 * processes, and stderr may be logged.
 */
function announceSetup(
  { io, output }: Context,
  server: RunningServer,
  start: { config: Config; url: string; complete: (text: string) => string },
  log: Log,
) {
  const { paintError } = output
  const isJson = start.config.log.format === 'json'
  const setup = findSetup(io, server, start)
  if (setup !== null && isJson) log.info(`there is no account yet; ${setup.logText}`, setup.logFields)
  if (setup !== null && !isJson)
    io.writeError(
      [
        '',
        `  No account yet. ${setup.text}, in another terminal:`,
        '',
        ...(isInPath(io) ? [] : [`    ${paintError.bold(`alias otpd=${shellWord(process.execPath)}`)}`]),
        `    ${paintError.bold(setup.logFields.command)}`,
        '',
      ].join('\n'),
    )
  if (io.stderrIsTerminal && !isJson) io.writeError(paintError.dim(`\n  Stop with Ctrl+C.\n`))
}

type Setup = {
  text: string
  logText: string
  logFields: { command: string; expiresAt?: string; issuer?: string }
}

/** Finds the command that creates the first account; null if there is an account, or each node would say another one. */
function findSetup(
  io: Io,
  { setupToken, awaitsFirstDeveloper, dataDir }: RunningServer,
  { config, url, complete }: { config: Config; url: string; complete: (text: string) => string },
): Setup | null {
  const login = `otpd login${url === defaultServer ? '' : ` --server ${url}`}`
  if (setupToken !== undefined && dataDir !== null) {
    const command = `${login} --setup-token-file ${shellWord(join(dataDir, 'setup-token'))}`
    return {
      text: `Create the first one within ${formatRemaining(setupToken.expiresAt - io.now())}`,
      logText: 'create the first one',
      logFields: { command, expiresAt: new Date(setupToken.expiresAt).toISOString() },
    }
  }
  if (!awaitsFirstDeveloper || config.oidc === null) return null
  const { issuer } = config.oidc
  return config.signup === 'open'
    ? {
        text: `Anyone who can log in at ${issuer} gets one. Begin`,
        logText: 'anyone who can log in at the OpenID provider gets one',
        logFields: { command: login, issuer },
      }
    : {
        text: `Create the first one with your e-mail address at ${issuer}`,
        logText: 'create the first one with an e-mail address at the OpenID provider',
        logFields: { command: complete('otpd admin create'), issuer },
      }
}

/** Whether `otpd` is in PATH. If not, as with `npm start`, the suggested commands need an alias. */
const isInPath = ({ env }: Io) =>
  !Bun.isStandaloneExecutable || Bun.which('otpd', { PATH: env.PATH ?? '' }) !== null
