import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ServerOptions } from './binary.ts'
import { unlimitedPlan } from './plans.ts'

const email = 'ada@example.com'
const password = 'correct horse battery'

/**
 * Creates a home for `startServer` with an account and no limits. Webhook receivers on this machine are allowed.
 *
 * @param plan overrides the plan of the accounts
 */
export function makeServerHome(plan = {}): Required<Pick<ServerOptions, 'home' | 'args' | 'env'>> {
  const home = mkdtempSync(join(tmpdir(), 'otpd-webhooks-'))
  const passwordFile = join(home, 'password')
  writeFileSync(passwordFile, password, { mode: 0o600 })
  const config = join(home, 'otpd.toml')
  const limits = { ...unlimitedPlan, ...plan }
  const lines = Object.entries(limits).map(([name, value]) => `${name} = ${value}`)
  writeFileSync(config, `[plans.free]\n${lines.join('\n')}\n`)
  return {
    home,
    args: ['--config', config],
    env: {
      OTPD_ADMIN_EMAIL: email,
      OTPD_ADMIN_PASSWORD_FILE: passwordFile,
      OTPD_WEBHOOK_ALLOW: '127.0.0.1/32',
    },
  }
}

export type TestApp = { id: string; webhookSecret: string; headers: Record<string, string> }

export type WebhookClient = Awaited<ReturnType<typeof logIn>>

/** Credentials of the account that `makeServerHome` creates. */
export const login = { username: email, password }

/**
 * Logs in to a running server, by default as the developer of `makeServerHome`. Its calls throw if they are refused.
 *
 * @param init options of every call, such as the certificate authority to trust
 */
export async function logIn(url: string, { username, password } = login, init: BunFetchRequestInit = {}) {
  const form = { grant_type: 'password', username, password }
  const tokens = await fetch(`${url}/v1/auth/token`, {
    ...init,
    method: 'POST',
    body: new URLSearchParams(form),
  })
  // The server is the one under test; its callers know the shape of the response.
  const { id_token: token } = (await tokens.json()) as { id_token: string }

  const call = <T>(method: string, path: string, body?: object, headers = {}): Promise<T> =>
    callAt<T>(url, method, path, body, headers)

  async function callAt<T>(
    url: string,
    method: string,
    path: string,
    body?: object,
    headers = {},
  ): Promise<T> {
    const response = await fetch(`${url}${path}`, {
      ...init,
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
      ...(body && { body: JSON.stringify(body) }),
    })
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    // 204 has no body.
    return response.status === 204 ? (undefined as T) : ((await response.json()) as { data: T }).data
  }
  let projectId: string | undefined

  return {
    token,
    call,
    /** Calls another node of the same installation. */
    callAt,

    /** Creates an application, by default of the environment `test`, whose codes are not sent. */
    async createApplication(name = 'Webhooks', environment: 'live' | 'test' = 'test'): Promise<TestApp> {
      projectId ??= (await call<{ id: string }>('POST', '/v1/projects', { name })).id
      const application = await call<
        Record<'id' | 'webhookSecret' | 'clientId' | 'clientSecret' | 'apiKey', string>
      >('POST', '/v1/applications', { name, projectId, environment })
      const headers = {
        'x-client-id': application.clientId,
        'x-client-secret': application.clientSecret,
        'x-api-key': application.apiKey,
      }
      return { id: application.id, webhookSecret: application.webhookSecret, headers }
    },

    createEndpoint: (app: TestApp, target: string, events = ['otp.sent'], overrides = {}) =>
      call<{ id: string }>('POST', '/v1/webhooks', { appId: app.id, url: target, events, ...overrides }),
  }
}

/** Sends a code, which causes an `otp.sent` event. @returns the request id, or undefined if it was not acknowledged */
export async function sendOtp(
  url: string,
  app: TestApp,
  phone: string,
  init: BunFetchRequestInit = {},
): Promise<string | undefined> {
  try {
    const response = await fetch(`${url}/v1/otp/send`, {
      ...init,
      method: 'POST',
      headers: { 'content-type': 'application/json', ...app.headers },
      body: JSON.stringify({ phone }),
    })
    if (response.status !== 201) return undefined
    const { data } = (await response.json()) as { data: { requestId: string } }
    return data.requestId
  } catch {
    return undefined
  }
}
