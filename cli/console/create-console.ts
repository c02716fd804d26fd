import { createColors } from 'picocolors'
import type { DeveloperProfile } from '../client/resources.ts'
import type { Context } from '../context.ts'
import type { CliError, ExitCode } from '../terminal/errors.ts'
import { isUtf8Locale } from '../terminal/io.ts'
import { initialListState, type Console, type ListState, type Shell } from './console-context.ts'
import { createKeyRouter } from './key-router.ts'
import { requestListName, requestSearchName } from './request-search.ts'
import { createStore } from './store.ts'
import { createTheme } from './theme.ts'

export type ConsoleOptions = { isReadOnly: boolean; isAscii: boolean }

type Dependencies = {
  context: Context
  connection: ReturnType<Context['connect']>
  developer: Pick<DeveloperProfile, 'id' | 'email'>
  options: ConsoleOptions
  /** Resolved when the user quits; rejected with an unexpected error. */
  exit: Pick<PromiseWithResolvers<ExitCode>, 'resolve' | 'reject'>
}

const toastMs = 4000
const tickMs = 1000

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
  dialogNumber: 0,
  breadcrumbs: [],
  environment: null,
  onlyEnvironment: null,
}

/** Creates the console's state and services, and starts its clock. `stop` ends the clock and other timers. */
export function createConsole({ context, connection, developer, options, exit }: Dependencies) {
  const { io, output } = context
  const shell = createStore<Shell>(initialShell)
  const refreshCounter = createStore<number>(0)
  const clock = createStore<number>(io.now())
  let toastTimer: ReturnType<typeof setTimeout> | undefined
  const toast: Console['toast'] = (text, tone = 'neutral') => {
    clearTimeout(toastTimer)
    shell.set((previous) => ({ ...previous, toast: { text, tone } }))
    toastTimer = setTimeout(() => shell.set((previous) => ({ ...previous, toast: null })), toastMs)
  }
  const listStates = createStore<ReadonlyMap<string, ListState>>(new Map())
  const savedState = new Map<string, unknown>()
  const go: Console['go'] = (screen, target) =>
    shell.set((previous) => {
      if (previous.screen === screen && target === undefined) return previous
      return { ...previous, screen, target: target ?? null, visit: previous.visit + 1 }
    })
  const console: Console = {
    api: connection.api,
    context,
    connection,
    email: developer.email ?? developer.id,
    isReadOnly: options.isReadOnly,
    theme: createTheme(createColors(output.paint.isColorSupported), options.isAscii || !isUtf8Locale(io.env)),
    keys: createKeyRouter({ isReadOnly: options.isReadOnly, notify: (reason) => toast(reason) }),
    shell,
    refreshCounter,
    answeredAt: createStore<number>(0),
    staleSince: createStore<ReadonlyMap<string, number>>(new Map()),
    clock,
    listPosition: createStore(''),
    problems: createStore<ReadonlyMap<string, CliError>>(new Map()),
    listStates,
    savedState,
    appCredentials: new Map(),
    now: io.now,
    go,
    findRequests(text) {
      listStates.set((states) => new Map(states).set(requestListName, { ...initialListState, filter: text }))
      savedState.set(requestSearchName, text)
      go('otp', {})
    },
    toast,
    openDialog: (dialog) =>
      shell.set((previous) => ({ ...previous, dialog, dialogNumber: previous.dialogNumber + 1 })),
    refresh: () => refreshCounter.set((previous) => previous + 1),
    copy(text, name) {
      io.writeOut(`\u001b]52;c;${Buffer.from(text).toString('base64')}\u0007`)
      toast(`copied ${name}`, 'good')
    },
    quit: (exitCode) => exit.resolve(exitCode),
    crash: exit.reject,
  }
  const clockTimer = setInterval(() => clock.set(io.now), tickMs)
  return {
    console,
    stop() {
      clearTimeout(toastTimer)
      clearInterval(clockTimer)
    },
  }
}
