import type { ReactNode } from 'react'
import type { Target } from './console-context.ts'

/**
 * The contract between the shell and a screen. To write one:
 *
 * 1. Its keys are a section of `keymap.ts` under its name. `useKeys('otp', { send: () => …, cancel: { unavailable: 'it
 *    is over' } })` puts them in force while the component is there. Input, footer and `?` follow; nothing else reads
 *    keys. What changes something on the server has `mutates: true`, and --read-only takes it away.
 *    `list` and `detail` are sections to share: `useKeys('detail', { back: close, copy: { run: copyId, label: 'copy id' } })`.
 * 2. It draws `Line`s: strings, or `{ text, paint }`, where `paint` is of `useConsole().theme`. Control characters and
 *    widths are seen to where lines are drawn; never put escape sequences or colours of Ink into a text. A state is a
 *    sign and a word: `theme.status('good', 'active')`.
 * 3. It is exactly `width` × `height`: everything in it has a fixed height (`<Lines>`, `<ListTable>`, `<Rule>`).
 *    `isCompact` is a terminal below 80×24, where the least important is left out.
 * 4. Data: `const apps = useLive('apps', () => api.asDeveloper('GET', '/v1/applications').then(({ data }) => data))`
 *    asks every two seconds, keeps the last answer over changes of the screen, obeys `p` and `r`. While `data` is
 *    undefined, `<Waiting live={…} />` shows that it loads, or what went wrong. An empty list says what to do next.
 *    After a change: `refresh()`. A load that throws anything but CliError is a bug, and ends the console.
 * 5. Lists: `const list = useList({ name: 'otp', rows, height, idOf, textOf })` has selection, window and filter, and
 *    `<ListTable list={list} columns={columns} … />` draws it. Only rows in the window are drawn.
 * 6. Dialogs: `ask({ kind: 'confirm', word: app.name, … })`, `ask({ kind: 'form', … })`; the words are in
 *    `console-context.ts`, and so are `go`, `toast`, `copy`, `refresh`.
 * 7. Secrets: `const secret = useSecret()` covers again by itself. Phones: `usePhone()` masks until `m`. Application
 *    names: `useApplications()`. What outlives a change of screens: `useKept(name, initial)`. The path in the heading:
 *    `useCrumbs(['storefront', 'web'], 'live')`.
 *
 * `screens/Inbox.tsx` is the shortest example. A screen is listed in `screens.ts`, and its tests drive it in a terminal:
 * `test/helpers/console.ts`.
 */
export type Screen = {
  title: string
  /** For `?`: what does the same without the console. */
  commands: readonly string[]
  View(props: ScreenProps): ReactNode
}

export type ScreenProps = {
  width: number
  height: number
  isCompact: boolean
  /** Where another screen wants this one to begin. */
  target: Target | null
}
