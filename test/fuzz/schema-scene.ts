import { rmSync } from 'node:fs'
import { startServer } from '../helpers/binary.ts'
import { readOpenApi } from '../helpers/openapi.ts'
import { logIn, login, makeServerHome, type WebhookClient } from '../helpers/webhook-client.ts'
import { startReceiver } from '../helpers/webhook-receiver.ts'

export type SchemaScene = Awaited<ReturnType<typeof startSchemaScene>>

type Sent = { requestId: string }

/** Whom the credentials belong to: not the one with the token, who might delete the application that is needed. */
const other = { username: 'grace@example.com', password: login.password }

/**
 * The compiled binary with no limit that many calls would meet, one developer with some of everything, and the
 * application of another one.
 *
 * @param count how many things of each kind that calls may end
 */
export async function startSchemaScene(count: number) {
  const receiver = await startReceiver()
  const options = makeServerHome({ projects: 1_000_000, applications: 1_000_000 })
  const server = await startServer({
    ...options,
    env: { ...options.env, OTPD_GUARD_MODE: 'off', OTPD_PHONE_CHECK_BUDGET: '0', OTPD_LOG_LEVEL: 'debug' },
  })
  await server.otpd(['admin', 'create', '--email', other.username, '--name', 'Grace', '--password-stdin'], {
    input: other.password,
    env: { OTPD_DATA_DIR: server.dataDir },
  })
  const phones = Array.from({ length: 20 }, (_, index) => `+141555501${String(index + 10)}`)
  const ada = await logIn(server.url)
  const grace = await logIn(server.url, other)
  const times = async <T>(make: (index: number) => Promise<T>, howMany = count): Promise<T[]> => {
    const made: T[] = []
    for (let index = 0; index < howMany; index++) made.push(await make(index))
    return made
  }
  const idOf = (of: { id: string }) => of.id
  const send = async (client: WebhookClient, headers: Record<string, string>, index: number) =>
    (await client.call<Sent>('POST', '/v1/otp/send', { phone: phones[index % phones.length] }, headers))
      .requestId

  const projects = () => times(() => ada.call<{ id: string }>('POST', '/v1/projects', { name: 'Shop' }))
  const apps = () => times(() => ada.createApplication())
  const [keptApps, spentApps] = [await apps(), await apps()]
  const [app] = keptApps
  const credentials = (await grace.createApplication()).headers
  if (!app) throw new Error('There is no application.')
  const hooks = () => times(() => ada.createEndpoint(app, `${receiver.url}/hook`, ['*'], {}), 10)
  const keptHooks = await hooks()
  const ownRequests = await times((index) => send(ada, app.headers, index), 20)
  // Somebody to look up.
  for (const requestId of ownRequests.slice(10)) {
    await ada.call('POST', '/v1/otp/verify', { requestId, code: '424242' }, app.headers)
  }
  const [hook] = keptHooks
  const deliveries = await ada.call<{ id: string }[]>('GET', `/v1/webhooks/${hook?.id}/deliveries`)

  const { operations } = await readOpenApi(async (path) => (await fetch(server.url + path)).text())

  return {
    url: server.url,
    /** The names of the operations that walk through pages. */
    lists: operations
      .filter(({ parameters = [] }) => parameters.some(({ name }) => name === 'cursor'))
      .map(({ operationId }) => operationId),
    token: ada.token,
    /** By the name of their security scheme. */
    credentials: {
      clientId: credentials['x-client-id'] ?? '',
      clientSecret: credentials['x-client-secret'] ?? '',
      apiKey: credentials['x-api-key'] ?? '',
    },
    /** What no call deletes on purpose. */
    kept: {
      projectIds: (await projects()).map(idOf),
      appIds: keptApps.map(idOf),
      webhookIds: keptHooks.map(idOf),
      deliveryIds: deliveries.map(idOf),
    },
    spent: {
      projectIds: (await projects()).map(idOf),
      appIds: spentApps.map(idOf),
      webhookIds: (await hooks()).map(idOf),
    },
    ownRequestIds: ownRequests,
    /** Of the application that calls. */
    requestIds: await times((index) => send(grace, credentials, index), 20 * count),
    phones,
    log: server.log,
    async stop() {
      await server.stop()
      await receiver.stop()
      rmSync(options.home, { recursive: true, force: true })
    },
  }
}
