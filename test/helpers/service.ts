import { SignJWT } from 'jose'
import { createAppAuthenticator } from '../../src/auth/app-credentials.ts'
import { builtInClientId, createBuiltInVerifier } from '../../src/auth/built-in-issuer.ts'
import { createSigningKeys, signingAlgorithm } from '../../src/auth/signing-keys.ts'
import { createApplicationService } from '../../src/domain/applications.ts'
import {
  builtInIssuer,
  createDeveloperService,
  insertDeveloper,
  type Developer,
} from '../../src/domain/developers.ts'
import type { ErrorCode, ErrorDetail } from '../../src/domain/errors.ts'
import { createIds } from '../../src/domain/ids.ts'
import { deriveKeys, masterKeyBytes } from '../../src/domain/keys.ts'
import { FREE_PLAN, type Plans } from '../../src/domain/plans.ts'
import type { Random } from '../../src/domain/ports.ts'
import { createProjectService } from '../../src/domain/projects.ts'
import { createApp } from '../../src/http/app.ts'
import { createClientAddress } from '../../src/http/client-address.ts'
import { createConsoleAuth } from '../../src/http/console-auth.ts'
import type { Database } from '../../src/store/database.ts'
import { createStore } from '../../src/store/store.ts'
import { testClock } from './clock.ts'
import { openTestSqlite } from './databases.ts'

/** Whoever may call: a developer with a token, an application with its three headers. */
export type TestCaller = { headers: Record<string, string> }

export type TestDeveloper = TestCaller & { developer: Developer }

/** What the create call answered, and the headers made of it. */
export type TestApplication = TestCaller & {
  id: string
  projectId: string
  clientId: string
  clientSecret: string
  apiKey: string
  webhookSecret: string
}

export type TestRequest = {
  as?: TestCaller | undefined
  /** An object is sent as JSON; text as it is, still as `application/json`. */
  body?: unknown
  headers?: Record<string, string>
}

export type TestAnswer<T> = {
  status: number
  headers: Headers
  text: string
  /** Present where the call succeeded; reading it of a refusal fails the test. */
  data: T
  pagination: { limit: number; nextCursor: string | null }
  /** Present where the call was refused. */
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

/**
 * The real application on a real store, with a clock that stands still. It listens to nothing: requests are handed to
 * the application itself.
 *
 * @param options.database of the caller's, who closes it; otherwise a new SQLite file
 */
export async function createTestService(options: { plans?: Plans; database?: Database } = {}) {
  const opened = options.database ? undefined : await openTestSqlite()
  const database = options.database ?? opened?.database
  if (!database) throw new Error('no database')
  const clock = testClock()
  const random: Random = (bytes) => crypto.getRandomValues(bytes)
  const newId = createIds(clock, random)
  // Always the same: several services may stand on one database.
  const keys = deriveKeys(new Uint8Array(masterKeyBytes).fill(7))
  const plans = options.plans ?? { free: FREE_PLAN }
  const store = createStore(database)
  const bugs: unknown[] = []
  const needs = { store, clock, newId, random, keys, plans, signUp: 'closed' as const }

  const issuerUrl = () => 'http://otpd.test/v1/auth'
  const signingKeys = createSigningKeys({ store, clock, random, key: keys.signingKey })
  const { verify } = createBuiltInVerifier({ issuerUrl, signingKeys, clock })
  const developers = createDeveloperService(needs)
  const services = {
    newId,
    appAuth: createAppAuthenticator(needs),
    applications: createApplicationService(needs),
    builtIn: undefined,
    clientAddress: createClientAddress([]),
    consoleAuth: createConsoleAuth({ verify, developers }),
    developers,
    loginSettings: () => Promise.resolve(loginSettings),
    onBug: (error: unknown) => void bugs.push(error),
    projects: createProjectService(needs),
  }
  const app = createApp(services)

  async function request<T = unknown>(
    method: string,
    path: string,
    { as, body, headers }: TestRequest = {},
  ): Promise<TestAnswer<T>> {
    const response = await app.handle(
      new Request(`http://otpd.test${path}`, {
        method,
        headers: {
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...as?.headers,
          ...headers,
        },
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      }),
    )
    const text = await response.text()
    const answer: Pick<TestAnswer<T>, 'data' | 'pagination' | 'error'> = JSON.parse(text)
    return { ...answer, status: response.status, headers: response.headers, text }
  }

  /** A token that the built-in provider might have given out, but that outlives every move of the clock. */
  async function signIdToken(subject: string): Promise<string> {
    const { kid, privateKey } = await signingKeys.current()
    const nowSeconds = Math.floor(clock.now() / 1000)
    return new SignJWT({ aud: builtInClientId, sub: subject, iss: issuerUrl() })
      .setIssuedAt(nowSeconds)
      .setExpirationTime(nowSeconds + 400 * 24 * 3600)
      .setProtectedHeader({ alg: signingAlgorithm, typ: 'JWT', kid })
      .sign(privateKey)
  }

  /** Creates something that the test only needs. */
  async function make<T>(path: string, as: TestCaller, body: unknown): Promise<T> {
    const answer = await request<T>('POST', path, { as, body })
    if (answer.status !== 201) throw new Error(`POST ${path}: ${answer.status} ${answer.text}`)
    return answer.data
  }

  async function createProject(as: TestCaller, name = 'Project'): Promise<{ id: string }> {
    return make('/v1/projects', as, { name })
  }

  return {
    clock,
    database,
    store,
    services,
    app,
    request,
    createProject,

    async createDeveloper(plan = 'free'): Promise<TestDeveloper> {
      const id = newId('dev')
      const fresh = {
        id,
        issuer: builtInIssuer,
        subject: id,
        email: null,
        name: 'Ada',
        plan,
        now: clock.now(),
      }
      const developer = await store.write((tx) => insertDeveloper(tx, fresh, random))
      if (!developer) throw new Error('the developer was not made')
      return { developer, headers: { authorization: `Bearer ${await signIdToken(id)}` } }
    },

    /** @param wishes.projectId without one a project is made first */
    async createApplication(
      as: TestDeveloper,
      wishes: { name?: string; projectId?: string; environment?: 'live' | 'test' } = {},
    ): Promise<TestApplication> {
      const { name = 'Application', environment = 'live' } = wishes
      const projectId = wishes.projectId ?? (await createProject(as)).id
      const created = await make<Omit<TestApplication, 'headers'>>('/v1/applications', as, {
        name,
        projectId,
        environment,
      })
      return { ...created, headers: credentialHeaders(created) }
    },

    /** Closes what was opened here. Fails where the application reported a bug. */
    async dispose(): Promise<void> {
      await opened?.dispose()
      if (bugs.length > 0) throw new AggregateError(bugs, 'the application reported bugs')
    },
  }
}

export const credentialHeaders = (of: { clientId: string; clientSecret: string; apiKey: string }) => ({
  'x-client-id': of.clientId,
  'x-client-secret': of.clientSecret,
  'x-api-key': of.apiKey,
})

/** Nobody logs in here: `createDeveloper` hands out tokens. */
const loginSettings = {
  kind: 'oidc' as const,
  issuer: 'https://idp.example',
  clientId: 'client-1',
  tokenEndpoint: null,
  revocationEndpoint: null,
  setupTokenAwaited: false,
}
