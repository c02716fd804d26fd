import { rmSync } from 'node:fs'
import { startServer } from '../helpers/binary.ts'
import { readOpenApi } from '../helpers/openapi.ts'
import { logIn, login, makeServerHome, type WebhookClient } from '../helpers/webhook-client.ts'
import { startReceiver } from '../helpers/webhook-receiver.ts'

export type SchemaFixture = Awaited<ReturnType<typeof startSchemaFixture>>

type SentOtp = { requestId: string }

/** Owner of the application. Not the developer with the token, whose calls might delete the application. */
const otherLogin = { username: 'grace@example.com', password: login.password }

/**
 * Starts the compiled binary without limits, with a developer who has resources of every kind, and an application of
 * another developer.
 *
 * @param count number of resources of each kind that calls may use up
 */
export async function startSchemaFixture(count: number) {
  const receiver = await startReceiver()
  const options = makeServerHome({ projects: 1_000_000, applications: 1_000_000 })
  const server = await startServer({
    ...options,
    env: {
      ...options.env,
      OTPD_GUARD_MODE: 'off',
      OTPD_PHONE_CHECK_BUDGET: '0',
      OTPD_CONSOLE_PER_MINUTE: '0',
      OTPD_LOOKUPS_PER_MINUTE: '0',
      OTPD_LOG_LEVEL: 'debug',
    },
  })
  await server.otpd(
    ['admin', 'create', '--email', otherLogin.username, '--name', 'Grace', '--password-stdin'],
    {
      input: otherLogin.password,
      env: { OTPD_DATA_DIR: server.dataDir },
    },
  )
  const phones = Array.from({ length: 20 }, (_, index) => `+141555501${String(index + 10)}`)
  const ada = await logIn(server.url)
  const grace = await logIn(server.url, otherLogin)
  const repeat = async <T>(make: (index: number) => Promise<T>, repeatCount = count): Promise<T[]> => {
    const results: T[] = []
    for (let index = 0; index < repeatCount; index++) results.push(await make(index))
    return results
  }
  const toId = (item: { id: string }) => item.id
  const send = async (client: WebhookClient, headers: Record<string, string>, index: number) =>
    (await client.call<SentOtp>('POST', '/v1/otp/send', { phone: phones[index % phones.length] }, headers))
      .requestId

  const createProjects = () =>
    repeat(() => ada.call<{ id: string }>('POST', '/v1/projects', { name: 'Shop' }))
  const createApps = () => repeat(() => ada.createApplication())
  const [persistentApps, deletableApps] = [await createApps(), await createApps()]
  const [app] = persistentApps
  const credentials = (await grace.createApplication()).headers
  if (!app) throw new Error('There is no application.')
  const createEndpoints = () => repeat(() => ada.createEndpoint(app, `${receiver.url}/hook`, ['*'], {}), 10)
  const persistentEndpoints = await createEndpoints()
  const ownRequests = await repeat((index) => send(ada, app.headers, index), 20)
  // Verified users to look up.
  for (const requestId of ownRequests.slice(10)) {
    await ada.call('POST', '/v1/otp/verify', { requestId, code: '424242' }, app.headers)
  }
  const [endpoint] = persistentEndpoints
  const deliveries = await ada.call<{ id: string }[]>('GET', `/v1/webhooks/${endpoint?.id}/deliveries`)

  const { operations } = await readOpenApi(async (path) => (await fetch(server.url + path)).text())

  return {
    url: server.url,
    /** Ids of the paginated operations. */
    lists: operations
      .filter(({ parameters = [] }) => parameters.some(({ name }) => name === 'cursor'))
      .map(({ operationId }) => operationId),
    token: ada.token,
    /** Credentials by security scheme. */
    credentials: {
      clientId: credentials['x-client-id'] ?? '',
      clientSecret: credentials['x-client-secret'] ?? '',
      apiKey: credentials['x-api-key'] ?? '',
    },
    /** Resources that no call deletes on purpose. */
    persistent: {
      projectIds: (await createProjects()).map(toId),
      appIds: persistentApps.map(toId),
      webhookIds: persistentEndpoints.map(toId),
      deliveryIds: deliveries.map(toId),
    },
    deletable: {
      projectIds: (await createProjects()).map(toId),
      appIds: deletableApps.map(toId),
      webhookIds: (await createEndpoints()).map(toId),
    },
    ownRequestIds: ownRequests,
    /** Resources of the calling application. */
    requestIds: await repeat((index) => send(grace, credentials, index), 20 * count),
    phones,
    log: server.log,
    async stop() {
      await server.stop()
      await receiver.stop()
      rmSync(options.home, { recursive: true, force: true })
    },
  }
}
