import { createContext, useContext } from 'react'
import type { Api } from '../client/api.ts'
import type { Context } from '../context.ts'
import type { CliError, ExitCode } from '../terminal/errors.ts'
import type { ScreenName } from './keymap.ts'
import type { ActiveBinding, KeyRouter } from './key-router.ts'
import type { Line } from './spans.ts'
import type { Store } from './store.ts'
import type { Theme } from './theme.ts'

/** Where a screen is asked to go when another one opens it. */
export type Target = {
  appId?: string
  requestId?: string
  webhookId?: string
  type?: string
}

export type Field = {
  name: string
  label: string
  /** What it holds at first. */
  initial?: string
  /** Covered while it is typed. */
  isSecret?: boolean
  /** One of these, chosen with the arrows instead of typed. */
  choices?: readonly string[]
  /** What is wrong with it, in a few words; null where nothing is. */
  check?(value: string): string | null
}

export type Dialog =
  /** Destroys something: done only once the word is typed. */
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
      submit(values: Readonly<Record<string, string>>): Promise<void>
    }

export type Toast = { text: string; tone: 'good' | 'bad' | 'neutral' }

export type ServerState = 'operational' | 'not ready' | 'lost'

/** Where a list is: kept while its screen is closed. */
export type ListState = {
  /** The selected row; null until there was one. */
  id: string | null
  /** The selected row's position when it was last shown, which is selected when the row is gone. */
  index: number
  /** The first visible row. */
  offset: number
  filter: string
  /** A log stays at its end while rows are added. */
  isFollowing: boolean
}

/** What the shell shows around every screen. */
export type Shell = {
  screen: ScreenName
  /** Grows with every `go`, so that a screen that is open can be asked to go elsewhere. */
  visit: number
  target: Target | null
  isUnmasked: boolean
  isPaused: boolean
  /** The keys that the help lists: those that were active when it was opened. Null while it is closed. */
  help: readonly ActiveBinding[] | null
  server: ServerState
  toast: Toast | null
  dialog: Dialog | null
  /** Behind the name of the screen: `storefront`, `web`. */
  breadcrumbs: readonly string[]
  environment: 'live' | 'test' | null
}

/** What every screen works with. The object itself never changes; what changes is in its stores. */
export type Console = {
  api: Api
  /** For `followLog`. */
  context: Context
  connection: ReturnType<Context['connect']>
  /** Who is logged in; an id where there is no address. */
  email: string
  isReadOnly: boolean
  theme: Theme
  keys: KeyRouter
  shell: Store<Shell>
  /** Grows whenever everything is to be asked again. */
  refreshCounter: Store<number>
  /** When the server last answered, in milliseconds since the epoch; 0 before it did. */
  answeredAt: Store<number>
  /** The time in milliseconds since the epoch, anew every second: all that shows it is drawn together. */
  clock: Store<number>
  /** Where one is in a list that is longer than the screen: `17 of 200`. */
  listPosition: Store<string>
  /** What cannot be asked at present, and why, by the name of the question. */
  problems: Store<ReadonlyMap<string, CliError>>
  /** Selection, window and filter of each list, by its name. */
  listStates: Store<ReadonlyMap<string, ListState>>
  /** What outlives a change of screens, by name. */
  savedState: Map<string, unknown>
  now(): number
  /** Opens a screen; `target` says where in it. */
  go(screen: ScreenName, target?: Target): void
  /** A line at the bottom for a few seconds. */
  toast(text: string, tone?: Toast['tone']): void
  /** Puts a dialog in front; it closes when `act` is done, and shows the error where it fails. */
  openDialog(dialog: Dialog): void
  /** Asks the server everything on the screen again; after a change. */
  refresh(): void
  /** To the clipboard of the terminal (OSC 52), with a toast that names it: `copied client id`. */
  copy(text: string, name: string): void
  /** Ends the console. */
  quit(exitCode: ExitCode): void
  /** A fault of our own: the terminal is restored and the fault is told. */
  crash(error: unknown): void
}

export const ConsoleContext = createContext<Console | null>(null)

export function useConsole(): Console {
  const console = useContext(ConsoleContext)
  if (console === null) throw new Error('outside the console')
  return console
}

/** What went wrong, in lines: the sentence, then what to do about it. */
export const errorLines = ({ message, hints }: CliError): string[] => [message, ...hints]
