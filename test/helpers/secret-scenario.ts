import { totpCode, totpStep } from '../../src/domain/model/totp.ts'
import { decodeBase32 } from './base32.ts'
import type { WebhookReceiver } from './webhook-receiver.ts'

// Distinctive, so that a search for them finds nothing else.
const password = 'correct hOrSe bAtTeRy sTaPlE'
const newPassword = 'another hOrSe bAtTeRy sTaPlE'
const wrongPassword = 'wrong hOrSe bAtTeRy sTaPlE'
const phones = ['+14155552671', '+447911123456', '+4915112345678']

type Answer = { status: number; json: { data: Record<string, string> } & Record<string, string> }

/** Creates a scenario that issues and uses every kind of secret, and records the secrets and the refusals. */
export function createSecretScenario() {
  /** Secrets by description. */
  const secrets = new Map<string, string>()
  const codes = new Set<string>()
  const refusals: Array<{ status: number; text: string }> = []
  let calls = 0

  /** Runs the scenario on a new server, including every kind of failure. */
  async function run(server: { url: string; setupToken: string | undefined }, receiver: WebhookReceiver) {
    async function call(
      method: string,
      path: string,
      headers: Record<string, string>,
      body?: string | object,
    ): Promise<Answer> {
      calls += 1
      const isForm = body instanceof URLSearchParams
      const response = await fetch(server.url + path, {
        method,
        headers: { ...(body !== undefined && !isForm && { 'content-type': 'application/json' }), ...headers },
        ...(body !== undefined && { body: isForm || typeof body === 'string' ? body : JSON.stringify(body) }),
      })
      const text = await response.text()
      if (response.status >= 400) refusals.push({ status: response.status, text })
      return { status: response.status, json: JSON.parse(text) }
    }

    const grant = async (name: string, form: Record<string, string>) => {
      const { json } = await call('POST', '/v1/auth/token', {}, new URLSearchParams(form))
      for (const kind of ['id_token', 'refresh_token']) {
        const token = json[kind]
        if (token !== undefined) secrets.set(`${kind} of ${name}`, token)
      }
      return json
    }

    const recordSecret = (name: string, value: string | undefined) => {
      if (value === undefined) throw new Error(`${name} was not issued`)
      secrets.set(name, value)
      return value
    }

    // The account: setup, logins, refresh, revocation, and their failures.
    const setupToken = recordSecret('setup token', server.setupToken)
    for (const one of [password, newPassword, wrongPassword]) secrets.set(one, one)
    await grant('the first login', {
      grant_type: 'urn:otpd:setup-token',
      setup_token: setupToken,
      email: 'ada@example.com',
      password,
      name: 'Ada',
    })
    await grant('the setup token again', {
      grant_type: 'urn:otpd:setup-token',
      setup_token: setupToken,
      email: 'eve@example.com',
      password,
    })
    await grant('a wrong password', {
      grant_type: 'password',
      username: 'ada@example.com',
      password: wrongPassword,
    })
    const login = await grant('a login', { grant_type: 'password', username: 'ada@example.com', password })
    const refreshed = await grant('a refresh', {
      grant_type: 'refresh_token',
      refresh_token: login['refresh_token'] ?? '',
    })
    await call(
      'POST',
      '/v1/auth/revoke',
      {},
      new URLSearchParams({ token: refreshed['refresh_token'] ?? '' }),
    )
    await grant('a revoked session', {
      grant_type: 'refresh_token',
      refresh_token: refreshed['refresh_token'] ?? '',
    })
    const console = await grant('another login', {
      grant_type: 'password',
      username: 'ada@example.com',
      password,
    })
    const bearer = { authorization: `Bearer ${console['id_token']}` }

    // API tokens: created, used, repeated, revoked and used again.
    const tokenKey = { ...bearer, 'idempotency-key': 'token' }
    const token = await call('POST', '/v1/tokens', tokenKey, { name: 'ci', scopes: ['read'] })
    const apiToken = { authorization: `Bearer ${recordSecret('API token', token.json.data['token'])}` }
    await call('POST', '/v1/tokens', tokenKey, { name: 'ci', scopes: ['read'] })
    await call('POST', '/v1/tokens', bearer, { name: 'ci', scopes: ['read'] })
    await call('GET', '/v1/projects', apiToken)
    await call('POST', '/v1/projects', apiToken, { name: 'Shop' })
    await call('GET', '/v1/tokens', bearer)
    await call('DELETE', `/v1/tokens/${token.json.data['id']}`, bearer)
    await call('GET', '/v1/projects', apiToken)

    // A second factor, with a wrong code, and its removal.
    const proposed = await call('POST', '/v1/developer/me/totp', bearer)
    const totpSecret = recordSecret('TOTP secret', proposed.json.data['secret'])
    await call('POST', '/v1/developer/me/totp/confirm', bearer, { code: 'wrong' })
    const code = totpCode(decodeBase32(totpSecret), totpStep(Date.now()))
    const confirmed = await call('POST', '/v1/developer/me/totp/confirm', bearer, { code })
    const [recoveryCode] = Object.values(confirmed.json.data['recoveryCodes'] ?? [])
    recordSecret('recovery code', recoveryCode)
    await call('DELETE', '/v1/developer/me/totp', bearer, { password })

    // Two applications of one project, and every rotation.
    const project = await call('POST', '/v1/projects', bearer, { name: 'Shop' })
    const createApplication = async (environment: string) => {
      const { json } = await call(
        'POST',
        '/v1/applications',
        { ...bearer, 'idempotency-key': environment },
        {
          name: 'Web',
          projectId: project.json.data['id'],
          environment,
        },
      )
      await call(
        'POST',
        '/v1/applications',
        { ...bearer, 'idempotency-key': environment },
        {
          name: 'Web',
          projectId: project.json.data['id'],
          environment,
        },
      )
      for (const kind of ['clientSecret', 'apiKey', 'webhookSecret'])
        recordSecret(`${environment} ${kind}`, json.data[kind])
      return json.data
    }
    const rotateCredential = async (id: string | undefined, type: string) => {
      const { json } = await call('POST', `/v1/applications/${id}/rotate/${type}`, bearer)
      return recordSecret(`rotated ${type} of ${id}`, json.data['value'])
    }
    const testApp = await createApplication('test')
    const liveApp = await createApplication('live')
    await call('GET', `/v1/applications/${liveApp['id']}/webhook-secret`, bearer)
    const headers = {
      'x-client-id': liveApp['clientId'] ?? '',
      'x-client-secret': await rotateCredential(liveApp['id'], 'secret'),
      'x-api-key': await rotateCredential(liveApp['id'], 'api'),
    }
    await rotateCredential(liveApp['id'], 'webhook_secret')
    const webhook = await call('POST', '/v1/webhooks', bearer, {
      appId: liveApp['id'],
      url: `${receiver.url}/hook?token=qUeRyToKeN`,
      events: ['*'],
    })
    await call('POST', `/v1/webhooks/${webhook.json.data['id']}/test`, bearer)

    // Codes: sent, retried, resent, wrong, right, canceled.
    for (const phone of phones) {
      const sent = await call(
        'POST',
        '/v1/otp/send',
        { ...headers, 'idempotency-key': `send-${phones.indexOf(phone)}` },
        { phone, metadata: { note: 'hello' } },
      )
      await call(
        'POST',
        '/v1/otp/send',
        { ...headers, 'idempotency-key': `send-${phones.indexOf(phone)}` },
        { phone, metadata: { note: 'hello' } },
      )
      await call(
        'POST',
        '/v1/otp/send',
        { ...headers, 'idempotency-key': `send-${phones.indexOf(phone)}` },
        { phone, locale: 'de' },
      )
      const { requestId } = sent.json.data
      const inbox: unknown = (await call('GET', '/v1/inbox', bearer)).json.data
      const [newest] = Array.isArray(inbox) ? inbox : []
      codes.add(String(newest.code))
      await call('POST', '/v1/otp/resend', headers, { requestId })
      await call('POST', '/v1/otp/verify', headers, {
        requestId,
        code: newest.code === '000000' ? '000001' : '000000',
      })
      await call('POST', '/v1/otp/verify', headers, { requestId, code: newest.code })
      await call('POST', '/v1/otp/verify', headers, { requestId, code: newest.code })
      await call('GET', `/v1/users/${encodeURIComponent(phone)}`, { 'x-api-key': headers['x-api-key'] })
      await call('GET', `/v1/users/${phone.slice(1)}`, bearer)
      const other = await call('POST', '/v1/otp/send', headers, { phone })
      await call('POST', '/v1/otp/cancel', headers, { requestId: other.json.data['requestId'] })
    }
    const testHeaders = {
      'x-client-id': testApp['clientId'] ?? '',
      'x-client-secret': testApp['clientSecret'] ?? '',
      'x-api-key': testApp['apiKey'] ?? '',
    }
    const sentInTest = await call('POST', '/v1/otp/send', testHeaders, { phone: phones[0] })
    codes.add(sentInTest.json.data['code'] ?? '')

    // Every secret in places where it does not belong.
    for (const secret of [...secrets.values(), ...codes, ...phones]) {
      const encodedSecret = encodeURIComponent(secret)
      await call('GET', `/v1/projects/${encodedSecret}`, bearer)
      await call('GET', `/v1/${encodedSecret}`, {})
      await call('GET', `/v1/projects?cursor=${encodedSecret}`, bearer)
      await call('GET', `/v1/projects?${encodedSecret}=1`, bearer)
      await call('GET', `/v1/otp?appId=${encodedSecret}&x=${encodedSecret}`, bearer)
      await call('PUT', `/v1/users/${encodedSecret}?x=${encodedSecret}`, {})
      await call('GET', '/v1/projects', { authorization: `Bearer ${secret}` })
      await call('GET', '/v1/projects', { authorization: secret })
      await call('POST', '/v1/otp/send', { ...headers, 'x-api-key': secret }, { phone: secret })
      await call('POST', '/v1/otp/send', headers, { phone: secret, [secret]: secret })
      await call('POST', '/v1/otp/send', headers, `{"phone":"${secret}"`)
      await call('POST', '/v1/otp/verify', headers, { requestId: secret, code: secret })
      await call(
        'POST',
        '/v1/projects',
        { ...bearer, 'idempotency-key': `"${secret}` },
        { name: ['x', secret] },
      )
      await call('POST', '/v1/auth/token', {}, new URLSearchParams({ grant_type: secret, [secret]: secret }))
      await call('POST', '/v1/webhooks', bearer, {
        appId: secret,
        url: `https://${encodedSecret}@x.example/`,
        events: [secret],
      })
    }
    await call('POST', '/v1/auth/password', bearer, { currentPassword: wrongPassword, newPassword })
    await call('POST', '/v1/auth/password', bearer, { currentPassword: password, newPassword })
  }

  return { secrets, codes, refusals, phones, calls: () => calls, run }
}

/** True if the text contains the code on its own, not as six digits of a longer number. */
export const containsCode = (text: string, code: string) =>
  new RegExp(`(?<![0-9A-Za-z])${code}(?![0-9A-Za-z])`).test(text)

/** Lists the encodings in which a secret could have been written. */
export const listEncodings = (secret: string) => [
  secret,
  encodeURIComponent(secret),
  Buffer.from(secret).toString('base64').replace(/=+$/, '').slice(0, -1),
  // A credential without its prefix.
  secret.replace(/^(ph_(live|test)_\w+_|whsec_|st_|rt_)/, ''),
]
