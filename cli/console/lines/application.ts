import { applicationFields } from '../../../src/shared/application-fields.ts'
import { keysOf, type FieldDefinition } from '../../../src/shared/fields.ts'
import type { Application, Project } from '../../client/resources.ts'
import { formatSetting } from '../../terminal/setting-text.ts'
import { recentTime } from '../../terminal/text.ts'
import type { Column } from '../columns.ts'
import type { Environment } from '../console-context.ts'
import { factLines, timeWithAge, type Fact } from './facts.ts'
import { justify, type Line, type Span } from '../spans.ts'
import { statusSpan, type Theme } from '../theme.ts'

/** Formats the environment; live is red everywhere. */
export const environmentSpan = (environment: Environment, { paint }: Theme): Span =>
  environment === 'live' ? { text: 'LIVE', paint: paint.red } : { text: 'test', paint: paint.cyan }

/** Formats the title of a pane, with the amount used of the plan at the right. */
export const paneTitle = (
  title: string,
  amount: string,
  isActive: boolean,
  width: number,
  { paint }: Theme,
): Line =>
  justify(
    { text: ` ${title}`, paint: isActive ? paint.bold : paint.dim },
    { text: `${amount} `, paint: paint.dim },
    width,
  )

/** Formats an amount, with the limit of the plan if it is known: `3 of 10`. */
export const amountText = (count: number, limit: number | undefined) =>
  limit === undefined ? String(count) : `${count} of ${limit}`

/** A row of the list of projects: a project, or all of them together, whose `project` is null. */
export type ProjectRow = Pick<Project, 'id' | 'name' | 'applicationCount'> & { project: Project | null }

/** Returns the rows of the list of projects; the first one is all of them together. */
export const projectRows = (projects: readonly Project[]): ProjectRow[] => [
  ...(projects.length === 0 ? [] : [allProjects(projects)]),
  ...projects.map((project) => ({ ...project, project })),
]

const allProjects = (projects: readonly Project[]): ProjectRow => ({
  id: 'all',
  name: 'All applications',
  applicationCount: projects.reduce((sum, { applicationCount }) => sum + applicationCount, 0),
  project: null,
})

export const projectColumns: Column<ProjectRow>[] = [
  { title: 'NAME', width: 12, grow: 1, cell: ({ name }) => name },
  { title: 'APPS', width: 4, align: 'right', cell: ({ applicationCount }) => String(applicationCount) },
]

/** Returns the columns of a list of applications; with their projects, if `projectName` tells them. */
export const appColumns = (
  theme: Theme,
  nowMs: number,
  projectName: ((app: Application) => string) | null,
): Column<Application>[] => [
  { title: 'NAME', width: 20, grow: 1, maxWidth: 60, cell: ({ name }) => name },
  ...(projectName === null
    ? []
    : [{ title: 'PROJECT', width: 8, grow: 1, maxWidth: 40, dropPriority: 2, cell: projectName }]),
  { title: 'ENV', width: 4, cell: ({ environment }) => environmentSpan(environment, theme) },
  { title: 'STATUS', width: 10, cell: (app) => statusSpan(app, theme) },
  { title: 'CREATED', width: 11, dropPriority: 1, cell: ({ createdAt }) => recentTime(createdAt, nowMs) },
  { title: 'ID', width: 30, dropPriority: 3, cell: ({ id }) => id },
]

/** Formats the details of a project, one fact per line. */
export const projectFacts = (project: Project, theme: Theme, nowMs: number): Line[] =>
  factLines(
    [
      ['description', project.description ?? { text: 'none', paint: theme.paint.dim }],
      ['created', timeWithAge(project.createdAt, nowMs)],
      ['id', project.id],
    ],
    theme,
  )

/** Formats the details of an application, one fact per line. */
export const appFacts = (app: Application, theme: Theme, nowMs: number): Line[] =>
  factLines(
    [
      ['status', [environmentSpan(app.environment, theme), '  ', statusSpan(app, theme)]],
      ...settingFacts(app, ['otpTtlSeconds']),
      ['created', timeWithAge(app.createdAt, nowMs)],
      ['id', app.id],
    ],
    theme,
  )

/** Returns settings of an application, by default all; those that are not set are null. */
export const settingFacts = (app: Application, names = keysOf(applicationFields)) =>
  names.map((name): Fact => {
    const field: FieldDefinition = applicationFields[name]
    return [field.terminal.consoleLabel, formatSetting(field, app[name])]
  })

export const emptyProjects = [
  'No projects yet. A project groups applications.',
  '',
  'Press n to create a project, and n again for an application; or:',
  '',
  '  otpd project create shop',
  '  otpd app create web --project shop --env live --env-file .env.otpd',
]

/** Returns the text of an empty list of applications. */
export const emptyApps = (isActive: boolean) => [
  'No applications yet.',
  '',
  isActive ? 'Press n to create one.' : 'Press enter, then n to create one.',
]
