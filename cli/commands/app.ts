import { Option } from 'commander'
import type { CliCommand } from './command.ts'
import { applicationFields } from '../../src/shared/application-fields.ts'
import type { Api } from '../client/api.ts'
import { clientVariables, describeLimits, envLines, type ClientSystem } from '../client/app-env.ts'
import { reserveEnvFile } from '../client/credentials.ts'
import { findProject, listApplications, listProjects } from '../client/find.ts'
import { idempotencyHeaders, idempotencyKeyOption, type IdempotencyOption } from '../client/idempotency.ts'
import { paintEnvironment, paintStatus } from '../client/app-text.ts'
import { addListOptions, printList, readList, type ListOptions } from '../client/lists.ts'
import type { Output } from '../terminal/output.ts'
import type { Application, CreatedApplication, Project } from '../client/resources.ts'
import type { Route } from '../client/routes.ts'
import { usageError } from '../terminal/errors.ts'
import { kept, optional } from '../terminal/table.ts'
import { shellWord } from '../../src/shared/shell-word.ts'
import { printable } from '../terminal/text.ts'
import { addAppCredentialCommands } from './app-credentials.ts'
import { addAppEnvCommand, systemOption, warnIfNotAnswering } from './app-env.ts'
import { addAppPageCommand } from './app-page.ts'
import { addAppManageCommands } from './app-manage.ts'
import { duplicateFlag, requireNewName, type DuplicateOption } from './duplicates.ts'
import { addFieldOptions, readFields, settingOptions, type FieldOptions } from './field-options.ts'
import { environments, type Environment } from '../../src/shared/otp-values.ts'

type CreateOptions = IdempotencyOption &
  DuplicateOption & { project: string; env: Environment; envFile?: string; for?: ClientSystem }

type NewApplication = Route<'POST', '/v1/applications'>['body']

const createOptions: FieldOptions<Omit<NewApplication, 'name' | 'projectId' | 'environment'>> =
  settingOptions(applicationFields)

/** Registers the commands for applications. */
export function addAppCommands(program: CliCommand) {
  const app = program.command('app').alias('apps').description('applications and their credentials')

  addFieldOptions(app.command('create'), createOptions)
    .alias('new')
    .argument('<name>', 'name of the application, 1 to 80 characters')
    .description('create an application; its secret and API key are shown only once')
    .requiredOption('-p, --project <id|name>', 'the project it belongs to')
    .addOption(
      new Option('-e, --env <environment>', 'live, or test (never sends real messages)')
        .choices(environments)
        .makeOptionMandatory(),
    )
    .option('--env-file <path>', 'save the credentials to a new file that only you can read')
    .addOption(systemOption())
    .option(duplicateFlag, 'create it even if the project has an application of this name')
    .addOption(idempotencyKeyOption())
    .examples(
      'otpd app create web --project shop --env live --env-file .env.otpd',
      'otpd app create web-test --project shop --env test --locale de --otp-ttl 120',
    )
    .run(async ({ io, connect, output }, name: string, options: CreateOptions) => {
      const { api, server, send } = connect()
      requirePlaceForSecrets(options, output)
      const settings = readFields(options, createOptions)
      const file = options.envFile === undefined ? null : reserveEnvFile(io, options.envFile)
      const response = await createApplication(api, name, settings, options).catch((error: unknown) => {
        file?.discard()
        throw error
      })
      const { data } = response
      const comment = `otpd application ${printable(data.name)} (${data.id}, ${data.environment})`
      const values = options.for && clientVariables(options.for, data, server.url)
      const isSaved =
        file?.write(comment, { OTPD_SERVER: server.url, ...credentialVariables(data), ...values }) ?? false
      output.printResult(
        response.body,
        () => createdText(data, isSaved ? options.envFile : undefined, output),
        [data.id],
      )
      if (values && !output.json) {
        const limits = await describeLimits(api, {
          otpTtlSeconds: settings.otpTtlSeconds ?? lifetimeDefault,
        })
        output.note(isSaved ? `  ${limits}` : `\n${envLines(values, limits)}`)
      }
      await warnIfNotAnswering(options.for, send, output)
      if (!isSaved) output.note('\n  Store the secret and the API key now: they are not shown again.')
      if (file !== null && !isSaved) output.warn(`Could not write ${options.envFile}.`)
      if (isSaved)
        output.suggestNext(`otpd otp send ${testPhone} --env-file ${shellWord(options.envFile ?? '')}`)
      else
        output.suggestNext(
          'export OTPD_CLIENT_ID=… OTPD_CLIENT_SECRET=… OTPD_API_KEY=…   (from above)',
          `otpd otp send ${testPhone}`,
        )
    })

  addListOptions(app.command('list').alias('ls').description('list your applications, newest first'))
    .option('-p, --project <id|name>', 'only applications of this project')
    .examples('otpd app list', 'otpd app list --project shop --json')
    .run(async ({ api, output }, options: ListOptions & { project?: string }) => {
      const projectId = options.project === undefined ? undefined : await findProject(api, options.project)
      const page = await readList(options, (paging) =>
        api.asDeveloper('GET', '/v1/applications', { query: { ...paging, projectId } }),
      )
      // Names are for people; scripts that read JSON do not wait for them.
      const needsNames = output.isForPeople && page.data.length > 0
      const projects = needsNames ? await listProjects(api) : []
      printList(output, page, (apps) => listText(apps, projects, output))
    })

  addAppEnvCommand(app)
  addAppManageCommands(app)
  addAppPageCommand(app)
  addAppCredentialCommands(app)
}

