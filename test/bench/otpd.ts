import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { BenchContext } from './bench-case.ts'
import { startIssuer } from './issuer.ts'
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

export type Application = { id: string; credentials: Record<string, string> }

/** An account: the headers of its console calls, and its applications. */
export type Developer = { headers: Record<string, string>; applications: readonly Application[] }

export type Otpd = Service & {
  developers: readonly Developer[]
  /** As `encodeVerifies`; the calls name the phone instead of the request. */
  encodeVerifiesByPhone(): Promise<Uint8Array[]>
}

/** How a case differs from the default settings. */
export type OtpdVariant = {
  /** Developers that share the applications equally. By default each application has its own developer. */
  developers?: number
  env?: Record<string, string>
  /** Fields of a send besides the phone. */
  sendFields?(index: number): Record<string, string>
}

/**
 * Starts the compiled binary with the default settings, except for the rates of the plan and the provider of logins:
 * that one is in this process, and an account of it is open to everyone. Applications are live, and no provider of
 * messages is configured, so messages stay in the inbox, from which codes are read.
 */
export async function startOtpd(context: BenchContext, variant: OtpdVariant = {}): Promise<Otpd> {
  const { folder, binary, applications } = context
  const { developers: developerCount = applications, env, sendFields } = variant
  const issuer = await startIssuer()
  const server = await startOtpdServer({
    command: [binary],
    folder,
    env: { ...context.env, ...env, ...issuer.env },
  })
  const url = `http://127.0.0.1:${server.port}`
  const developers: Developer[] = []
  for (let index = 0; index < developerCount; index++) {
    const headers = { authorization: `Bearer ${await issuer.signToken(`developer-${index}`)}` }
    const created = await createApplications(url, headers, applications / developerCount)
    developers.push({ headers, applications: created })
  }
  return createOtpdService(server, url, developers, sendFields)
}

type StartOptions = { command: string[] } & Pick<BenchContext, 'folder' | 'env'>

/** Starts the server on an existing or empty data directory. */
export const startOtpdServer = (options: StartOptions): Promise<Server> =>
  serve({ ...options, env: { OTPD_DATA_DIR: join(options.folder, 'data'), ...options.env } })

/** Starts a node on the database that its environment names, on any core. */
export const startOtpdNode = (options: StartOptions): Promise<Server> => serve(options, null)

async function serve({ command, folder, env }: StartOptions, core: number | null = 0): Promise<Server> {
  const config = join(folder, 'otpd.toml')
  writeFileSync(config, plans)
  return startServer([...command, 'serve', '--config', config, '--log-format', 'json'], {
    env: { HOME: folder, OTPD_LISTEN: '127.0.0.1:0', ...env },
    core,
  })
}

/** Starts the server with the built-in provider of logins and one account. */
export function startWithAccount(options: StartOptions): Promise<Server> {
  const passwordFile = join(options.folder, 'password')
  writeFileSync(passwordFile, password, { mode: 0o600 })
  const account = { OTPD_ADMIN_EMAIL: email, OTPD_ADMIN_PASSWORD_FILE: passwordFile }
  return startOtpdServer({ ...options, env: { ...account, ...options.env } })
}

/** Starts the server with the built-in provider of logins and one account, and logs in. */
export async function startAndLogIn(options: StartOptions) {
  const server = await startWithAccount(options)
  const url = `http://127.0.0.1:${server.port}`
  return { server, url, headers: await logIn(url) }
}

/** Creates the load on a running otpd: the applications of all developers send in turn. */
export function createOtpdService(
  server: Server,
  url: string,
  developers: readonly Developer[],
  sendFields: (index: number) => Record<string, string> = () => ({}),
): Otpd {
  const applications = developers.flatMap((developer) => developer.applications)
  const byId = new Map(applications.map(({ id, credentials }) => [id, credentials]))
  async function encodeVerifies(toTarget: (item: InboxItem) => Record<string, string>) {
    const inboxes = await Promise.all(developers.map(({ headers }) => readInbox(url, headers)))
    return interleave(inboxes).flatMap((item) => {
      const { appId, code } = item
      const credentials = byId.get(appId) ?? {}
      return code === null ? [] : [encodeRequest('/v1/otp/verify', credentials, { ...toTarget(item), code })]
    })
  }
  return {
    ...server,
    developers,
    encodeSend: (index, phone) =>
      encodeRequest('/v1/otp/send', applications[index % applications.length]?.credentials ?? {}, {
        phone,
        ...sendFields(index),
      }),
    encodeVerifies: () => encodeVerifies(({ requestId }) => ({ requestId })),
    encodeVerifiesByPhone: () => encodeVerifies(({ phone }) => ({ phone })),
  }
}

/** Takes from each list in turn, so that developers verify at the same time, as they sent. */
export function interleave<T>(lists: readonly (readonly T[])[]): T[] {
  const longest = Math.max(0, ...lists.map((list) => list.length))
  return Array.from({ length: longest }, (_, index) =>
    lists.flatMap((list) => list.slice(index, index + 1)),
  ).flat()
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

type InboxItem = { requestId: string; appId: string; phone: string; code: string | null }
type InboxPage = { data: InboxItem[]; pagination: { nextCursor: string | null } }

/** Reads the messages of a developer, newest first. @param count how many at most */
export async function readInbox(
  url: string,
  headers: Record<string, string>,
  count = Infinity,
): Promise<InboxItem[]> {
  const items: InboxItem[] = []
  let cursor: string | null = null
  do {
    const position: string = cursor === null ? '' : `&cursor=${cursor}`
    const page: InboxPage = await call(`${url}/v1/inbox?limit=200${position}`, { headers })
    items.push(...page.data)
    cursor = page.pagination.nextCursor
  } while (cursor !== null && items.length < count)
  return items.slice(0, count)
}
