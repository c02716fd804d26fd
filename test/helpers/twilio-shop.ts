import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { joinSecrets, toSid } from '../../src/shared/sids.ts'
import { startServer } from './binary.ts'
import { createProcessClock } from './process-clock.ts'
import { startProviderServer } from './provider-server.ts'

export type TwilioShop = Awaited<ReturnType<typeof startTwilioShop>>

/** An application as a client of Twilio knows it. */
export type TwilioAccount = {
  id: string
  accountSid: string
  authToken: string
  serviceSid: string
  /** Credentials for the API of otpd. */
  headers: Record<string, string>
}

export type TwilioAnswer = {
  status: number
  headers: Headers
  text: string
  /** Body of an error. */
  error: { code: number; message: string; more_info: string; status: number }
  /** Body of a success. */
  body: {
    sid: string
    status: string
    valid: boolean
    channel: string
    send_code_attempts: Array<{ time: string; channel: string; attempt_sid: string }>
  } & Record<string, unknown>
}

/**
 * Starts the compiled server with the façade of Twilio Verify, a gateway, and a live and a test application. The clock
 * of the server moves by `advance`.
 *
 * @param settings lines of the configuration file
 * @param channels those of the gateway
 */
export async function startTwilioShop({
  settings = '[limits]\nsendPerMinute = 0\nverifyPerMinute = 0\nphoneSendBudget = "off"\n[guard]\nmode = "off"\n',
  env = {},
  channels = 'telegram,sms,voice',
}: { settings?: string; env?: Record<string, string>; channels?: string } = {}) {
  const home = mkdtempSync(join(tmpdir(), 'otpd-twilio-'))
  const clock = createProcessClock(home)
  const gateway = startProviderServer()
  const texts = new Map<string, string>()
  const codeOf = (phone: string) => /\d{6}/.exec(texts.get(phone) ?? '')?.[0] ?? ''
  let failures = 0
  let held: PromiseWithResolvers<void> | undefined
  let called = Promise.withResolvers<void>()
  gateway.setHandler(async ({ body }) => {
    called.resolve()
    await held?.promise
    if (failures-- > 0) return new Response(null, { status: 503 })
    const { to, text } = JSON.parse(body) as { to: string; text: string }
    texts.set(to, text)
    return Response.json({ id: '1' })
  })
  const configFile = join(home, 'otpd.toml')
  const provider = `[[providers]]\nname = "gateway"\nkind = "http-template"\nchannels = "${channels}"\nurl = "${gateway.url}/send"\nbody = '{"to": "{{to}}", "text": "{{text}}"}'\n`
  writeFileSync(configFile, settings + provider)
  const dataDir = join(home, 'data')
  const server = await startServer({
    home,
    dataDir,
    env: { OTPD_CONFIG: configFile, OTPD_COMPAT: 'twilio-verify', ...clock.env, ...env },
  })
  const { otpd } = server
  const login = ['login', '--setup-token', server.setupToken(), '--email', 'a@b.example', '--password-stdin']
  await otpd(login, { input: 'correct horse battery' })
  await otpd(['project', 'create', 'shop'])

  async function createAccount(name: string, environment: 'live' | 'test'): Promise<TwilioAccount> {
    const { stdout } = await otpd(['app', 'create', name, '-p', 'shop', '-e', environment, '--json'])
    const { data }: { data: Record<'id' | 'clientId' | 'clientSecret' | 'apiKey', string> } =
      JSON.parse(stdout)
    return {
      id: data.id,
      accountSid: toSid('AC', data.id),
      authToken: joinSecrets(data.clientSecret, data.apiKey),
      serviceSid: toSid('VA', data.id),
      headers: {
        'x-client-id': data.clientId,
        'x-client-secret': data.clientSecret,
        'x-api-key': data.apiKey,
        'content-type': 'application/json',
      },
    }
  }

  const live = await createAccount('live', 'live')
  const test = await createAccount('test', 'test')

  async function call(
    method: string,
    path: string,
    fields: Record<string, string> | string | undefined,
    { as = live, headers = {} }: { as?: TwilioAccount | null; headers?: Record<string, string> } = {},
  ): Promise<TwilioAnswer> {
    const authorization = as && `Basic ${btoa(`${as.accountSid}:${as.authToken}`)}`
    const response = await fetch(server.url + path, {
      method,
      redirect: 'manual',
      headers: {
        ...(authorization && { authorization }),
        ...(fields && { 'content-type': 'application/x-www-form-urlencoded' }),
        ...headers,
      },
      ...(fields && { body: typeof fields === 'string' ? fields : new URLSearchParams(fields).toString() }),
    })
    const text = await response.text()
    const parsed = text === '' ? {} : JSON.parse(text)
    return { status: response.status, headers: response.headers, text, error: parsed, body: parsed }
  }

  let phones = 0
  const service = (as: TwilioAccount) => `/v2/Services/${as.serviceSid}`
  return {
    server,
    dataDir,
    otpd,
    live,
    test,
    createAccount,
    call,
    /** Returns a number that no other call got. */
    newPhone: () => `+1415${2_000_000 + 7 * phones++}`,
    /** Returns the code that the phone shows. */
    codeOf,
    /** Returns the message that the phone shows. */
    textOf: (phone: string) => texts.get(phone) ?? '',
    /** Lets the gateway wait with its answers. @returns ends that */
    holdGateway() {
      held = Promise.withResolvers()
      called = Promise.withResolvers()
      return () => {
        held?.resolve()
        held = undefined
      }
    },
    /** Resolves once the gateway that was held is called. */
    gatewayCalled: () => called.promise,
    /** Lets the gateway fail at the next calls. */
    failNext: (count: number) => void (failures = count),
    wrongCodeOf: (phone: string, distance = 1) =>
      String((Number(codeOf(phone)) + distance) % 1_000_000).padStart(6, '0'),
    /** Requests of a verification's life. */
    create: (phone: string, fields: Record<string, string> = {}, as = live, headers = {}) =>
      call('POST', `${service(as)}/Verifications`, { To: phone, Channel: 'sms', ...fields }, { as, headers }),
    fetch: (item: string, as = live) =>
      call('GET', `${service(as)}/Verifications/${item}`, undefined, { as }),
    update: (item: string, fields: Record<string, string> = { Status: 'canceled' }, as = live) =>
      call('POST', `${service(as)}/Verifications/${item}`, fields, { as }),
    check: (fields: Record<string, string>, as = live) =>
      call('POST', `${service(as)}/VerificationCheck`, fields, { as }),
    /** Calls the API of otpd. */
    native: async (path: string, body: object, as = live) => {
      const response = await fetch(server.url + path, {
        method: 'POST',
        headers: as.headers,
        body: JSON.stringify(body),
      })
      const parsed = (await response.json()) as {
        data: { requestId: string }
        error: { code: string; reason?: string }
      }
      return { status: response.status, ...parsed }
    },
    /** Lets time pass for the server. */
    advance: clock.advance,
    async stop() {
      await server.stop()
      await gateway.stop()
      clock.close()
      rmSync(home, { recursive: true, force: true })
    },
  }
}
