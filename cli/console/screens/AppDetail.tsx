import { Box } from 'ink'
import type { Application } from '../../client/resources.ts'
import { appStatus, environmentSpan } from '../lines/application.ts'
import { Lines } from '../components/Lines.tsx'
import { Waiting } from '../components/Waiting.tsx'
import { useConsole } from '../console-context.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useLive } from '../hooks/use-polled.ts'
import { useProjects } from '../hooks/use-projects.ts'
import { useCrumbs } from '../hooks/use-shell.ts'
import type { Issued } from '../issued.ts'
import type { Handler } from '../key-router.ts'
import type { ScreenProps } from '../screen.ts'
import { fitSpan, spread, widthOf, type Span } from '../spans.ts'
import { AppActivity } from './AppActivity.tsx'
import { AppCredentials } from './AppCredentials.tsx'
import { AppQuickStart } from './AppQuickStart.tsx'
import { AppWebhooks } from './AppWebhooks.tsx'
import { editAppDialog, removeAppDialog, toggleAppDialog } from './app-dialogs.ts'

const tabTitles = {
  credentials: 'Credentials',
  activity: 'Activity',
  webhooks: 'Webhooks',
  quickStart: 'Quick start',
} as const

export type AppTab = keyof typeof tabTitles

const tabs = ['credentials', 'activity', 'webhooks', 'quickStart'] as const satisfies readonly AppTab[]

type Props = ScreenProps & {
  id: string
  tab: AppTab
  setTab(tab: AppTab): void
  issue(issued: Issued): void
  close(): void
}

/** One application: what proves a call to be its own, what it did, who is told of it, and how to call it. */
export function AppDetail(props: Props) {
  const { width, height, id, close } = props
  const { api } = useConsole()
  const app = useLive(
    `app ${id}`,
    async () => (await api.asDeveloper('GET', '/v1/applications/:id', { params: { id } })).data,
  )
  const projectId = app.data?.projectId
  const project = useProjects().data?.find((one) => one.id === projectId)
  useCrumbs(app.data === undefined ? [id] : [project?.name ?? '', app.data.name], app.data?.environment)
  useKeys('detail', { back: close })
  if (app.data === undefined) return <Waiting live={app} width={width} height={height} />
  return <Found {...props} app={app.data} />
}

/** What the keys of the application do, whichever tab is shown. */
type AppKeys = { [Action in 'nextTab' | 'previousTab' | 'edit' | 'toggle' | 'remove']: Handler }

export type TabProps = {
  app: Application
  /** To be put in force together with the tab's own. */
  keys: AppKeys
  width: number
  height: number
  issue(issued: Issued): void
}

function Found({ app, width, height, isCompact, tab, setTab, issue, close }: Props & { app: Application }) {
  const console = useConsole()
  const { theme, ask } = console
  const { paint } = theme
  const at = tabs.indexOf(tab)
  const tabBy = (by: number) => setTab(tabs[(at + by + tabs.length) % tabs.length] ?? 'credentials')
  const keys: AppKeys = {
    nextTab: () => tabBy(1),
    previousTab: () => tabBy(-1),
    edit: () => ask(editAppDialog(console, app)),
    toggle: {
      run: () => ask(toggleAppDialog(console, app)),
      label: app.status === 'active' ? 'disable' : 'enable',
    },
    remove: () => ask(removeAppDialog(console, app, close)),
  }
  const state: Span[] = [environmentSpan(app.environment, theme), '  ', appStatus(app, theme), ' ']
  const nameWidth = width - widthOf(state) - 2
  const heading: Span[] = tabs.map((one) =>
    one === tab
      ? { text: `[${tabTitles[one]}]`, paint: paint.bold }
      : { text: ` ${tabTitles[one]} `, paint: paint.dim },
  )
  const top = [
    [' ', fitSpan({ text: app.name, paint: paint.bold }, nameWidth, theme.symbols.more), ' ', ...state],
    spread(heading, isCompact ? '' : { text: `${app.id} `, paint: paint.dim }, width),
    '',
  ]
  const Tab = views[tab]
  return (
    <Box flexDirection="column" width={width} height={height}>
      <Lines lines={top} width={width} />
      <Tab
        key={`${app.id} ${tab}`}
        app={app}
        keys={keys}
        width={width}
        height={height - top.length}
        issue={issue}
      />
    </Box>
  )
}

const views = {
  credentials: AppCredentials,
  activity: AppActivity,
  webhooks: AppWebhooks,
  quickStart: AppQuickStart,
}
