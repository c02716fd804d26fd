import { startTwilioShop, type TwilioAccount } from './twilio-shop.ts'

export type CamaraAnswer = {
  status: number
  headers: Headers
  text: string
  /** Body of an error. */
  error: { status: number; code: string; message: string }
  /** Body of a success. */
  body: { authenticationId: string }
}

export type CamaraShop = Awaited<ReturnType<typeof startCamaraShop>>

export const correlator = 'b4333c46-49c0-4f62-80d7-f0ef930f1c46'

/** Starts the server of `startTwilioShop` with the façade of CAMARA one-time-password-sms. */
export async function startCamaraShop(options: Parameters<typeof startTwilioShop>[0] = {}) {
  const shop = await startTwilioShop({ ...options, env: { OTPD_COMPAT: 'camara', ...options.env } })
  const tokens = new Map<TwilioAccount, string>()

  /** Asks for a token. @param form fields that replace those of the account; an empty one counts as absent */
  async function requestToken(
    as = shop.live,
    form: Record<string, string> = {},
    headers: Record<string, string> = {},
  ) {
    const own = {
      grant_type: 'client_credentials',
      client_id: as.headers['x-client-id'] ?? '',
      client_secret: as.authToken,
    }
    const response = await fetch(`${shop.server.url}/camara/token`, {
      method: 'POST',
      headers,
      body: new URLSearchParams({ ...own, ...form }),
    })
    const body = (await response.json()) as Record<string, string>
    return { status: response.status, headers: response.headers, body }
  }

  /** Returns a token that is at most as old as the clock of the server stood still. */
  async function tokenOf(as: TwilioAccount): Promise<string> {
    const token = tokens.get(as) ?? (await requestToken(as)).body['access_token'] ?? ''
    tokens.set(as, token)
    return token
  }

  async function call(
    method: string,
    path: string,
    body: unknown,
    { as = shop.live, token, headers = {} }: CallOptions = {},
  ): Promise<CamaraAnswer> {
    const bearer = token ?? (await tokenOf(as))
    const response = await fetch(shop.server.url + path, {
      method,
      redirect: 'manual',
      headers: {
        ...(bearer !== '' && { authorization: `Bearer ${bearer}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        'x-correlator': correlator,
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    const parsed = text === '' ? {} : JSON.parse(text)
    return { status: response.status, headers: response.headers, text, error: parsed, body: parsed }
  }

  return {
    ...shop,
    requestToken,
    tokenOf,
    call,
    /** Sends a code. */
    sendCode: (phoneNumber: string, message = '{{code}} is your code', options: CallOptions = {}) =>
      call('POST', '/one-time-password-sms/v1/send-code', { phoneNumber, message }, options),
    validateCode: (authenticationId: string, code: string, options: CallOptions = {}) =>
      call('POST', '/one-time-password-sms/v1/validate-code', { authenticationId, code }, options),
    /** Lets time pass for the server; tokens end. */
    advance(ms: number) {
      tokens.clear()
      shop.advance(ms)
    },
  }
}

/** `token`: '' sends none. */
type CallOptions = { as?: TwilioAccount; token?: string; headers?: Record<string, string> }
