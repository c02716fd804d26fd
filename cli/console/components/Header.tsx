import { useConsole, type Console, type ServerState, type Shell } from '../console-context.ts'
import { useApplications } from '../hooks/use-applications.ts'
import { useNow } from '../hooks/use-now.ts'
import { useShell } from '../hooks/use-shell.ts'
import { screenNames, type ScreenName } from '../keymap.ts'
import type { Screen } from '../screen.ts'
import { justify, displayWidth, type Line, type Span } from '../spans.ts'
import type { Theme, Tone } from '../theme.ts'
import { Lines } from './Lines.tsx'

const serverTones: Record<ServerState, Tone> = {
  operational: 'good',
  'not ready': 'warning',
  unreachable: 'bad',
}

type Screens = Readonly<Record<ScreenName, Pick<Screen, 'title'>>>

/** Two lines: the server and its state, then the tabs of the screens. */
export function Header({ screens, width }: { screens: Screens; width: number }) {
  const console = useConsole()
  const shell = useShell()
  const nowMs = useNow()
  const { data: applications = [] } = useApplications()
  const { theme } = console
  const environments = shell.environment
    ? [shell.environment]
    : (['live', 'test'] as const).filter((candidate) =>
        applications.some(({ environment }) => environment === candidate),
      )
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
        tabsLine(screens, shell, theme),
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
const badge = (environments: readonly ('live' | 'test')[], { paint }: Theme): Span[] =>
  environments.length === 0
    ? []
    : [
        ...environments.flatMap((environment, index) => [
          index === 0 ? '' : '+',
          environment === 'live' ? { text: 'LIVE', paint: paint.red } : { text: 'test', paint: paint.cyan },
        ]),
        '  ',
      ]

function tabsLine(screens: Screens, shell: Shell, { paint }: Theme): Line {
  const tabs: Span[] = screenNames.map((name, index) => {
    const { title } = screens[name]
    return name === shell.screen
      ? { text: `[${index + 1} ${title}]`, paint: paint.bold }
      : { text: ` ${index + 1} ${title} `, paint: paint.dim }
  })
  return tabs
}

const clockText = (ms: number) => {
  const date = new Date(ms)
  return [date.getHours(), date.getMinutes(), date.getSeconds()]
    .map((part) => String(part).padStart(2, '0'))
    .join(':')
}