/** Seconds that codes of a new application live. */
const lifetimeDefault = applicationFields.otpTtlSeconds.default

/** A number whose code in test applications is always 424242. */
const testPhone = '+14155550100'

async function createApplication(
  api: Api,
  name: string,
  settings: Partial<NewApplication>,
  options: CreateOptions,
) {
  const projectId = await findProject(api, options.project)
  if (options.allowDuplicate !== true)
    await requireNewName('application', name, () => listApplications(api, projectId))
  const body = { ...settings, name, projectId, environment: options.env }
  const call = { body, headers: idempotencyHeaders(options) }
  return await api.asDeveloper('POST', '/v1/applications', call)
}

/** @throws usage error if the secrets, which are shown only once, would not be printed and not be saved */
function requirePlaceForSecrets({ envFile }: CreateOptions, { json, isForPeople }: Output) {
  if (json || isForPeople || envFile !== undefined) return
  throw usageError(
    '--quiet prints only the id, so the secret and the API key would be lost.',
    'Save them with --env-file FILE, or print them with --json.',
  )
}

const credentialVariables = (app: CreatedApplication) => ({
  OTPD_CLIENT_ID: app.clientId,
  OTPD_CLIENT_SECRET: app.clientSecret,
  OTPD_API_KEY: app.apiKey,
  OTPD_WEBHOOK_SECRET: app.webhookSecret,
})

function createdText(
  app: CreatedApplication,
  envFilePath: string | undefined,
  { details, done, paint }: Output,
) {
  const title = done(
    `Application ${paint.bold(printable(app.name))} (${paintEnvironment(app.environment, paint)})`,
  )
  const id: [string, string] = ['Id', app.id]
  if (envFilePath !== undefined)
    return details(title, [id, ['Saved to', `${envFilePath} (only you can read it)`]])
  // Short labels keep every line within 80 columns.
  const credentials: [string, string][] = [
    ['Client ID', app.clientId],
    ['Secret', paint.yellow(app.clientSecret)],
    ['API key', paint.yellow(app.apiKey)],
    ['Webhook', app.webhookSecret],
  ]
  return details(title, [id, ...credentials])
}

function listText(apps: Application[], projects: Project[], { paint, formatTable }: Output) {
  if (apps.length === 0) return 'No applications yet. Create one: otpd app create NAME -p PROJECT -e test'
  const projectNames = new Map(projects.map(({ id, name }) => [id, name]))
  const rows = apps.map((app) => [
    printable(app.name),
    printable(projectNames.get(app.projectId) ?? app.projectId),
    paintEnvironment(app.environment, paint),
    paintStatus(app.status, paint),
    app.id,
  ])
  return formatTable(['NAME', optional('PROJECT'), kept('ENV'), kept('STATUS'), 'ID'], rows)
}
