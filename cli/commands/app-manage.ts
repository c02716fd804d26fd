import type { CliCommand } from './command.ts'
import { applicationFields } from '../../src/shared/application-fields.ts'
import type { Api } from '../client/api.ts'
import { applicationText } from '../client/app-text.ts'
import {
  addFieldOptions,
  nameOption,
  readChanges,
  settingOptions,
  type FieldOptions,
  type OptionValues,
} from './field-options.ts'
import { confirm } from '../terminal/confirm.ts'
import { findApplication, readName } from '../client/find.ts'
import type { Context } from '../context.ts'
import type { Route } from '../client/routes.ts'
import { printable } from '../terminal/text.ts'

type ApplicationChanges = Route<'PATCH', '/v1/applications/:id'>['body']

/** The commands `enable` and `disable` set the status. */
const changeOptions: FieldOptions<Omit<ApplicationChanges, 'status'>> = {
  name: nameOption,
  ...settingOptions(applicationFields),
}

const idOrNameHelp = 'id or name of the application'

/** Registers the commands for an existing application. */
export function addAppManageCommands(app: CliCommand) {
  app
    .command('get')
    .alias('show')
    .argument('<app>', idOrNameHelp)
    .description('show an application')
    .examples('otpd app get web', 'otpd app get web --json')
    .run(async ({ api, output }, idOrName: string) => {
      const id = await findApplication(api, idOrName)
      const response = await api.asDeveloper('GET', '/v1/applications/:id', { params: { id } })
      const { data } = response
      const project = { params: { id: data.projectId } }
      const projectName = output.isForPeople
        ? await readName(api.asDeveloper('GET', '/v1/projects/:id', project))
        : undefined
      output.printResult(response.body, () => applicationText(data, output, projectName), [data.id])
    })

  addFieldOptions(app.command('update'), changeOptions)
    .argument('<app>', idOrNameHelp)
    .description('change the name, the code lifetime, the message settings or the countries')
    .examples(
      'otpd app update web --otp-ttl 120',
      'otpd app update web --locale de --webotp-domain example.com',
      'otpd app update web --default-country GB --countries GB,IE',
    )
    .run(async ({ connect, output }, idOrName: string, options: OptionValues) => {
      const body = readChanges(options, changeOptions)
      const response = await updateApplication(connect().api, idOrName, body)
      output.printResult(response.body, () =>
        [output.done('Application updated'), applicationText(response.data, output)].join('\n'),
      )
    })

  app
    .command('enable')
    .argument('<app>', idOrNameHelp)
    .description('enable a disabled application')
    .examples('otpd app enable web-test')
    .run(async ({ api, output }, idOrName: string) => {
      const response = await updateApplication(api, idOrName, { status: 'active' })
      const name = output.paint.bold(printable(response.data.name))
      output.printResult(response.body, () => output.done(`Application ${name} is active`))
    })

  app
    .command('disable')
    .argument('<app>', idOrNameHelp)
    .description('reject calls with its credentials until it is enabled again')
    .examples('otpd app disable web-test --yes')
    .run(async (context, idOrName: string) => {
      const { api, output } = context
      const question = (label: string) =>
        `Disable the application ${label}? Its calls are rejected until it is enabled.`
      const id = await confirmApplication(context, api, idOrName, { question, isReversible: true })
      const response = await updateApplication(api, id, { status: 'disabled' })
      const name = output.paint.bold(printable(response.data.name))
      output.printResult(response.body, () => output.done(`Application ${name} is disabled`))
      output.suggestNext(`otpd app enable ${response.data.id}`)
    })

  app
    .command('delete')
    .alias('rm')
    .argument('<app>', idOrNameHelp)
    .description('delete an application, its credentials and its webhooks')
    .examples('otpd app delete web-test --yes')
    .run(async (context, idOrName: string) => {
      const { api, output } = context
      const question = (label: string) =>
        `Delete the application ${label}? Its credentials stop working at once.`
      const id = await confirmApplication(context, api, idOrName, { question })
      const response = await api.asDeveloper('DELETE', '/v1/applications/:id', { params: { id } })
      const name = output.paint.bold(printable(idOrName))
      output.printResult(response.body, () => output.done(`Application ${name} deleted`))
    })
}

/** Asks before a change to an application, and returns its id. */
export const confirmApplication = (
  context: Context,
  api: Api,
  idOrName: string,
  { question, isReversible = false }: { question: (label: string) => string; isReversible?: boolean },
) =>
  confirm(context, {
    isReversible,
    find: () => findApplication(api, idOrName),
    async describe(id) {
      const { data } = await api.asDeveloper('GET', '/v1/applications/:id', { params: { id } })
      return { question: question(`${printable(data.name)} (${data.environment})`), name: data.name }
    },
  })

async function updateApplication(api: Api, idOrName: string, body: ApplicationChanges) {
  const id = await findApplication(api, idOrName)
  return await api.asDeveloper('PATCH', '/v1/applications/:id', { params: { id }, body })
}
