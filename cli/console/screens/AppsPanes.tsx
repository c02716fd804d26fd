import { Box } from 'ink'
import { useMemo } from 'react'
import type { Application } from '../../client/resources.ts'
import { appFacts, projectFacts, projectRows, type ProjectRow } from '../lines/application.ts'
import { Lines } from '../components/Lines.tsx'
import { Rule } from '../components/Rule.tsx'
import { LoadingOrError } from '../components/LoadingOrError.tsx'
import { useConsole } from '../console-context.ts'
import { useApplications } from '../hooks/use-applications.ts'
import { usePersistentState } from '../hooks/use-persistent-state.ts'
import { useKeys } from '../hooks/use-keys.ts'
import { useList } from '../hooks/use-list.ts'
import { useNow } from '../hooks/use-now.ts'
import { useProjects } from '../hooks/use-projects.ts'
import { useBreadcrumbs, useOnlyEnvironment } from '../hooks/use-shell.ts'
import { usePendingSelection } from '../hooks/use-pending-selection.ts'
import { useResource } from '../hooks/use-resource.ts'
import type { IssuedCredentialSet } from '../issued-credentials.ts'
import type { ScreenProps } from '../screen.ts'
import { ApplicationsPane } from './ApplicationsPane.tsx'
import { ProjectsPane } from './ProjectsPane.tsx'

type Props = ScreenProps & { onIssued(issued: IssuedCredentialSet): void; open(appId: string): void }

const factsHeight = 5

/** Shows projects on the left and the selected one's applications on the right; in a small terminal, one of the two. */
export function AppsPanes({ width, height, isCompact, onIssued, open }: Props) {
  const { theme } = useConsole()
  const nowMs = useNow()
  const projects = useProjects()
  const applications = useApplications()
  const limits = useResource('/v1/developer/me', {}, { intervalMs: 30_000 }).data?.limits
  const onlyEnvironment = useOnlyEnvironment()
  const [pane, setPane] = usePersistentState<'projects' | 'apps'>('apps pane', 'projects')
  const appsByProject = useMemo(
    () => Map.groupBy(applications.data ?? [], ({ projectId }) => projectId),
    [applications.data],
  )
  const bodyHeight = isCompact ? height : height - factsHeight
  const shownApps = (applications.data ?? []).filter(
    ({ environment }) => onlyEnvironment === undefined || environment === onlyEnvironment,
  )
  const projectList = useList<ProjectRow>({
    name: 'projects',
    rows: projectRows(projects.data ?? []),
    height: bodyHeight - 2,
    getRowId: ({ id }) => id,
    // A filter with an application's name finds its project.
    getFilterText: ({ id, name, project }) =>
      [name, id, project?.description, ...(appsByProject.get(id) ?? []).map((app) => app.name)].join(' '),
    isActive: pane === 'projects' || projects.data?.length === 0,
  })
  const { selected } = projectList
  const project = selected?.project ?? null
  const isAppsPaneActive = pane === 'apps' && selected !== null
  const appList = useList<Application>({
    name: `apps ${selected?.id ?? ''}`,
    rows: shownApps.filter(({ projectId }) => project === null || projectId === project.id),
    height: bodyHeight - 2,
    getRowId: ({ id }) => id,
    getFilterText: ({ id, name, environment, status }) => `${name} ${environment} ${status} ${id}`,
    isActive: isAppsPaneActive,
  })
  const selectProject = usePendingSelection('project', projectList)
  const selectApp = usePendingSelection('app', appList)
  useBreadcrumbs(isAppsPaneActive ? [selected.name] : [])
  useKeys('detail', {
    nextPane: isAppsPaneActive || selected === null ? undefined : () => setPane('apps'),
    previousPane: isAppsPaneActive ? () => setPane('projects') : undefined,
    back: isAppsPaneActive && appList.filter === '' ? () => setPane('projects') : undefined,
  })
  if (projects.data === undefined || applications.data === undefined)
    return (
      <LoadingOrError
        polled={projects.data === undefined ? projects : applications}
        width={width}
        height={height}
      />
    )

  const isSinglePane = isCompact || projects.data.length === 0
  const leftWidth = Math.min(48, Math.max(26, Math.floor(width / 3)))
  const left = (
    <ProjectsPane
      list={projectList}
      count={projects.data.length}
      countMax={limits?.projects}
      width={isSinglePane ? width : leftWidth - 1}
      open={() => setPane('apps')}
      onCreated={(id) => {
        selectProject(id)
        setPane('apps')
      }}
    />
  )
  if (selected === null) return left
  const right = (
    <ApplicationsPane
      project={project}
      projects={projects.data}
      list={appList}
      count={applications.data.length}
      countMax={limits?.applications}
      width={isSinglePane ? width : width - leftWidth - 1}
      open={open}
      onCreated={(issued, id) => {
        selectApp(id)
        onIssued(issued)
      }}
    />
  )
  if (isSinglePane) return isAppsPaneActive ? right : left
  const app = isAppsPaneActive ? appList.selected : null
  const facts =
    app !== null
      ? appFacts(app, theme, nowMs)
      : project === null
        ? [{ text: ' Applications of every project. Select a project to change it.', paint: theme.paint.dim }]
        : projectFacts(project, theme, nowMs)
  const bar = { text: theme.symbols.bar, paint: theme.paint.dim }
  return (
    <Box flexDirection="column" width={width} height={height}>
      <Box flexDirection="row" width={width} height={bodyHeight} flexShrink={0}>
        {left}
        <Lines lines={Array.from({ length: bodyHeight }, () => [' ', bar])} width={2} />
        {right}
      </Box>
      <Rule width={width} title={(app ?? selected).name} />
      <Lines lines={facts} width={width} height={factsHeight - 1} />
    </Box>
  )
}
