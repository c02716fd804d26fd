import type { ProcessClock } from '../helpers/process-clock.ts'
import { callApi, poll, requestTokens, type ApiResponse } from './http.ts'
import { startInstance, allowWebhooks, type Instance, type InstanceOptions } from './instance.ts'
import { listAt, textAt, valueAt, type Json } from './json.ts'
import type { Receivers } from './receivers.ts'

export const minuteMs = 60_000
export const hourMs = 60 * minuteMs
export const dayMs = 24 * hourMs

export type Account = { email: string; password: string }

export type Application = {
  id: string
  owner: string
  webhookSecret: string
  clientId: string
  clientSecret: string
  apiKey: string
}

export type Sent = { id: string; phone: string; code: string }

type CallOptions = { body?: Json; headers?: Record<string, string>; status?: number }

export type World = ReturnType<typeof createWorld>

/** Drives one installation through time: consecutive servers, accounts and applications. */
export function createWorld(
  base: Omit<InstanceOptions, 'gatewayUrl' | 'env'>,
  clock: ProcessClock,
  receivers: Receivers,
) {
  const accounts = new Map<string, Account>()
  const applications = new Map<string, Application>()
  const tokens = new Map<string, { token: string; endsAt: number }>()
  let instance: Instance | undefined

  const server = () => {
    if (!instance) throw new Error('No server is running.')
    return instance
  }

  const account = (name: string) => entry(accounts, name)
  const application = (name: string) => entry(applications, name)

  /** Calls the API and checks the status: 200 or 201, unless another one is expected. */
  async function call(
    caller: string,
    method: string,
    path: string,
    options: CallOptions = {},
  ): Promise<Json> {
    const { body, headers = {}, status } = options
    const response = await callApi(server().url, path, {
      method,
      headers: { ...(await credentials(caller)), ...headers },
      ...(body !== undefined && { body }),
    })
    const isExpected =
      status === undefined ? [200, 201].includes(response.status) : response.status === status
    if (!isExpected) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(response.body)}`)
    return response.body
  }

  async function credentials(caller: string): Promise<Record<string, string>> {
    const found = applications.get(caller)
    if (found) return applicationHeaders(found)
    const held = tokens.get(caller)
    if (held && held.endsAt > clock.now() + minuteMs) return { authorization: `Bearer ${held.token}` }
    const { email: username, password } = account(caller)
    const response = await requestTokens(server().url, { grant_type: 'password', username, password })
    return { authorization: `Bearer ${holdToken(caller, response)}` }
  }

  function holdToken(caller: string, response: ApiResponse): string {
    const token = textAt(response.body, 'id_token')
    tokens.set(caller, { token, endsAt: clock.now() + 15 * minuteMs })
    return token
  }

  /** Finds the code of a request: in the response, at the gateway, or in the owner's inbox. */
  async function findCode(name: string, response: Json): Promise<string> {
    const id = textAt(response, 'data', 'requestId')
    const code = valueAt(response, 'data', 'code') ?? receivers.messages.get(id)?.code
    if (typeof code === 'string') return code
    const inbox = await call(application(name).owner, 'GET', '/v1/inbox?limit=200')
    const item = listAt(inbox, 'data').find((one) => valueAt(one, 'requestId') === id) ?? null
    return textAt(item, 'code')
  }

  async function send(
    name: string,
    phone: string,
    options: CallOptions & { more?: object } = {},
  ): Promise<Sent> {
    const { more, ...rest } = options
    const response = await call(name, 'POST', '/v1/otp/send', { ...rest, body: { phone, ...more } })
    return { id: textAt(response, 'data', 'requestId'), phone, code: await findCode(name, response) }
  }

  const verify = (name: string, { id, code }: Pick<Sent, 'id' | 'code'>, status = 200) =>
    call(name, 'POST', '/v1/otp/verify', { body: { requestId: id, code }, status })

  return {
    clock,
    receivers,
    accounts,
    applications,
    account,
    application,
    server,
    call,
    holdToken,
    findCode,
    send,
    verify,

    async start(env: Record<string, string> = {}): Promise<void> {
      const { gatewayUrl } = receivers
      instance = await startInstance({
        ...base,
        gatewayUrl,
        env: { ...clock.env, ...allowWebhooks(new URL(gatewayUrl).hostname), ...env },
      })
    },

    async stop(): Promise<void> {
      const exitCode = await server().stop()
      instance = undefined
      if (exitCode !== 0) throw new Error(`The server ended with ${exitCode}.`)
    },

    /** Runs an operator command. @throws Error if it fails */
    async operate(args: string[], input?: string): Promise<string> {
      const { exitCode, stdout, stderr } = await server().run([...args, '--yes'], input)
      if (exitCode !== 0) throw new Error(`otpd ${args.join(' ')}: ${exitCode} ${stderr}`)
      return stdout
    },

    /** Uses up attempts with wrong codes. */
    async guess(name: string, sent: Sent, times: number): Promise<void> {
      const code = String((Number(sent.code) + 1) % 1_000_000).padStart(6, '0')
      for (let n = 0; n < times; n += 1) await verify(name, { id: sent.id, code }, 400)
    },

    /** Waits until a delivery of an endpoint satisfies the condition. */
    awaitDelivery: (owner: string, endpointId: string, fits: (delivery: Json) => boolean) =>
      poll(
        async () => listAt(await call(owner, 'GET', `/v1/webhooks/${endpointId}/deliveries`), 'data'),
        (deliveries) => deliveries.some(fits),
        `a delivery of ${endpointId}`,
      ),
  }
}

export const applicationHeaders = ({ clientId, clientSecret, apiKey }: Application) => ({
  'x-client-id': clientId,
  'x-client-secret': clientSecret,
  'x-api-key': apiKey,
})

function entry<T>(map: Map<string, T>, name: string): T {
  const found = map.get(name)
  if (found === undefined) throw new Error(`There is no ${name}.`)
  return found
}
