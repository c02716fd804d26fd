import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { BenchContext } from './bench-case.ts'
import { encodeRequest } from './load.ts'
import { startServer, type Server } from './machine.ts'
import type { Service } from './service.ts'

const email = 'ada@example.com'
const password = 'correct horse battery'

/**
 * Highest rates that can be set, 10,000 a minute: the limiter does all of its work but refuses nothing. More lists are
 * read than that, so their limit is off.
 */
const plans =
  '[plans.free]\nprojects = 10\napplications = 1000\nsendPerMinute = 10000\nverifyPerMinute = 10000\nconsolePerMinute = 0\n'

export type Otpd = Service & {
  console: { headers: Record<string, string>; applicationIds: string[] }
}

/**
 * Starts the compiled binary with the default settings, except for the rates of the plan. Its applications are live, and
 * no provider is configured, so messages stay in the inbox, from which codes are read.
 */
export async function startOtpd(context: BenchContext): Promise<Otpd> {
  const { server, url, headers } = await startAndLogIn({ ...context, command: [context.binary] })
  return createOtpdService(server, url, headers, await createApplications(url, headers, context.applications))
}

type StartOptions = { command: string[] } & Pick<BenchContext, 'folder' | 'env'>

/** Starts the server on an existing or empty data directory. */
export async function startOtpdServer({ command, folder, env }: StartOptions): Promise<Server> {
  const passwordFile = join(folder, 'password')
  writeFileSync(passwordFile, password, { mode: 0o600 })
  const config = join(folder, 'otpd.toml')
  writeFileSync(config, plans)
  return startServer([...command, 'serve', '--config', config, '--log-format', 'json'], {
    env: {
      HOME: folder,
      OTPD_DATA_DIR: join(folder, 'data'),
      OTPD_LISTEN: '127.0.0.1:0',
      OTPD_ADMIN_EMAIL: email,
      OTPD_ADMIN_PASSWORD_FILE: passwordFile,
      ...env,
    },
  })
}

/** Starts the server and logs in. */
export async function startAndLogIn(options: StartOptions) {
  const server = await startOtpdServer(options)
  const url = `http://127.0.0.1:${server.port}`
  return { server, url, headers: await logIn(url) }
}

/** Creates the load on a running otpd. @param applications applications that send in turn */
export function createOtpdService(
  server: Server,
  url: string,
  headers: Record<string, string>,
  applications: readonly Application[],
): Otpd {
  const credentials = applications.map((application) => application.credentials)
  const ids = applications.map((application) => application.id)
  const byId = new Map(applications.map((application) => [application.id, application.credentials]))
  return {
    ...server,
    console: { headers, applicationIds: ids },
    encodeSend: (index, phone) =>
      encodeRequest('/v1/otp/send', credentials[index % credentials.length] ?? {}, { phone }),
    encodeVerifies: async () => {
      const verifies: Uint8Array[] = []
      for await (const { requestId, appId, code } of readInbox(url, headers)) {
        if (code === null) continue
        verifies.push(encodeRequest('/v1/otp/verify', byId.get(appId) ?? {}, { requestId, code }))
      }
      return verifies
    },
  }
}

export async function call<T>(url: string, init: RequestInit = {}): Promise<T> {
  const response = await fetch(url, init)
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`)
  // The server is the one under test; callers know the shape of the response.
  return (await response.json()) as T
}

async function logIn(url: string): Promise<Record<string, string>> {
  const body = new URLSearchParams({ grant_type: 'password', username: email, password })
  const tokens = await call<{ id_token: string }>(`${url}/v1/auth/token`, { method: 'POST', body })
  return { authorization: `Bearer ${tokens.id_token}` }
}

export type Application = { id: string; credentials: Record<string, string> }

export async function createApplications(url: string, headers: Record<string, string>, count: number) {
  const create = async <T>(path: string, body: object) => {
    const response = await call<{ data: T }>(url + path, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return response.data
  }
  const project = await create<{ id: string }>('/v1/projects', { name: 'bench' })
  type Created = { id: string; clientId: string; clientSecret: string; apiKey: string }
  const applications: Application[] = []
  for (let i = 0; i < count; i++) {
    const body = { name: `bench ${i}`, projectId: project.id, environment: 'live' }
    const { id, clientId, clientSecret, apiKey } = await create<Created>('/v1/applications', body)
    const credentials = { 'x-client-id': clientId, 'x-client-secret': clientSecret, 'x-api-key': apiKey }
    applications.push({ id, credentials })
  }
  return applications
}

type InboxItem = { requestId: string; appId: string; code: string | null }
type InboxPage = { data: InboxItem[]; pagination: { nextCursor: string | null } }

async function* readInbox(url: string, headers: Record<string, string>) {
  let cursor: string | null = null
  do {
    const position: string = cursor === null ? '' : `&cursor=${cursor}`
    const page: InboxPage = await call(`${url}/v1/inbox?limit=200${position}`, { headers })
    yield* page.data
    cursor = page.pagination.nextCursor
  } while (cursor !== null)
}
