import { Option } from 'commander'
import type { CliCommand } from './command.ts'
import {
  clientSystems,
  clientVariables,
  describeLimits,
  envLines,
  type ClientSystem,
} from '../client/app-env.ts'
import { findAppCredentials, readEnvFile } from '../client/credentials.ts'
import { findApplication } from '../client/find.ts'
import type { SendHttp } from '../session/http.ts'
import { usageError } from '../terminal/errors.ts'
import type { Io } from '../terminal/io.ts'
import type { Output } from '../terminal/output.ts'

/** Option that names the system whose client the lines are for. */
export const systemOption = () =>
  new Option('--for <system>', `system whose client reads the lines: ${clientSystems.join(', ')}`).choices(
    clientSystems,
  )

/** Registers `otpd app env`. */
export function addAppEnvCommand(app: CliCommand) {
  app
    .command('env')
    .argument('<app>', 'id or name of the application')
    .description('print the environment variables of a client: its own, or that of another system')
    .addOption(systemOption().default('otpd'))
    .option('--env-file <path>', 'file with the secret and the API key, from otpd app create')
    .examples(
      'otpd app env web --env-file .env.otpd',
      'otpd app env web --for twilio-verify --env-file .env.otpd',
      'otpd app env web --for camara --env-file .env.otpd',
      'otpd app env web --for supabase',
    )
    .run(
      async ({ io, connect, output }, idOrName: string, options: { for: ClientSystem; envFile?: string }) => {
        const { api, server, send } = connect()
        const id = await findApplication(api, idOrName)
        const params = { params: { id } }
        const { data: app } = await api.asDeveloper('GET', '/v1/applications/:id', params)
        const { data } = await api.asDeveloper('GET', '/v1/applications/:id/webhook-secret', params)
        const { clientId } = app
        const secrets = options.envFile === undefined ? noSecrets : readSecrets(io, options.envFile, clientId)
        const credentials = { id, clientId, ...secrets, webhookSecret: data.webhookSecret }
        const values = clientVariables(options.for, credentials, server.url)
        const comment = output.json ? '' : await describeLimits(api, app)
        output.printData(values, () => envLines(values, comment))
        await warnIfNotAnswering(options.for, send, output)
        if (options.envFile === undefined && options.for !== 'supabase')
          output.warn(
            'The secret and the API key are shown only once, so they are missing here. Name the file they were saved in: --env-file FILE',
          )
      },
    )
}

/** Systems that the server answers as if it is told to, with a path that it then knows. */
const facades: Partial<Record<ClientSystem, { title: string; path: string }>> = {
  'twilio-verify': { title: 'Twilio Verify', path: '/v2/Services' },
  camara: { title: 'CAMARA one-time-password-sms', path: '/camara/.well-known/openid-configuration' },
}

/** Warns if the server does not answer as the system: its library would report a bare 404. */
export async function warnIfNotAnswering(system: ClientSystem | undefined, send: SendHttp, output: Output) {
  const facade = system && facades[system]
  if (!facade) return
  const { status } = await send({ method: 'GET', path: facade.path })
  if (status === 404)
    output.warn(`The server does not answer as ${facade.title} yet: start it with OTPD_COMPAT=${system}`)
}

const noSecrets = { clientSecret: undefined, apiKey: undefined }

/** @throws usage error when the file has no credentials, or those of another application */
function readSecrets(io: Io, path: string, expectedClientId: string) {
  const { clientId, clientSecret, apiKey } = findAppCredentials(io, readEnvFile(io, path))
  if (clientId === expectedClientId) return { clientSecret, apiKey }
  throw usageError(
    `${path} has the credentials of another application.`,
    'Name the file that otpd app create saved for this one: --env-file FILE',
  )
}
