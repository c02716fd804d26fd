import { Box } from 'ink'
import type { Application, Project } from '../../client/resources.ts'
import { amountText, appColumns, emptyApps, paneTitle } from '../lines/application.ts'
import { Lines } from '../components/Lines.tsx'
import { ListTable } from '../components/ListTable.tsx'
import { useConsole } from '../console-context.ts'
import { useKeys } from '../hooks/use-keys.ts'
import type { List } from '../hooks/use-list.ts'
import { useNow } from '../hooks/use-now.ts'
import type { IssuedCredentialSet } from '../issued-credentials.ts'
import { editAppDialog, newAppDialog, removeAppDialog, toggleAppDialog } from './app-dialogs.ts'
import { withinPlan } from './ProjectsPane.tsx'

type Props = {
  /** Null: the applications of all projects. */
  project: Project | null
  projects: readonly Project[]
  list: List<Application>
  /** Applications in all projects, which the plan limits. */
  count: number
  countMax: number | undefined
  width: number
  open(id: string): void
  onCreated(issued: IssuedCredentialSet, id: string): void
}

/** Pane with the applications of a project, or of all. */
export function ApplicationsPane({
  project,
  projects,
  list,
  count,
  countMax,
  width,
  open,
  onCreated,
}: Props) {
  const console = useConsole()
  const { theme, openDialog, copy } = console
  const nowMs = useNow()
  const { selected: app, isActive } = list
  useKeys(
    'apps',
    {
      open: app && (() => open(app.id)),
      create: withinPlan(count, countMax, 'applications', () =>
        openDialog(newAppDialog(console, project === null ? projects : [project], onCreated)),
      ),
      edit: app && (() => openDialog(editAppDialog(console, app))),
      toggle: app && {
        run: () => openDialog(toggleAppDialog(console, app)),
        label: app.status === 'active' ? 'disable' : 'enable',
      },
      remove: app && (() => openDialog(removeAppDialog(console, app))),
      copy: app && { run: () => copy(app.id, 'application id'), label: 'copy id' },
    },
    { isActive },
  )
  const title = project === null ? 'All applications' : `Applications in ${project.name}`
  const amount = `${amountText(count, countMax)} in all`
  const projectName =
    project === null
      ? ({ projectId }: Application) => projects.find(({ id }) => id === projectId)?.name ?? '-'
      : null
  return (
    <Box flexDirection="column" width={width} flexShrink={0}>
      <Lines lines={[paneTitle(title, amount, isActive, width, theme)]} width={width} />
      <ListTable
        list={list}
        columns={appColumns(theme, nowMs, projectName)}
        width={width}
        empty={emptyApps(isActive)}
      />
    </Box>
  )
}
