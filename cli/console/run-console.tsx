import { render } from 'ink'
import { createColors } from 'picocolors'
import { createContext, type Context } from '../context.ts'
import { exitCodes, usageError, type CliError, type ExitCode } from '../terminal/errors.ts'
import { isUtf8Locale } from '../terminal/locale.ts'
import { App } from './App.tsx'
import { ConsoleContext, type Console, type ListState, type Shell } from './console-context.ts'
import { createKeyRouter } from './key-router.ts'
import { createStore } from './store.ts'
import { createTheme } from './theme.ts'

export type ConsoleOptions = { isReadOnly: boolean; isAscii: boolean }

const toastMs = 4000
const tickMs = 1000

/** A screen that waits longer for an answer is a screen that hangs. */
const timeoutDefault = '10s'

const initialShell: Shell = {
  screen: 'overview',
  visit: 0,
  target: null,
  isUnmasked: false,
  isPaused: false,
  help: null,
  server: 'operational',
  toast: null,
  dialog: null,
  breadcrumbs: [],
  environment: null,
}

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

  const paint = createColors(output.paint.isColorSupported)
  const exit = Promise.withResolvers<ExitCode>()
  const shell = createStore<Shell>(initialShell)
  const refreshes = createStore<number>(0)
  const clock = createStore<number>(io.now())
  let toastTimer: ReturnType<typeof setTimeout> | undefined
  const toast: Console['toast'] = (text, tone = 'neutral') => {
    clearTimeout(toastTimer)
    shell.set((previous) => ({ ...previous, toast: { text, tone } }))
    toastTimer = setTimeout(() => shell.set((previous) => ({ ...previous, toast: null })), toastMs)
  }
  const console: Console = {
    api: connection.api,
    context,
    connection,
    email: developer.email ?? developer.id,
    isReadOnly: options.isReadOnly,
    theme: createTheme(paint, options.isAscii || !isUtf8Locale(io.env)),
    keys: createKeyRouter({ isReadOnly: options.isReadOnly, notify: (reason) => toast(reason) }),
    shell,
    refreshCounter: refreshes,
    answeredAt: createStore<number>(0),
    clock,
    listPosition: createStore(''),
    problems: createStore<ReadonlyMap<string, CliError>>(new Map()),
    listStates: createStore<ReadonlyMap<string, ListState>>(new Map()),
    savedState: new Map(),
    now: io.now,
    go: (screen, target) =>
      shell.set((previous) => {
        if (previous.screen === screen && target === undefined) return previous
        return { ...previous, screen, target: target ?? null, visit: previous.visit + 1 }
      }),
    toast,
    openDialog: (dialog) => shell.set((previous) => ({ ...previous, dialog })),
    refresh: () => refreshes.set((previous) => previous + 1),
    copy(text, name) {
      io.writeOut(`\u001b]52;c;${Buffer.from(text).toString('base64')}\u0007`)
      toast(`copied ${name}`, 'good')
    },
    quit: (exitCode) => exit.resolve(exitCode),
    crash: exit.reject,
  }

  const releaseProcessEvents = captureProcessEvents(exit)
  const clockTimer = setInterval(() => clock.set(io.now), tickMs)
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
    clearTimeout(toastTimer)
    clearInterval(clockTimer)
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
