import { Box } from 'ink'
import {
  amountText,
  emptyProjects,
  paneTitle,
  projectColumns,
  type ProjectRow,
} from '../lines/application.ts'
import { Lines } from '../components/Lines.tsx'
import { ListTable } from '../components/ListTable.tsx'
import { useConsole } from '../console-context.ts'
import { useKeys } from '../hooks/use-keys.ts'
import type { List } from '../hooks/use-list.ts'
import type { Handler } from '../key-router.ts'
import { editProjectDialog, newProjectDialog, removeProjectDialog } from './project-dialogs.ts'

type Props = {
  list: List<ProjectRow>
  count: number
  /** Limit of the plan; undefined until it is loaded. */
  countMax: number | undefined
  width: number
  open(): void
  onCreated(id: string): void
}

/** Pane with the developer's projects. */
export function ProjectsPane({ list, count, countMax, width, open, onCreated }: Props) {
  const console = useConsole()
  const { theme, openDialog, copy } = console
  const { selected, isActive } = list
  const project = selected?.project ?? null
  useKeys(
    'apps',
    {
      open: selected && open,
      create: withinPlan(count, countMax, 'projects', () => openDialog(newProjectDialog(console, onCreated))),
      edit: project && (() => openDialog(editProjectDialog(console, project))),
      remove:
        project &&
        (project.applicationCount > 0
          ? { unavailable: `the project still has ${appCountText(project.applicationCount)}` }
          : () => openDialog(removeProjectDialog(console, project))),
      copy: project && { run: () => copy(project.id, 'project id'), label: 'copy id' },
    },
    { isActive },
  )
  return (
    <Box flexDirection="column" width={width} flexShrink={0}>
      <Lines
        lines={[paneTitle('Projects', amountText(count, countMax), isActive, width, theme)]}
        width={width}
      />
      <ListTable list={list} columns={projectColumns} width={width} empty={emptyProjects} />
    </Box>
  )
}

const appCountText = (count: number) => (count === 1 ? 'one application' : `${count} applications`)

/** Returns the handler, or the reason why it is unavailable once the limit of the plan is reached. */
export const withinPlan = (
  count: number,
  countMax: number | undefined,
  nouns: 'projects' | 'applications',
  run: () => void,
): Handler =>
  countMax !== undefined && count >= countMax
    ? { unavailable: `the plan allows at most ${countMax} ${nouns}` }
    : run
