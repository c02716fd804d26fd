import { createContext, useContext } from 'react'
import type { Api, AppCredentials } from '../client/api.ts'
import type { Context } from '../context.ts'
import { CliError, type ExitCode } from '../terminal/errors.ts'
import type { ScreenName } from './keymap.ts'
import type { ActiveBinding, KeyRouter } from './key-router.ts'
import type { Line } from './spans.ts'
import type { Store } from './store.ts'
import type { Theme } from './theme.ts'
import type { Environment } from '../../src/shared/otp-values.ts'

/** Where a screen begins when another one links to it. */
export type Target = {
  appId?: string
  requestId?: string
  webhookId?: string
  type?: string
  /** The search is open, ready for a phone number. */
  isSearching?: true
}

/** An option of a picker. */
export type Choice = {
  /** Kind of the option, in one word: `screen`, `app`. Shown dimmed at the right. */
  kind: string
  label: string
  /** Shown after the label, and searched as well. */
  detail?: string
  /** Searched as well, but not shown. */
  search?: string
  /** Why it cannot be chosen now; null if it can. */
  unavailable?: string | null
  run(): void
}

/** The two secrets of an application; one alone after only that one was rotated. */
export type AppSecrets = Partial<Pick<AppCredentials, 'clientSecret' | 'apiKey'>>

export type { Environment } from '../../src/shared/otp-values.ts'

export type Field = {
  name: string
  label: string
  /** Initial value. */
  initial?: string
  /** Masked while it is typed. */
  isSecret?: boolean
  /** The value is one of these, chosen with space or a letter instead of typed. */
  choices?: readonly string[]
  /** Returns an error in a few words, or null if the trimmed value is valid. */
  check?(value: string): string | null
}

/** Field check that rejects an empty value. */
export const required = (value: string) => (value === '' ? 'required' : null)

export type Dialog =
  /** Confirms a destructive action: enabled only after `confirmText` is typed. */
  | {
      kind: 'confirm'
      title: string
      lines: readonly Line[]
      confirmText: string
      verb: string
      submit(): Promise<void>
    }
  /** Asks for values. */
  | {
      kind: 'form'
      title: string
      lines?: readonly Line[]
      fields: readonly Field[]
      verb: string
      /** @param values by the names of the fields, without spaces around them */
      submit(values: Readonly<Record<string, string>>): Promise<void>
    }
  /** Offers options, narrowed by typing. */
  | { kind: 'pick'; title: string; choices: readonly Choice[] }
  /** Command palette, with the actions that were possible when it was opened. */
  | { kind: 'palette'; bindings: readonly ActiveBinding[] }

type Toast = { text: string; tone: 'good' | 'bad' | 'neutral' }

export type ServerState = 'operational' | 'not ready' | 'unreachable'

/** Selection, scroll position and filter of a list. */
export type ListState = {
  /** Id of the selected row; null until there is one. */
  id: string | null
  /** Index where the selected row was last shown; if the row is removed, the row at this index is selected. */
  index: number
  /** Index of the first visible row. */
  offset: number
  filter: string
  /** For logs: the selection stays on the last row while rows are added. */
  isFollowing: boolean
}

export const initialListState: ListState = { id: null, index: 0, offset: 0, filter: '', isFollowing: true }

/** State of the shell, which surrounds every screen. */
export type Shell = {
  screen: ScreenName
  /** Incremented by every `go`, so that an open screen is mounted again with its new target. */
  visit: number
  target: Target | null
  isUnmasked: boolean
  isPaused: boolean
  /** The keys listed in the help: those that were active when it was opened. Null while it is closed. */
  help: readonly ActiveBinding[] | null
  server: ServerState
  toast: Toast | null
  dialog: Dialog | null
  /** Number of dialogs that were opened, so that each starts with its own state. */
  dialogNumber: number
  /** Path after the title of the screen: `storefront`, `web`. */
  breadcrumbs: readonly string[]
  /** Environment of the application or request on the screen; null if it shows neither. */
  environment: Environment | null
  /** Only this environment is shown; null shows both. */
  onlyEnvironment: Environment | null
}

/** The services that every screen uses. The object itself never changes; changing state is in its stores. */
export type Console = {
  api: Api
  /** Needed by `followLog`. */
  context: Context
  connection: ReturnType<Context['connect']>
  /** Email address of the developer; the developer's id if there is no address. */
  email: string
  isReadOnly: boolean
  theme: Theme
  keys: KeyRouter
  shell: Store<Shell>
  /** Incremented to load everything on the screen again. */
  refreshCounter: Store<number>
  /** Time of the last response, in milliseconds since the epoch; 0 before the first. */
  answeredAt: Store<number>
  /** Times of the responses that the screen still shows although newer ones are awaited, by the name of the poll. */
  staleSince: Store<ReadonlyMap<string, number>>
  /** The time in milliseconds since the epoch, updated every second, so that all clocks and ages change together. */
  clock: Store<number>
  /** Position in a list that is longer than the screen: `17 of 200`. */
  listPosition: Store<string>
  /** Errors of the current polls, by the name of the poll. */
  problems: Store<ReadonlyMap<string, CliError>>
  /** Selection, window and filter of each list, by its name. */
  listStates: Store<ReadonlyMap<string, ListState>>
  /** State that is kept while another screen is open, by name. */
  savedState: Map<string, unknown>
  now(): number
  /** Secrets of applications that were created or rotated here, or typed, by client id. Never saved. */
  appCredentials: Map<string, AppSecrets>
  /** Opens a screen, at `target` if given. */
  go(screen: ScreenName, target?: Target): void
  /** Opens the requests that match a text, as if it was typed into their search. */
  findRequests(text: string): void
  /** Shows a line at the bottom for a few seconds. */
  toast(text: string, tone?: Toast['tone']): void
  /** Opens a dialog. It closes when its `submit` resolves, and shows the error if it rejects. */
  openDialog(dialog: Dialog): void
  /** Loads everything on the screen again; call it after a change. */
  refresh(): void
  /** Copies to the terminal's clipboard (OSC 52) and shows a toast with the name: `copied client id`. */
  copy(text: string, name: string): void
  /** Ends the console. */
  quit(exitCode: ExitCode): void
  /** Ends the console after an unexpected error (a bug): restores the terminal and reports the error. */
  crash(error: unknown): void
}

/** The part of the console that dialogs need. */
export type DialogNeeds = Pick<Console, 'api' | 'toast'>

export const ConsoleContext = createContext<Console | null>(null)

/** Returns the services of the console. */
export function useConsole(): Console {
  const console = useContext(ConsoleContext)
  if (console === null) throw new Error('useConsole() was called outside <ConsoleContext>.')
  return console
}

/** Returns the lines of an error: its invalid fields, or else its message, then its hints. */
export const errorLines = ({ message, fields, hints }: CliError): string[] => [
  ...(fields.length === 0
    ? [message]
    : fields.map(({ field, fault }) => (field ? `${field}: ${fault}` : fault))),
  ...hints,
]

/** Shows an error of a call as a toast; one that is no `CliError` is a bug and ends the console. */
export function showError({ toast, crash }: Pick<Console, 'toast' | 'crash'>, error: unknown): void {
  if (error instanceof CliError) toast(error.message, 'bad')
  else crash(error)
}
