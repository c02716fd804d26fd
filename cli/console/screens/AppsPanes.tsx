import { Box } from 'ink'
import { useMemo } from 'react'
import type { Application, Project } from '../../resources.ts'
import { Lines } from '../components/Lines.tsx'
import { ListTable } from '../components/ListTable.tsx'
import { Rule } from '../components/Rule.tsx'
import { Waiting } from '../components/Waiting.tsx'
import { useConsole } from '../console-context.ts'
import {
  appColumns,
  appFacts,
  emptyApps,
  emptyProjects,
  paneTitle,
  projectColumns,
  projectFacts,
} from '../app-lines.ts'
import { useApplications } from '../hooks/use-applications.ts'
import { useFreshTarget } from '../hooks/use-fresh-target.ts'
import { useKept } from '../hooks/use-kept.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { useNow } from '../hooks/use-now.ts'
import { usePlan, useProjects } from '../hooks/use-projects.ts'
import { useCrumbs } from '../hooks/use-shell.ts'
import { useWanted } from '../hooks/use-wanted.ts'
import type { Issued } from '../issued.ts'
import type { Handler } from '../key-router.ts'
import type { ScreenProps } from '../screen.ts'
import { editAppDialog, newAppDialog, removeAppDialog, toggleAppDialog } from './app-dialogs.ts'
import { editProjectDialog, newProjectDialog, removeProjectDialog } from './project-dialogs.ts'

type Props = ScreenProps & { issue(issued: Issued): void; open(appId: string): void }

const factsHeight = 5

/** Projects on the left, the applications of the selected one on the right; where there is little room, one of the two. */
export function AppsPanes({ width, height, isCompact, target, issue, open }: Props) {
  const console = useConsole()
  const wantedProjectId = useFreshTarget('apps panes', target)?.projectId
  const { theme, ask, copy } = console
  const nowMs = useNow(10_000)
  const projects = useProjects()
  const applications = useApplications()
  const limits = usePlan()?.limits
  const [pane, setPane] = useKept<'projects' | 'apps'>(
    'apps pane',
    'projects',
    wantedProjectId === undefined ? undefined : 'apps',
  )
  const appsOf = useMemo(
    () => Map.groupBy(applications.data ?? [], ({ projectId }) => projectId),
    [applications.data],
  )
  const bodyHeight = isCompact ? height : height - factsHeight
  const projectList = useList<Project>({
    name: 'projects',
    rows: projects.data ?? [],
    height: bodyHeight - 2,
    idOf: ({ id }) => id,
    // Whoever looks for an application need not know which project it is in.
    textOf: ({ id, name, description }) =>
      [name, id, description, ...(appsOf.get(id) ?? []).map((app) => app.name)].join(' '),
    isActive: pane === 'projects',
  })
  const project = projectList.selected
  const isOnApps = pane === 'apps' && project !== null
  const appList = useList<Application>({
    name: `apps ${project?.id ?? ''}`,
    rows: (project && appsOf.get(project.id)) ?? [],
    height: bodyHeight - 2,
    idOf: ({ id }) => id,
    textOf: ({ id, name, environment, status }) => `${name} ${environment} ${status} ${id}`,
    isActive: isOnApps,
  })
  const app = appList.selected
  const wantProject = useWanted('project', projectList, wantedProjectId)
  const wantApp = useWanted('app', appList)
  const counts = { projects: projects.data?.length ?? 0, applications: applications.data?.length ?? 0 }
  useCrumbs(isOnApps ? [project.name] : [])

  const withinPlan = (kind: 'projects' | 'applications', run: () => void): Handler =>
    limits !== undefined && counts[kind] >= limits[kind]
      ? { unavailable: `the plan allows no more than ${limits[kind]} ${kind}` }
      : run
  useKeys(
    'apps',
    {
      open: project === null ? undefined : () => setPane('apps'),
      create: withinPlan('projects', () =>
        ask(
          newProjectDialog(console, (id) => {
            wantProject(id)
            setPane('apps')
          }),
        ),
      ),
      edit: project === null ? undefined : () => ask(editProjectDialog(console, project)),
      remove:
        project === null
          ? undefined
          : project.applicationCount > 0
            ? { unavailable: `the project still has ${manyApps(project.applicationCount)}` }
            : () => ask(removeProjectDialog(console, project)),
      copy: project === null ? undefined : { run: () => copy(project.id, 'project id'), label: 'copy id' },
    },
    { isActive: !isOnApps },
  )
  useKeys(
    'apps',
    {
      open: app === null ? undefined : () => open(app.id),
      create:
        project === null
          ? undefined
          : withinPlan('applications', () =>
              ask(
                newAppDialog(console, project, (issued, id) => {
                  wantApp(id)
                  issue(issued)
                }),
              ),
            ),
      edit: app === null ? undefined : () => ask(editAppDialog(console, app)),
      toggle:
        app === null
          ? undefined
          : {
              run: () => ask(toggleAppDialog(console, app)),
              label: app.status === 'active' ? 'disable' : 'enable',
            },
      remove: app === null ? undefined : () => ask(removeAppDialog(console, app)),
      copy: app === null ? undefined : { run: () => copy(app.id, 'application id'), label: 'copy id' },
    },
    { isActive: isOnApps },
  )
  const turn = project === null ? undefined : () => setPane(isOnApps ? 'projects' : 'apps')
  useKeys('detail', {
    nextPane: turn,
    previousPane: turn,
    back: isOnApps && appList.filter === '' ? () => setPane('projects') : undefined,
  })

  if (projects.data === undefined || applications.data === undefined)
    return (
      <Waiting live={projects.data === undefined ? projects : applications} width={width} height={height} />
    )
  const leftWidth = isCompact ? width : Math.min(48, Math.max(26, Math.floor(width / 3)))
  const rightWidth = isCompact ? width : width - leftWidth - 1
  const isEmpty = counts.projects === 0
  const left = (
    <Box flexDirection="column" width={isEmpty ? width : leftWidth} flexShrink={0}>
      <Lines
        lines={[paneTitle('Projects', counts.projects, limits?.projects, !isOnApps, theme)]}
        width={isEmpty ? width : leftWidth}
      />
      <ListTable
        list={projectList}
        columns={projectColumns}
        width={isEmpty || isCompact ? width : leftWidth - 1}
        empty={emptyProjects}
      />
    </Box>
  )
  const right = (
    <Box flexDirection="column" width={rightWidth} flexShrink={0}>
      <Lines
        lines={[paneTitle('Applications', counts.applications, limits?.applications, isOnApps, theme)]}
        width={rightWidth}
      />
      <ListTable
        list={appList}
        columns={appColumns(theme, nowMs)}
        width={rightWidth}
        empty={emptyApps(isOnApps)}
      />
    </Box>
  )
  if (isEmpty) return left
  if (isCompact) return isOnApps ? right : left
  const bar = { text: theme.symbols.bar, paint: theme.paint.dim }
  const chosen = isOnApps && app !== null ? app : project
  return (
    <Box flexDirection="column" width={width} height={height}>
      <Box flexDirection="row" width={width} height={bodyHeight} flexShrink={0}>
        {left}
        <Lines lines={Array.from({ length: bodyHeight }, () => bar)} width={1} />
        {right}
      </Box>
      <Rule width={width} title={chosen?.name ?? ''} />
      <Lines
        lines={isOnApps && app !== null ? appFacts(app, theme, nowMs) : projectFacts(project, theme, nowMs)}
        width={width}
        height={factsHeight - 1}
      />
    </Box>
  )
}

const manyApps = (count: number) => (count === 1 ? 'one application' : `${count} applications`)
