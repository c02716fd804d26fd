import { render } from 'ink'
import { createColors } from 'picocolors'
import { createContext, type Context } from '../context.ts'
import { exitCodes, usageError, type CliError, type ExitCode } from '../terminal/errors.ts'
import { isUtf8Locale } from '../terminal/locale.ts'
import { App } from './App.tsx'
import { ConsoleContext, type Console, type Shell } from './console-context.ts'
import { createKeyRouter } from './key-router.ts'
import { createStore } from './store.ts'
import { createTheme } from './theme.ts'

export type ConsoleOptions = { isReadOnly: boolean; isAscii: boolean }

const toastMs = 4000
const tickMs = 1000

/** A screen that waits longer for an answer is a screen that hangs. */
const timeoutDefault = '10s'

const firstShell: Shell = {
  screen: 'overview',
  visit: 0,
  target: null,
  isUnmasked: false,
  isPaused: false,
  isHelp: false,
  server: 'operational',
  toast: null,
  dialog: null,
  crumbs: [],
  environment: null,
}

/**
 * Opens the console and gives the exit code once it is closed: 0 after `q`, 130 after Ctrl-C, 143 and 129 after SIGTERM
 * and SIGHUP. Throws CliError, before anything is drawn, where there is no terminal, no login or no server; a fault of
 * ours is thrown after the terminal has been restored.
 */
export async function runConsole(given: Context, options: ConsoleOptions): Promise<ExitCode> {
  const { io, flags, output } = given
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
  const ending = Promise.withResolvers<ExitCode>()
  const shell = createStore<Shell>(firstShell)
  const refreshes = createStore<number>(0)
  const clock = createStore<number>(io.now())
  let toastTimer: ReturnType<typeof setTimeout> | undefined
  const toast: Console['toast'] = (text, tone = 'neutral') => {
    clearTimeout(toastTimer)
    shell.set((before) => ({ ...before, toast: { text, tone } }))
    toastTimer = setTimeout(() => shell.set((before) => ({ ...before, toast: null })), toastMs)
  }
  const console: Console = {
    api: connection.api,
    context,
    connection,
    email: developer.email ?? developer.id,
    isReadOnly: options.isReadOnly,
    theme: createTheme(paint, options.isAscii || !isUtf8Locale(io.env)),
    keys: createKeyRouter({ isReadOnly: options.isReadOnly, tell: (reason) => toast(reason) }),
    shell,
    refreshes,
    answeredAt: createStore<number>(0),
    clock,
    place: createStore(''),
    problems: createStore<ReadonlyMap<string, CliError>>(new Map()),
    kept: new Map(),
    now: io.now,
    go: (screen, target) =>
      shell.set((before) => {
        if (before.screen === screen && target === undefined) return before
        return { ...before, screen, target: target ?? null, visit: before.visit + 1 }
      }),
    toast,
    ask: (dialog) => shell.set((before) => ({ ...before, dialog })),
    refresh: () => refreshes.set((before) => before + 1),
    copy(text, name) {
      io.writeOut(`\u001b]52;c;${Buffer.from(text).toString('base64')}\u0007`)
      toast(`copied ${name}`, 'good')
    },
    quit: (exitCode) => ending.resolve(exitCode),
    crash: ending.reject,
  }

  const release = holdProcess(ending)
  const ticking = setInterval(() => clock.set(io.now), tickMs)
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
  ink.waitUntilExit().then(() => ending.resolve(exitCodes.done), ending.reject)
  try {
    return await ending.promise
  } finally {
    clearTimeout(toastTimer)
    clearInterval(ticking)
    ink.unmount()
    await ink.waitUntilExit().catch(() => {})
    release()
  }
}

/** Signals and faults that nobody caught end the console in order, so that the terminal is whole afterwards. */
function holdProcess({ resolve, reject }: PromiseWithResolvers<ExitCode>) {
  const handlers = {
    SIGINT: () => resolve(exitCodes.interrupted),
    SIGTERM: () => resolve(exitCodes.terminated),
    SIGHUP: () => resolve(exitCodes.hungUp),
    uncaughtException: reject,
    unhandledRejection: reject,
  }
  for (const [name, handler] of Object.entries(handlers)) process.on(name, handler)
  return () => {
    for (const [name, handler] of Object.entries(handlers)) process.off(name, handler)
  }
}
