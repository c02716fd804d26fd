import { totpCode, totpStep } from '../../../src/domain/model/totp.ts'
import { joinSecrets, toSid } from '../../../src/shared/sids.ts'
import { decodeBase32 } from '../../helpers/base32.ts'
import { callApi, requestTokens } from '../http.ts'
import { textAt, type Json } from '../json.ts'
import type { Application, Sent, World } from '../world.ts'
import type { NewerState } from './open-state.ts'
import { createAccount } from './setup.ts'

/** Creates open state of what releases after 0.1.0 can do. */
export async function seedNewerState(world: World): Promise<NewerState> {
  const { call } = world
  const key = 'b7d2a4'
  const body = { phone: '+447700900107', code: '90210' }
  const relayed = await call('web', 'POST', '/v1/otp/deliver', { body, headers: { 'idempotency-key': key } })
  const token = await call('ada', 'POST', '/v1/tokens', { body: { name: 'reports', scopes: ['read'] } })
  return {
    byPhone: await world.send('web', '+15125550152', {
      more: { clientIp: '198.51.100.21', deviceId: 'phone-1' },
    }),
    byFacade: await sendByFacade(world),
    relayed: { key, body, id: textAt(relayed, 'data', 'id') },
    apiToken: textAt(token, 'data', 'token'),
    secondFactor: await enableSecondFactor(world),
  }
}

/** Calls the façade of Twilio Verify as an application. */
export const callFacade = (
  url: string,
  application: Application,
  path: string,
  fields: Record<string, string>,
) =>
  callApi(url, `/v2/Services/${toSid('VA', application.id)}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Basic ${btoa(`${toSid('AC', application.id)}:${joinSecrets(application.clientSecret, application.apiKey)}`)}`,
    },
    body: new URLSearchParams(fields),
  })

async function sendByFacade(world: World): Promise<Sent> {
  const phone = '+15125550153'
  const sent = await callFacade(world.server().url, world.application('web'), '/Verifications', {
    To: phone,
    Channel: 'sms',
  })
  if (sent.status !== 201) throw new Error(`The façade responded ${JSON.stringify(sent)}`)
  const page = await world.call('ada', 'GET', `/v1/otp?phone=${encodeURIComponent(phone)}`)
  const id = textAt(page, 'data', '0', 'id')
  return { id, phone, code: await world.findCode('web', { data: { requestId: id } }) }
}

/** Returns what an authenticator app shows. */
export const currentTotp = (secret: string, now: number) => totpCode(decodeBase32(secret), totpStep(now))

/** Creates an account that needs codes of an authenticator app to log in. */
async function enableSecondFactor(world: World): Promise<NewerState['secondFactor']> {
  const account = { email: 'frank@example.com', password: 'a password of frank' }
  await createAccount(world, account.email, 'Frank', account.password)
  const { url } = world.server()
  const login = await requestTokens(url, {
    grant_type: 'password',
    username: account.email,
    password: account.password,
  })
  const headers = { authorization: `Bearer ${textAt(login.body, 'id_token')}` }
  const post = async (path: string, body?: Json) => {
    const response = await callApi(url, path, {
      method: 'POST',
      headers,
      ...(body !== undefined && { body }),
    })
    if (response.status !== 200) throw new Error(`POST ${path}: ${JSON.stringify(response)}`)
    return response.body
  }
  const secret = textAt(await post('/v1/developer/me/totp'), 'data', 'secret')
  await post('/v1/developer/me/totp/confirm', { code: currentTotp(secret, world.clock.now()) })
  return { ...account, secret }
}
