import { render } from 'ink'
import { createContext, type Context } from '../context.ts'
import { exitCodes, usageError, type ExitCode } from '../terminal/errors.ts'
import { App } from './App.tsx'
import { ConsoleContext } from './console-context.ts'
import { createConsole, type ConsoleOptions } from './create-console.ts'

/** A screen that waits longer for an answer is a screen that hangs. */
const timeoutDefault = '10s'

/**
 * Opens the console and gives the exit code once it is closed: 0 after `q`, 130 after Ctrl-C, 143 and 129 after SIGTERM
 * and SIGHUP. Throws CliError, before anything is drawn, where there is no terminal, no login or no server; a fault of
 * ours is thrown after the terminal has been restored.
 */
export async function runConsole(baseContext: Context, options: ConsoleOptions): Promise<ExitCode> {
  const { io, flags, output } = baseContext
  if (!io.stdinIsTerminal || !io.stdoutIsTerminal)
    throw usageError('The console needs a terminal.', 'In a pipe, use the commands: otpd --help')
  if (io.env.TERM === 'dumb') throw usageError('This terminal has no screen to draw on (TERM=dumb).')
  const context = createContext(
    io,
    { ...flags, timeout: flags.timeout ?? io.env.OTPD_TIMEOUT ?? timeoutDefault },
    output,
  )
  const connection = context.connect()
  // Whoever is not logged in, or has typed the wrong address, reads that where they typed.
  const { data: developer } = await connection.api.asDeveloper('GET', '/v1/developer/me')

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
      // Ink takes CI for a pipe; that stdout is a terminal was made sure of.
      interactive: true,
    },
  )
  // Only an error in drawing ends Ink by itself.
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

/** Signals and faults that nobody caught end the console in order, so that the terminal is whole afterwards. */
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
