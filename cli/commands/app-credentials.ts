import { Argument } from 'commander'
import { confirmApplication } from './app-manage.ts'
import type { CliCommand } from './command.ts'
import { reserveEnvFile } from '../client/credentials.ts'
import { findApplication } from '../client/find.ts'
import { shellWord } from '../../src/shared/shell-word.ts'

const clientSecret = { type: 'secret', label: 'client secret', variable: 'OTPD_CLIENT_SECRET' } as const
const apiKey = { type: 'api', label: 'API key', variable: 'OTPD_API_KEY' } as const
const webhookSecret = {
  type: 'webhook_secret',
  label: 'webhook secret',
  variable: 'OTPD_WEBHOOK_SECRET',
} as const

/** Credentials by their names; the last two are those of the API. */
const credentials = {
  'client-secret': clientSecret,
  'api-key': apiKey,
  'webhook-secret': webhookSecret,
  secret: clientSecret,
  api: apiKey,
}

type CredentialName = keyof typeof credentials

/** Registers the commands for the credentials of an application. */
export function addAppCredentialCommands(app: CliCommand) {
  describeRotation(app.command('rotate'), 'otpd app rotate', 'client-secret.env')

  app
    .command('webhook-secret')
    .alias('secret')
    .argument('<app>', 'id or name of the application')
    .description('print the secret that signs the webhooks of an application')
    .examples('otpd app webhook-secret web')
    .run(async ({ api, output }, idOrName: string) => {
      const id = await findApplication(api, idOrName)
      const response = await api.asDeveloper('GET', '/v1/applications/:id/webhook-secret', {
        params: { id },
      })
      output.printResult(response.body, () => response.data.webhookSecret)
    })
}

/** Registers `otpd rotate`, the short form of `otpd app rotate`. */
export const addRotateCommand = (program: CliCommand) =>
  describeRotation(program.command('rotate'), 'otpd rotate', 'secret.env')

/** @param envFile name in the example */
function describeRotation(command: CliCommand, path: string, envFile: string) {
  command
    .argument('<app>', 'id or name of the application')
    .addArgument(
      new Argument('<credential>', 'client-secret (or secret), api-key (or api), or webhook-secret').choices(
        Object.keys(credentials),
      ),
    )
    .description('replace a credential of an application; the old one stops working at once')
    .option('--env-file <path>', 'save the new credential to a new file that only you can read')
    .examples(`${path} web api-key --yes`, `${path} web client-secret --yes --env-file ${envFile}`)
    .run(async (context, idOrName: string, name: CredentialName, { envFile }: { envFile?: string }) => {
      const { io, connect, output } = context
      const { api, server } = connect()
      const { type, label, variable } = credentials[name]
      const id = await confirmApplication(context, api, idOrName, {
        question: (app) => `Replace the ${label} of ${app}? The current one stops working at once.`,
      })
      const file = envFile === undefined ? null : reserveEnvFile(io, envFile)
      const response = await api
        .asDeveloper('POST', '/v1/applications/:id/rotate/:type', { params: { id, type } })
        .catch((error: unknown) => {
          file?.discard()
          throw error
        })
      const { value, rotatedAt } = response.data
      const comment = `${label} of the otpd application ${id}, ${rotatedAt}`
      const isSaved = file?.write(comment, { OTPD_SERVER: server.url, [variable]: value }) ?? false
      output.printResult(response.body, () =>
        isSaved ? `Saved to ${envFile} (only you can read it)` : value,
      )
      output.note(`${output.paintError.green('✓')} New ${label}; the old one no longer works.`)
      if (!isSaved && type !== 'webhook_secret') output.note('  Store it now: it is not shown again.')
      if (file !== null && !isSaved) output.warn(`Could not write ${envFile}.`)
      if (type === 'webhook_secret') output.suggestNext(`otpd app webhook-secret ${shellWord(idOrName)}`)
    })
}
