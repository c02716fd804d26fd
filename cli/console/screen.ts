import type { ReactNode } from 'react'
import type { Target } from './console-context.ts'
import type { ScreenName } from './keymap.ts'

/**
 * A screen of the console. To add one, write `screens/Name.tsx`, its keys as a section of `screenKeymap` in `keymap.ts`,
 * and its line in `screens.ts`. Its digit, its tab and its place in the help follow. `screens/Inbox.tsx` is the shortest
 * example.
 *
 * 1. Keys: `useKeys('otp', { send: () => …, cancel: { unavailable: 'the request is verified' } })` activates a section of
 *    the keymap while the component is mounted. Input, footer and `?` follow; nothing else reads keys. Keys that change
 *    something on the server have `mutates: true`; --read-only disables them. `list` and `detail` are shared sections:
 *    `useKeys('detail', { back: close, copy: { run: copyId, label: 'copy id' } })`.
 * 2. Drawing: a `Line` is a string or `{ text, paint }` with a `paint` of `useConsole().theme`. Control characters and
 *    widths are handled where lines are drawn; never put escape sequences or Ink colours into a text. A state is a symbol
 *    and a word: `theme.status('good', 'active')`.
 * 3. Size: a screen is exactly `width` × `height`, and everything in it has a fixed height (`<Lines>`, `<ListTable>`,
 *    `<Rule>`). `isCompact` means a terminal below 80×24, where the least important parts are left out.
 * 4. Data: `useResource('/v1/applications')` loads every two seconds, keeps the last response while another screen is
 *    open, and obeys `p` and `r`; `usePolled` does so with any function. While `data` is undefined,
 *    `<LoadingOrError polled={…} />` shows the state. An empty list says what to do next. Call `refresh()` after a change.
 *    A load that throws anything but CliError is a bug and ends the console.
 * 5. Lists: `useList({ name: 'otp', rows, height, getRowId, getFilterText })` manages selection, window and filter, and
 *    `<ListTable list={list} columns={columns} … />` draws the visible rows.
 * 6. Dialogs: `openDialog({ kind: 'confirm', confirmText: app.name, … })`, `openDialog({ kind: 'form', … })`; see
 *    `console-context.ts`, also for `go`, `toast`, `copy` and `refresh`.
 * 7. Secrets: `useSecret()` masks them again by itself. Phones: `usePhoneFormatter()` masks until `m`. Application names:
 *    `useApplications()`. State that is kept while another screen is open: `usePersistentState(name, initial)`. Path in
 *    the heading: `useBreadcrumbs(['storefront', 'web'], 'live')`.
 *
 * Nothing is written during render; the linter checks it, and the component tests run under StrictMode
 * (`test/helpers/console-render.tsx`). End-to-end tests drive a screen in a terminal (`test/helpers/console.ts`).
 */
export type Screen = {
  title: string
  /** Equivalent commands, for the help. */
  commands: readonly string[]
  View(props: ScreenProps): ReactNode
}

export type ScreenTitles = Readonly<Record<ScreenName, Pick<Screen, 'title'>>>

export type ScreenProps = {
  width: number
  height: number
  isCompact: boolean
  /** Where to begin, if another screen linked here. */
  target: Target | null
}
