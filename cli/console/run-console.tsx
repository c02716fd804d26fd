import { render } from 'ink'
import { PassThrough } from 'node:stream'
import { createContext, type Context } from '../context.ts'
import { exitCodes, isOutOfScope, usageError, type ExitCode } from '../terminal/errors.ts'
import { App, widthMin } from './App.tsx'
import { ConsoleContext } from './console-context.ts'
import { createConsole, type ConsoleOptions } from './create-console.ts'

/** Shorter than for commands: a screen that waits longer looks frozen. */
const timeoutDefault = '10s'

/**
 * Opens the console. Resolves with the exit code once it is closed: 0 after `q`, 130 after Ctrl+C, 143 after SIGTERM,
 * 129 after SIGHUP.
 *
 * @throws CliError, before anything is drawn, without a terminal, a login or a reachable server; unexpected errors after
 *   the terminal has been restored
 */
export async function runConsole(baseContext: Context, options: ConsoleOptions): Promise<ExitCode> {
  const { io, flags, output } = baseContext
  if (!io.stdinIsTerminal || !io.stdoutIsTerminal)
    throw usageError('The console needs a terminal.', 'In a pipe, use the commands: otpd --help')
  if (io.env.TERM === 'dumb') throw usageError('The console cannot draw on this terminal (TERM=dumb).')
  const context = createContext(
    io,
    { ...flags, timeout: flags.timeout ?? io.env.OTPD_TIMEOUT ?? timeoutDefault },
    output,
  )
  const connection = context.connect(undefined, { waitsForLimits: false })
  // Before drawing, so that an error of login or address is printed in the shell.
  const developer = await readDeveloper(connection)

  const exit = Promise.withResolvers<ExitCode>()
  const { console, stop } = createConsole({ context, connection, developer, options, exit })
  const releaseProcessEvents = captureProcessEvents(exit)
  const ink = render(
    <ConsoleContext value={console}>
      <App />
    </ConsoleContext>,
    {
      alternateScreen: true,
      incrementalRendering: true,
      maxFps: 30,
      exitOnCtrlC: false,
      patchConsole: false,
      // Ink treats a CI environment as a pipe; stdout was checked above.
      interactive: true,
    },
  )
  // Ink ends by itself only after an error in rendering.
  ink.waitUntilExit().then(() => exit.resolve(exitCodes.done), exit.reject)
  try {
    return await exit.promise
  } finally {
    stop()
    ink.unmount()
    await ink.waitUntilExit().catch(() => {})
    releaseProcessEvents()
  }
}

/** Reads who the console works for; for an API token that may not read the profile, its kind. */
const readDeveloper = (connection: ReturnType<Context['connect']>) =>
  connection.api.asDeveloper('GET', '/v1/developer/me').then(
    ({ data }) => data,
    (error: unknown) => {
      if (isOutOfScope(error)) return { id: 'API token', email: null }
      throw error
    },
  )

/** Longest that a picture waits for its text. */
const drawMsMax = 5000

/**
 * Draws the console's first screen without opening it. @returns the lines of the screen
 *
 * @param until text that the screen shows once its data is there
 * @returns null where the terminal is too narrow for the console
 */
export async function drawConsole(context: Context, until: RegExp): Promise<string | null> {
  const columns = context.output.columns() ?? 80
  if (columns < widthMin) return null
  const connection = context.connect(undefined, { waitsForLimits: false })
  const developer = await readDeveloper(connection)
  const exit = Promise.withResolvers<ExitCode>()
  const options = { isReadOnly: true, isAscii: false }
  const { console, stop } = createConsole({ context, connection, developer, options, exit })
  let frame = ''
  const isDrawn = Promise.withResolvers<void>()
  const stdout = Object.assign(new PassThrough(), { columns, rows: 24 })
  stdout.on('data', (chunk: Buffer) => {
    frame = chunk.toString()
    if (until.test(Bun.stripANSI(frame))) isDrawn.resolve()
  })
  const stdin = Object.assign(new PassThrough(), {
    isTTY: true,
    setRawMode: () => stdin,
    ref: () => stdin,
    unref: () => stdin,
  })
  const ink = render(
    <ConsoleContext value={console}>
      <App />
    </ConsoleContext>,
    // In debug mode Ink writes whole frames, and each one at once.
    { stdout, stdin, debug: true, exitOnCtrlC: false, patchConsole: false, interactive: true },
  )
  try {
    await Promise.race([isDrawn.promise, exit.promise, context.io.sleep(drawMsMax)])
    return frame.trimEnd()
  } finally {
    stop()
    ink.unmount()
  }
}

/** Makes signals and uncaught errors close the console, so that the terminal is restored. */
function captureProcessEvents({ resolve, reject }: PromiseWithResolvers<ExitCode>) {
  const handlers = {
    SIGINT: () => resolve(exitCodes.interrupted),
    SIGTERM: () => resolve(exitCodes.terminated),
    SIGHUP: () => resolve(exitCodes.hungUp),
    uncaughtException: reject,
    unhandledRejection: reject,
  }
  for (const [name, listener] of Object.entries(handlers)) process.on(name, listener)
  return () => {
    for (const [name, listener] of Object.entries(handlers)) process.off(name, listener)
  }
}
