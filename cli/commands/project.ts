import type { CliCommand } from './command.ts'
import { confirm } from '../terminal/confirm.ts'
import {
  addFieldOptions,
  nullableOption,
  nameOption,
  readChanges,
  type FieldOptions,
  type OptionValues,
} from './field-options.ts'
import { findProject, listProjects } from '../client/find.ts'
import { idempotencyHeaders, idempotencyKeyOption, type IdempotencyOption } from '../client/idempotency.ts'
import type { Output } from '../terminal/output.ts'
import type { Project } from '../client/resources.ts'
import type { Route } from '../client/routes.ts'
import { addListOptions, printList, readList, type ListOptions } from '../client/lists.ts'
import { kept, optional } from '../terminal/table.ts'
import { shellWord } from '../../src/shared/shell-word.ts'
import { printable } from '../terminal/text.ts'
import { duplicateFlag, requireNewName, type DuplicateOption } from './duplicates.ts'

type CreateOptions = IdempotencyOption & DuplicateOption & { description?: string }

const changeOptions: FieldOptions<Route<'PATCH', '/v1/projects/:id'>['body']> = {
  name: nameOption,
  description: nullableOption('-d, --description <text>', 'new description, up to 280 characters'),
}

/** Registers the commands for projects. */
export function addProjectCommands(program: CliCommand) {
  const project = program
    .command('project')
    .alias('projects')
    .description('projects, which group applications')

  project
    .command('create')
    .alias('new')
    .argument('<name>', 'name of the project, 1 to 80 characters')
    .description('create a project')
    .option('-d, --description <text>', 'description, up to 280 characters')
    .option(duplicateFlag, 'create it even if you have a project of this name')
    .addOption(idempotencyKeyOption())
    .examples('otpd project create shop', "otpd project create blog --description 'Logins of the blog'")
    .run(async ({ api, output }, name: string, options: CreateOptions) => {
      const { description } = options
      if (options.allowDuplicate !== true) await requireNewName('project', name, () => listProjects(api))
      const body = { name, ...(description !== undefined && { description }) }
      const call = { body, headers: idempotencyHeaders(options) }
      const response = await api.asDeveloper('POST', '/v1/projects', call)
      const { data } = response
      output.printResult(
        response.body,
        () =>
          output.details(output.done(`Project ${output.paint.bold(printable(data.name))}`), [
            ['Id', data.id],
            ['Description', data.description && printable(data.description)],
          ]),
        [data.id],
      )
      output.suggestNext(`otpd app create web --project ${shellWord(name)} --env live --env-file .env.otpd`)
    })

  addListOptions(project.command('list').alias('ls').description('list your projects, newest first'))
    .examples('otpd project list', 'otpd project list --json')
    .run(async ({ api, output }, options: ListOptions) => {
      const page = await readList(options, (query) => api.asDeveloper('GET', '/v1/projects', { query }))
      printList(output, page, (projects) => listText(projects, output))
    })

  project
    .command('get')
    .alias('show')
    .argument('<project>', 'id or name of the project')
    .description('show a project')
    .examples('otpd project get shop')
    .run(async ({ api, output }, idOrName: string) => {
      const id = await findProject(api, idOrName)
      const response = await api.asDeveloper('GET', '/v1/projects/:id', { params: { id } })
      output.printResult(response.body, () => projectText(response.data, output), [response.data.id])
    })

  addFieldOptions(project.command('update'), changeOptions)
    .argument('<project>', 'id or name of the project')
    .description('change the name or description of a project')
    .examples("otpd project update shop --description 'Sign-in and checkout'")
    .run(async ({ connect, output }, idOrName: string, options: OptionValues) => {
      const body = readChanges(options, changeOptions)
      const { api } = connect()
      const id = await findProject(api, idOrName)
      const response = await api.asDeveloper('PATCH', '/v1/projects/:id', { params: { id }, body })
      output.printResult(response.body, () =>
        [output.done('Project updated'), projectText(response.data, output)].join('\n'),
      )
    })

  project
    .command('delete')
    .alias('rm')
    .argument('<project>', 'id or name of the project')
    .description('delete a project without applications')
    .examples('otpd project delete blog --yes')
    .run(async (context, idOrName: string) => {
      const { api, output } = context
      const id = await confirm(context, {
        find: () => findProject(api, idOrName),
        async describe(id) {
          const { data } = await api.asDeveloper('GET', '/v1/projects/:id', { params: { id } })
          return { question: `Delete the project ${printable(data.name)}?`, name: data.name }
        },
      })
      const response = await api.asDeveloper('DELETE', '/v1/projects/:id', { params: { id } })
      output.printResult(response.body, () =>
        output.done(`Project ${output.paint.bold(printable(idOrName))} deleted`),
      )
    })
}

function listText(projects: Project[], { formatTable, columnTime, timeHeading }: Output) {
  if (projects.length === 0) return 'No projects yet. Create one: otpd project create NAME'
  return formatTable(
    ['NAME', kept('APPS'), optional(timeHeading('CREATED')), optional('DESCRIPTION'), 'ID'],
    projects.map(({ id, name, applicationCount, createdAt, description }) => [
      printable(name),
      String(applicationCount),
      columnTime(createdAt),
      printable(description ?? ''),
      id,
    ]),
  )
}

function projectText(project: Project, { details, paint, formatTime }: Output) {
  return details(paint.bold(printable(project.name)), [
    ['Id', project.id],
    ['Description', project.description && printable(project.description)],
    ['Applications', String(project.applicationCount)],
    ['Created', formatTime(project.createdAt)],
    ['Updated', formatTime(project.updatedAt)],
  ])
}
