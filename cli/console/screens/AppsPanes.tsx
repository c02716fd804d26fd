import { Box } from 'ink'
import { useMemo } from 'react'
import type { Application, Project } from '../../client/resources.ts'
import { appFacts, projectFacts } from '../lines/application.ts'
import { Lines } from '../components/Lines.tsx'
import { Rule } from '../components/Rule.tsx'
import { Waiting } from '../components/Waiting.tsx'
import { useConsole } from '../console-context.ts'
import { useApplications } from '../hooks/use-applications.ts'
import { useKept } from '../hooks/use-persistent-state.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { useNow } from '../hooks/use-now.ts'
import { usePlan, useProjects } from '../hooks/use-projects.ts'
import { useCrumbs } from '../hooks/use-shell.ts'
import { useWanted } from '../hooks/use-pending-selection.ts'
import type { Issued } from '../issued.ts'
import type { ScreenProps } from '../screen.ts'
import { ApplicationsPane } from './ApplicationsPane.tsx'
import { ProjectsPane } from './ProjectsPane.tsx'

type Props = ScreenProps & { issue(issued: Issued): void; open(appId: string): void }

const factsHeight = 5

/** Projects on the left, the applications of the selected one on the right; where there is little room, one of the two. */
export function AppsPanes({ width, height, isCompact, issue, open }: Props) {
  const { theme } = useConsole()
  const nowMs = useNow()
  const projects = useProjects()
  const applications = useApplications()
  const limits = usePlan()?.limits
  const [pane, setPane] = useKept<'projects' | 'apps'>('apps pane', 'projects')
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
    isActive: pane === 'projects' || projects.data?.length === 0,
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
  const wantProject = useWanted('project', projectList)
  const wantApp = useWanted('app', appList)
  useCrumbs(isOnApps ? [project.name] : [])
  const turn =
    project === null && pane === 'projects' ? undefined : () => setPane(pane === 'apps' ? 'projects' : 'apps')
  useKeys('detail', {
    nextPane: turn,
    previousPane: turn,
    back: isOnApps && appList.filter === '' ? () => setPane('projects') : undefined,
  })
  if (projects.data === undefined || applications.data === undefined)
    return (
      <Waiting live={projects.data === undefined ? projects : applications} width={width} height={height} />
    )

  const isAlone = isCompact || projects.data.length === 0
  const leftWidth = Math.min(48, Math.max(26, Math.floor(width / 3)))
  const left = (
    <ProjectsPane
      list={projectList}
      count={projects.data.length}
      countMax={limits?.projects}
      width={isAlone ? width : leftWidth - 1}
      open={() => setPane('apps')}
      created={(id) => {
        wantProject(id)
        setPane('apps')
      }}
    />
  )
  if (project === null) return left
  const right = (
    <ApplicationsPane
      project={project}
      list={appList}
      count={applications.data.length}
      countMax={limits?.applications}
      width={isAlone ? width : width - leftWidth - 1}
      open={open}
      created={(issued, id) => {
        wantApp(id)
        issue(issued)
      }}
    />
  )
  if (isAlone) return isOnApps ? right : left
  const app = isOnApps ? appList.selected : null
  const facts = app === null ? projectFacts(project, theme, nowMs) : appFacts(app, theme, nowMs)
  const bar = { text: theme.symbols.bar, paint: theme.paint.dim }
  return (
    <Box flexDirection="column" width={width} height={height}>
      <Box flexDirection="row" width={width} height={bodyHeight} flexShrink={0}>
        {left}
        <Lines lines={Array.from({ length: bodyHeight }, () => [' ', bar])} width={2} />
        {right}
      </Box>
      <Rule width={width} title={(app ?? project).name} />
      <Lines lines={facts} width={width} height={factsHeight - 1} />
    </Box>
  )
}
