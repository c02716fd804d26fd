import { SignJWT } from 'jose'
import { builtInClientId } from '../../src/auth/built-in-issuer.ts'
import { createSigningKeys, signingAlgorithm } from '../../src/auth/signing-keys.ts'
import { hostOrigin, type Actor } from '../../src/domain/model/audit.ts'
import { builtInIssuer, insertDeveloper } from '../../src/domain/accounts/developers.ts'
import type { ErrorCode, ErrorDetail } from '../../src/domain/model/errors.ts'
import type { DeliverySettings } from '../../src/domain/model/delivery.ts'
import type { Plans } from '../../src/domain/model/plans.ts'
import type { Random } from '../../src/domain/model/random.ts'
import { createApp } from '../../src/http/app.ts'
import { createServices, type ServiceNeeds } from '../../src/server/services.ts'
import type { Database } from '../../src/store/engine/database.ts'
import { createStore } from '../../src/store/store.ts'
import { testClock } from './clock.ts'
import { requireConfig, loadEnv } from './config.ts'
import { openTestSqlite } from './databases.ts'
import { testKeys } from './keys.ts'
import { testWorld } from './world.ts'

/** Caller of the API: a developer with a token, or an application with its three headers. */
export type TestCaller = { headers: Record<string, string> }

export type TestDeveloper = TestCaller & { developer: Actor }

/** Response to the creation of an application, and the headers made from it. */
export type TestApplication = TestCaller & {
  id: string
  projectId: string
  clientId: string
  clientSecret: string
  apiKey: string
  webhookSecret: string
}

type TestRequest = {
  as?: TestCaller | undefined
  /** An object is sent as JSON, a string unchanged. Both have the type `application/json`. */
  body?: unknown
  /** Headers with the value undefined are omitted. */
  headers?: Record<string, string | undefined>
}

export type TestResponse<T> = {
  status: number
  headers: Headers
  text: string
  /** Present if the call succeeded. */
  data: T
  pagination: { limit: number; nextCursor: string | null }
  /** Present if the call failed. */
  error: {
    code: ErrorCode
    message: string
    traceId: string
    reason?: string
    details?: ErrorDetail[]
    metadata?: Record<string, unknown>
  }
}

export type TestService = Awaited<ReturnType<typeof createTestService>>

export type TestOptions = {
  /** `OTPD_*` variables, as the operator would set them. */
  env?: Record<string, string>
  /** Overrides the configured plans. */
  plans?: Plans
  /** Providers and routes. By default there are none, and messages stay in the inbox. */
  delivery?: DeliverySettings
  messaging?: ServiceNeeds['messaging']
  report?: ServiceNeeds['report']
  onChallengeChecked?: ServiceNeeds['onChallengeChecked']
  onGuardAlert?: ServiceNeeds['onGuardAlert']
  /** Source of ids, salts and secrets. By default that of the system. */
  random?: Random
  /** Database that the test opened and closes. By default a new SQLite file. */
  database?: Database
}

const publicUrl = 'http://otpd.test'

/**
 * Creates the real application on a real store, with a stopped clock. It opens no port: requests are passed to the
 * application directly.
 */
