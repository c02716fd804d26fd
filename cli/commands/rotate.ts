import { Argument, type Command } from 'commander'
import { reserveEnvFile } from '../client/credentials.ts'
import { confirm } from '../terminal/confirm.ts'
import { examples } from '../help.ts'
import { findApplication } from '../client/find.ts'
import type { RunCommand } from '../context.ts'
import { printable, shellWord } from '../terminal/text.ts'

type CredentialKind = 'secret' | 'api' | 'webhook-secret'

const credentials = {
  secret: { type: 'secret', label: 'client secret', variable: 'OTPD_CLIENT_SECRET' },
  api: { type: 'api', label: 'API key', variable: 'OTPD_API_KEY' },
  'webhook-secret': { type: 'webhook_secret', label: 'webhook secret', variable: 'OTPD_WEBHOOK_SECRET' },
} as const satisfies Record<CredentialKind, { type: string; label: string; variable: string }>

/** Registers the rotate command. */
export function addRotateCommand(program: Command, runCommand: RunCommand) {
  program
    .command('rotate')
    .argument('<app>', 'id or name of the application')
    .addArgument(
      new Argument('<credential>', 'secret, api or webhook-secret').choices([
        'secret',
        'api',
        'webhook-secret',
      ]),
    )
    .description('replace a credential of an application; the old one stops working at once')
    .option('--env-file <path>', 'save the new credential to a new file that only you can read')
    .addHelpText(
      'after',
      examples('otpd rotate web api --yes', 'otpd rotate web secret --yes --env-file secret.env'),
    )
    .action((idOrName: string, kind: CredentialKind, { envFile }: { envFile?: string }, command: Command) =>
      runCommand(command, async (context) => {
        const { io, connect, output } = context
        const { api, server } = connect()
        const { type, label, variable } = credentials[kind]
        const id = await confirm(context, {
          find: () => findApplication(api, idOrName),
          async describe(id) {
            const { data } = await api.asDeveloper('GET', '/v1/applications/:id', { params: { id } })
            const appLabel = `${printable(data.name)} (${data.environment})`
            return {
              question: `Replace the ${label} of ${appLabel}? The current one stops working at once.`,
              name: data.name,
            }
          },
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
        if (!isSaved && kind !== 'webhook-secret') output.note('  Store it now: it is not shown again.')
        if (file !== null && !isSaved) output.warn(`Could not write ${envFile}.`)
        if (kind === 'webhook-secret') output.suggestNext(`otpd app secret ${shellWord(idOrName)}`)
      }),
    )
}
