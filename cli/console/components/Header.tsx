import {
  useConsole,
  type Console,
  type Environment,
  type ServerState,
  type Shell,
} from '../console-context.ts'
import { useApplications } from '../hooks/use-applications.ts'
import { useNow } from '../hooks/use-now.ts'
import { useShell } from '../hooks/use-shell.ts'
import { screenDigit, screenNames } from '../keymap.ts'
import { environmentSpan } from '../lines/application.ts'
import type { ScreenTitles } from '../screen.ts'
import { justify, displayWidth, optionSpan, type Line, type Span } from '../spans.ts'
import type { Theme, Tone } from '../theme.ts'
import { Lines } from './Lines.tsx'
import { environments as allEnvironments } from '../../../src/shared/otp-values.ts'

const serverTones: Record<ServerState, Tone> = {
  operational: 'good',
  'not ready': 'warning',
  unreachable: 'bad',
}

/** Two lines: the server and its state, then the tabs of the screens. */
export function Header({ screens, width }: { screens: ScreenTitles; width: number }) {
  const console = useConsole()
  const shell = useShell()
  const nowMs = useNow()
  const { data: applications = [] } = useApplications()
  const { theme } = console
  const pageEnvironment = shell.environment ?? shell.onlyEnvironment
  const environments = pageEnvironment
    ? [pageEnvironment]
    : allEnvironments.filter((candidate) => applications.some(({ environment }) => environment === candidate))
  const right: Span[] = [
    ...(console.isReadOnly ? [{ text: 'read-only  ', paint: theme.paint.yellow }] : []),
    ...(shell.isPaused ? [{ text: 'paused  ', paint: theme.paint.yellow }] : []),
    ...badge(environments, theme),
    { text: `${clockText(nowMs)} `, paint: theme.paint.dim },
  ]
  return (
    <Lines
      lines={[
        justify(connectionLine(console, shell, width - displayWidth(right)), right, width),
        tabsLine(screens, shell, width, theme),
      ]}
      width={width}
    />
  )
}

function connectionLine({ connection, email, theme }: Console, { server }: Shell, room: number): Line {
  const state = theme.status(
    serverTones[server],
    server === 'unreachable' ? 'server unreachable, retrying' : server,
  )
  const address = connection.server.url.replace(/^https?:\/\//, '')
  const withoutAddress: Span[] = [{ text: ' otpd', paint: theme.paint.bold }, '  ', state]
  const withAddress: Span[] = [{ text: ' otpd', paint: theme.paint.bold }, `  ${address}  `, state]
  const withEmail: Span[] = [...withAddress, { text: `  ${email}`, paint: theme.paint.dim }]
  return [withEmail, withAddress].find((line) => displayWidth(line) < room) ?? withoutAddress
}

/** Names the environments in use. Live is red, since it reaches people and costs money. */
const badge = (environments: readonly Environment[], theme: Theme): Span[] =>
  environments.length === 0
    ? []
    : [
        ...environments.flatMap((environment, index) => [
          index === 0 ? '' : '+',
          environmentSpan(environment, theme),
        ]),
        '  ',
      ]

/** Lists the tabs; if they do not all fit, those around the current one, and a mark where there are more. */
function tabsLine(screens: ScreenTitles, shell: Shell, width: number, { paint, symbols }: Theme): Line {
  const texts = screenNames.map((name) => `${screenDigit(name)} ${screens[name].title}`.trim())
  const current = screenNames.indexOf(shell.screen)
  const widths = texts.map((text) => text.length + 2)
  const widthOf = (from: number, to: number) =>
    widths.slice(from, to).reduce((sum, value) => sum + value, 0) +
    (from > 0 ? 1 : 0) +
    (to < texts.length ? 1 : 0)
  let first = 0
  while (widthOf(first, current + 1) > width) first++
  let end = current + 1
  while (end < texts.length && widthOf(first, end + 1) <= width) end++
  const more = (isNeeded: boolean) => (isNeeded ? [{ text: symbols.ellipsis, paint: paint.dim }] : [])
  return [
    ...more(first > 0),
    ...texts.slice(first, end).map((text, index) => optionSpan(text, first + index === current, paint)),
    ...more(end < texts.length),
  ]
}

/** Formats a time of day, to the second. */
export const clockText = (ms: number) => {
  const date = new Date(ms)
  return [date.getHours(), date.getMinutes(), date.getSeconds()]
    .map((part) => String(part).padStart(2, '0'))
    .join(':')
}