export async function createTestService(options: TestOptions = {}) {
  const ownDatabase = options.database ? undefined : await openTestSqlite()
  const database = options.database ?? ownDatabase?.database
  if (!database) throw new Error('no database')
  const clock = testClock()
  const { random = (bytes) => crypto.getRandomValues(bytes) } = options
  const store = createStore(database, { keys: testKeys, clock })
  const configured = requireConfig(loadEnv({ OTPD_TOKEN_MAX_HOURS: '10000', ...options.env }))
  const services = createServices({
    config: { ...configured, plans: options.plans ?? configured.plans },
    store,
    keys: testKeys,
    clock,
    random,
    world: testWorld,
    version: '0.0.0-test',
    node: { name: 'test', isSole: true },
    publicUrl: () => publicUrl,
    messaging: options.messaging,
    report: options.report,
    onChallengeChecked: options.onChallengeChecked,
    ...(options.onGuardAlert && { onGuardAlert: options.onGuardAlert }),
  })
  if (options.delivery) await services.messaging.start(options.delivery)
  const { newId } = services
  const signingKeys = createSigningKeys({
    store,
    clock,
    newId,
    random,
    keys: testKeys,
  })
  const bugs: unknown[] = []
  const app = createApp({
    ...services,
    readiness: () => Promise.resolve('ready' as const),
    onBug: (error) => void bugs.push(error),
  })

  async function request<T = unknown>(
    method: string,
    path: string,
    { as, body, headers }: TestRequest = {},
  ): Promise<TestResponse<T>> {
    const response = await app.handle(
      new Request(`${publicUrl}${path}`, {
        method,
        headers: omitUndefined({
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...as?.headers,
          ...headers,
        }),
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      }),
    )
    const text = await response.text()
    const parsed: Pick<TestResponse<T>, 'data' | 'pagination' | 'error'> = JSON.parse(text || '{}')
    return { ...parsed, status: response.status, headers: response.headers, text }
  }

  /** Signs an ID token like the built-in provider, but valid for 400 days, so that tests can move the clock. */
  async function signIdToken(subject: string): Promise<string> {
    const { kid, privateKey } = await signingKeys.current()
    const nowSeconds = Math.floor(clock.now() / 1000)
    return new SignJWT({ aud: builtInClientId, sub: subject, iss: `${publicUrl}/v1/auth` })
      .setIssuedAt(nowSeconds)
      .setExpirationTime(nowSeconds + 400 * 24 * 3600)
      .setProtectedHeader({ alg: signingAlgorithm, typ: 'JWT', kid })
      .sign(privateKey)
  }

  /** Creates a resource. @throws Error unless the response is 201 */
  async function createResource<T>(path: string, as: TestCaller, body: unknown): Promise<T> {
    const response = await request<T>('POST', path, { as, body })
    if (response.status !== 201) throw new Error(`POST ${path}: ${response.status} ${response.text}`)
    return response.data
  }

  async function createProject(as: TestCaller, name = 'Project'): Promise<{ id: string }> {
    return createResource('/v1/projects', as, { name })
  }

  return {
    clock,
    random,
    database,
    store,
    services,
    app,
    request,
    createProject,

    async createDeveloper(plan = 'free'): Promise<TestDeveloper> {
      const id = newId('dev')
      const newDeveloper = {
        id,
        issuer: builtInIssuer,
        subject: id,
        email: null,
        name: 'Ada',
        plan,
        now: clock.now(),
      }
      const developer = await store.write((tx) => insertDeveloper(tx, newDeveloper, random))
      if (!developer) throw new Error('the developer was not created')
      return {
        developer: { ...developer, origin: hostOrigin },
        headers: { authorization: `Bearer ${await signIdToken(id)}` },
      }
    },

    /** @param applicationOptions.projectId creates a project if missing */
    async createApplication(
      as: TestDeveloper,
      applicationOptions: { name?: string; projectId?: string; environment?: 'live' | 'test' } = {},
    ): Promise<TestApplication> {
      const { name = 'Application', environment = 'live' } = applicationOptions
      const projectId = applicationOptions.projectId ?? (await createProject(as)).id
      const created = await createResource<Omit<TestApplication, 'headers'>>('/v1/applications', as, {
        name,
        projectId,
        environment,
      })
      return { ...created, headers: credentialHeaders(created) }
    },

    /** Closes everything opened here. @throws AggregateError if the application reported bugs */
    async dispose(): Promise<void> {
      if (options.delivery) await services.messaging.stop(0)
      await ownDatabase?.dispose()
      if (bugs.length > 0) throw new AggregateError(bugs, 'the application reported bugs')
    },
  }
}

const omitUndefined = (headers: Record<string, string | undefined>) =>
  Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined)

export const credentialHeaders = (credentials: {
  clientId: string
  clientSecret: string
  apiKey: string
}) => ({
  'x-client-id': credentials.clientId,
  'x-client-secret': credentials.clientSecret,
  'x-api-key': credentials.apiKey,
})
