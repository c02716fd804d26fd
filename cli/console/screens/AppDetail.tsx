import { Box } from 'ink'
import { keysOf } from '../../../src/shared/fields.ts'
import type { Application } from '../../client/resources.ts'
import { environmentSpan } from '../lines/application.ts'
import { Lines } from '../components/Lines.tsx'
import { LoadingOrError } from '../components/LoadingOrError.tsx'
import { useConsole } from '../console-context.ts'
import { useApplicationCalls } from '../hooks/use-application-calls.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { usePersistentState } from '../hooks/use-persistent-state.ts'
import { useResource } from '../hooks/use-resource.ts'
import { useProjects } from '../hooks/use-projects.ts'
import { useBreadcrumbs } from '../hooks/use-shell.ts'
import type { IssuedCredentialSet } from '../issued-credentials.ts'
import type { ScreenProps } from '../screen.ts'
import { fitSpan, justify, displayWidth, optionSpan, type Span } from '../spans.ts'
import { statusSpan } from '../theme.ts'
import { AppActivity } from './AppActivity.tsx'
import { AppCredentials } from './AppCredentials.tsx'
import { AppPage } from './AppPage.tsx'
import { AppQuickStart } from './AppQuickStart.tsx'
import { AppSend } from './AppSend.tsx'
import { AppTemplates } from './AppTemplates.tsx'
import { AppWebhooks } from './AppWebhooks.tsx'
import type { AppKeys, SentCode } from './app-tab.ts'
import { editAppDialog, removeAppDialog, toggleAppDialog } from './app-dialogs.ts'
import { openPageDialog } from './page-dialog.ts'
import { sendDialog } from './otp-dialogs.ts'

const tabs = {
  credentials: { title: 'Credentials', View: AppCredentials },
  activity: { title: 'Activity', View: AppActivity },
  webhooks: { title: 'Webhooks', View: AppWebhooks },
  page: { title: 'Page', View: AppPage },
  templates: { title: 'Texts', View: AppTemplates },
  send: { title: 'Test', View: AppSend },
  quickStart: { title: 'Quick start', View: AppQuickStart },
}

export type AppTab = keyof typeof tabs

const tabNames = keysOf(tabs)

type Props = ScreenProps & {
  id: string
  tab: AppTab
  setTab(tab: AppTab): void
  onIssued(issued: IssuedCredentialSet): void
  close(): void
}

/** Page of an application, with a tab each for credentials, activity, webhooks, the ready page, texts and the quick start. */
export function AppDetail(props: Props) {
  const { width, height, id, close } = props
  const app = useResource('/v1/applications/:id', { params: { id } })
  const projectId = app.data?.projectId
  const project = useProjects().data?.find((candidate) => candidate.id === projectId)
  useBreadcrumbs(app.data === undefined ? [id] : [project?.name ?? '', app.data.name], app.data?.environment)
  useKeys('detail', { back: close })
  if (app.data === undefined) return <LoadingOrError polled={app} width={width} height={height} />
  return <LoadedApp {...props} app={app.data} />
}

function LoadedApp({ app, width, height, tab, setTab, onIssued, close }: Props & { app: Application }) {
  const console = useConsole()
  const { theme, openDialog } = console
  const { paint } = theme
  const moveTab = (offset: number) =>
    setTab(tabNames.at((tabNames.indexOf(tab) + offset) % tabNames.length) ?? 'credentials')
  const callAsApplication = useApplicationCalls()
  const [sent, setSent] = usePersistentState<SentCode | null>(`apps sent ${app.id}`, null)
  const keys: AppKeys = {
    nextTab: () => moveTab(1),
    previousTab: () => moveTab(-1),
    send: () =>
      callAsApplication(app, (credentials) =>
        openDialog(
          sendDialog(console, app, credentials, (answer) => {
            setSent(answer)
            setTab('send')
          }),
        ),
      ),
    edit: () => openDialog(editAppDialog(console, app)),
    page: () => openPageDialog(console, app),
    toggle: {
      run: () => openDialog(toggleAppDialog(console, app)),
      label: app.status === 'active' ? 'disable' : 'enable',
    },
    remove: () => openDialog(removeAppDialog(console, app, close)),
  }
  const state: Span[] = [environmentSpan(app.environment, theme), '  ', statusSpan(app, theme), ' ']
  const nameWidth = width - displayWidth(state) - 2
  const heading = tabNames.map((name) => optionSpan(tabs[name].title, name === tab, paint))
  const idText = `${app.id} `
  const hasRoom = displayWidth(heading) + idText.length < width
  const headerLines = [
    [' ', fitSpan({ text: app.name, paint: paint.bold }, nameWidth, theme.symbols.ellipsis), ' ', ...state],
    justify(heading, hasRoom ? { text: idText, paint: paint.dim } : '', width),
    '',
  ]
  const { View } = tabs[tab]
  return (
    <Box flexDirection="column" width={width} height={height}>
      <Lines lines={headerLines} width={width} />
      <View
        key={`${app.id} ${tab}`}
        app={app}
        keys={keys}
        sent={sent}
        width={width}
        height={height - headerLines.length}
        onIssued={onIssued}
      />
    </Box>
  )
}
