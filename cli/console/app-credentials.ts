import { readEnvFile } from '../client/credentials.ts'
import type { AppCredentials } from '../client/api.ts'
import type { Application } from '../client/resources.ts'
import { usageError } from '../terminal/errors.ts'
import type { AppSecrets, Console, Dialog } from './console-context.ts'

type Needs = Pick<Console, 'appCredentials' | 'context' | 'connection'>
type App = Pick<Application, 'clientId' | 'name'>

/** Remembers secrets that were just created, until the console ends. */
export function rememberSecrets(
  { appCredentials }: Pick<Console, 'appCredentials'>,
  clientId: string,
  secrets: AppSecrets,
) {
  appCredentials.set(clientId, { ...appCredentials.get(clientId), ...secrets })
}

/** Finds the credentials of an application in the memory of the console, then in its environment. */
export function findCredentials(
  { appCredentials, context }: Needs,
  { clientId }: App,
): AppCredentials | null {
  const { clientSecret, apiKey } = appCredentials.get(clientId) ?? {}
  if (clientSecret !== undefined && apiKey !== undefined)
    return { clientId, clientSecret, apiKey, source: 'this console' }
  const { OTPD_CLIENT_ID, OTPD_CLIENT_SECRET, OTPD_API_KEY } = context.io.env
  if (OTPD_CLIENT_ID !== clientId || !OTPD_CLIENT_SECRET || !OTPD_API_KEY) return null
  return { clientId, clientSecret: OTPD_CLIENT_SECRET, apiKey: OTPD_API_KEY, source: 'the environment' }
}

/**
 * Asks for the credentials of an application, which the server cannot tell: it stores only hashes.
 *
 * @param onFound called with them; they are remembered until the console ends
 */
export const credentialsDialog = (
  needs: Needs,
  app: App,
  onFound: (credentials: AppCredentials) => void,
): Dialog => ({
  kind: 'form',
  title: `Credentials of ${app.name}`,
  lines: [
    'The server stores only hashes of them. Name the file that they were saved to, or paste both.',
    'They are kept in the memory of this console only.',
  ],
  fields: [
    { name: 'file', label: 'file', initial: '.env.otpd' },
    { name: 'clientSecret', label: 'client secret', isSecret: true },
    { name: 'apiKey', label: 'API key', isSecret: true },
  ],
  verb: 'use',
  async submit({ file = '', clientSecret = '', apiKey = '' }) {
    const secrets =
      clientSecret !== '' || apiKey !== '' ? { clientSecret, apiKey } : readSecrets(needs, app, file)
    if (secrets.clientSecret === '' || secrets.apiKey === '')
      throw usageError('Both are needed: the client secret and the API key.')
    rememberSecrets(needs, app.clientId, secrets)
    onFound({ clientId: app.clientId, ...secrets, source: file })
  },
})

function readSecrets({ context, connection }: Needs, app: App, file: string) {
  const { values } = readEnvFile(context.io, file)
  const { OTPD_CLIENT_ID, OTPD_CLIENT_SECRET = '', OTPD_API_KEY = '', OTPD_SERVER } = values
  if (OTPD_CLIENT_ID !== app.clientId)
    throw usageError(
      `${file} has the credentials of another application.`,
      `Expected OTPD_CLIENT_ID=${app.clientId}`,
    )
  if (OTPD_SERVER !== undefined && new URL(OTPD_SERVER).origin !== new URL(connection.server.url).origin)
    throw usageError(`${file} belongs to another server: ${OTPD_SERVER}`)
  return { clientSecret: OTPD_CLIENT_SECRET, apiKey: OTPD_API_KEY }
}
