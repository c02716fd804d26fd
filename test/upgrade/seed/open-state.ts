import { createHash } from 'node:crypto'
import { callApi, poll, requestTokens } from '../http.ts'
import { gatewaySecret } from '../instance.ts'
import { textAt, valueAt, type Json } from '../json.ts'
import { gatewayPhones, signWebhook } from '../receivers.ts'
import { minuteMs, type Account, type Sent, type World } from '../world.ts'
import { seedNewerState } from './newer-state.ts'
import { createEndpoint } from './setup.ts'

/** State that is still open when the last server stops, with the codes and tokens that continue it. */
export type OpenState = {
  pendingLive: Sent
  pendingTest: Sent
  /** Four attempts of five are spent. */
  almostExhausted: Sent
  resentThrice: Sent
  locked: Sent
  idempotent: { key: string; body: { [name: string]: Json }; sent: Sent }
  pendingEndpoint: string
  setupToken: string
  refreshToken: string
  idTokens: Record<string, string>
  /** State that 0.1.0 could not have. */
  newer?: NewerState
}

export type NewerState = {
  /** Verified by its phone instead of its id. */
  byPhone: Sent
  /** Made through the façade of Twilio Verify. */
  byFacade: Sent
  /** A message with a code of the caller, and its idempotency key. */
  relayed: { key: string; body: { [name: string]: Json }; id: string }
  apiToken: string
  secondFactor: Account & { secret: string }
}

/** Creates messages in every delivery state, through responses and receipts of the gateway. */
export async function seedDeliveries(world: World): Promise<void> {
  const { call, send, verify } = world
  const more = { clientIp: '203.0.113.8', metadata: { order: '1000' } }
  await verify('web', await send('web', gatewayPhones.accepted, { more }))
  await report(world, await send('web', gatewayPhones.receiptDelivered), 'delivered')
  await report(world, await send('web', gatewayPhones.receiptUndelivered), 'undelivered')
  await call('web', 'POST', '/v1/otp/send', { body: { phone: gatewayPhones.refused }, status: 502 })
  await send('web', gatewayPhones.unknown)
}

async function report({ server, receivers, clock }: World, { id }: Sent, status: string): Promise<void> {
  const callbackUrl = new URL(receivers.messages.get(id)?.callbackUrl ?? '')
  const body = JSON.stringify({ requestId: id, status, reason: 'unreachable' })
  const receipt = { id: `receipt_${id}`, timestamp: String(Math.floor(clock.now() / 1000)), body }
  const response = await fetch(`${server().url}${callbackUrl.pathname}${callbackUrl.search}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'webhook-id': receipt.id,
      'webhook-timestamp': receipt.timestamp,
      'webhook-signature': signWebhook(gatewaySecret, receipt),
    },
    body,
  })
  if (!response.ok)
    throw new Error(`The response to the receipt was ${response.status} ${await response.text()}`)
}

const virtualPhone = async ({ call }: World, owner: string) =>
  textAt(await call(owner, 'GET', '/v1/developer/me'), 'data', 'virtualPhoneNumber')

/** Creates requests in every final state: verified, exhausted, expired, canceled. */
export async function seedEndings(world: World): Promise<void> {
  const { call, clock, send, verify, guess } = world
  await verify('web', await send('web', await virtualPhone(world, 'ada')))
  await verify('sandbox', await send('sandbox', '+14155550111', { more: { metadata: { order: '1001' } } }))
  await guess('sandbox', await send('sandbox', '+15125550112'), 5)
  const canceled = await send('web', '+15125550113', { more: { channel: 'sms', locale: 'fr' } })
  await call('web', 'POST', '/v1/otp/cancel', { body: { requestId: canceled.id } })
  const expiring = [await send('web', '+15125550114'), await send('sandbox', '+15125550115')]
  clock.advance(11 * minuteMs)
  for (const { id } of expiring) {
    await poll(
      () => call('ada', 'GET', `/v1/otp/${id}`),
      (request) => valueAt(request, 'data', 'updatedAt') !== valueAt(request, 'data', 'createdAt'),
      'the request is written down as expired',
    )
  }
}

/** Creates an endpoint with two deliveries that are retried about half an hour later. @returns its id */
export async function seedPendingDeliveries(world: World): Promise<string> {
  const { call, clock, send } = world
  const endpoint = await createEndpoint(world, 'web', '/down', ['otp.canceled'], { description: 'Behind' })
  for (const phone of ['+15125550121', '+15125550122']) {
    const { id: requestId } = await send('web', phone)
    await call('web', 'POST', '/v1/otp/cancel', { body: { requestId } })
  }
  for (const [n, waitMs] of [0, 7_000, 7 * minuteMs].entries()) {
    clock.advance(waitMs)
    await world.awaitDelivery('ada', endpoint, (delivery) => valueAt(delivery, 'attempts') === n + 1)
    await poll(
      () => call('ada', 'GET', `/v1/webhooks/${endpoint}/deliveries`),
      (page) => JSON.stringify(page).split(`"attempts":${n + 1}`).length === 3,
      `attempt ${n + 1} of both`,
    )
  }
  return endpoint
}

/** Creates state that is still open when the last server stops. Runs within seconds, so that none of it expires. */
export async function seedOpenState(world: World, pendingEndpoint: string): Promise<OpenState> {
  const { call, clock, send, guess, verify } = world
  const resentThrice = await send('sandbox', '+15125550131')
  for (let n = 0; n < 3; n += 1) {
    clock.advance(31_000)
    await call('sandbox', 'POST', '/v1/otp/resend', { body: { requestId: resentThrice.id } })
  }

  // The settings allow ten failures.
  let locked = await send('web', '+15125550132')
  for (let n = 0; n < 2; n += 1) {
    await guess('web', locked, 5)
    locked = await send('web', '+15125550132')
  }
  await verify('web', locked, 429)

  const body = { phone: '+15125550133', metadata: { cart: '77' }, clientIp: '198.51.100.20' }
  const key = createHash('sha256').update('upgrade').digest('hex')
  const { phone, ...more } = body
  const sent = await send('web', phone, { more, headers: { 'idempotency-key': key } })

  const almostExhausted = await send('sandbox', '+15125550134')
  await guess('sandbox', almostExhausted, 4)
  await send('web', gatewayPhones.accepted)
  await send('web', gatewayPhones.queued)
  // Arrives in Bob's inbox, without the ids of Ada's request and application.
  const foreign = { phone: await virtualPhone(world, 'bob') }
  await call('web', 'POST', '/v1/otp/send', { body: foreign })
  for (let n = 1; n <= 5; n += 1) await send('desk', `+1512555016${n}`)
  await call('desk', 'POST', '/v1/otp/send', { body: { phone: '+15125550166' }, status: 429 })
  const setup = await world.operate(['admin', 'setup-token', '--json'])
  return {
    pendingLive: await send('web', '+15125550135'),
    pendingTest: await send('sandbox', '+14155550142'),
    almostExhausted,
    resentThrice,
    locked,
    idempotent: { key, body, sent },
    pendingEndpoint,
    setupToken: textAt(JSON.parse(setup) as Json, 'data', 'token'),
    newer: await seedNewerState(world),
    ...(await openSessions(world)),
  }
}

/** Logs in, then locks Bob's login. */
async function openSessions({ server, account }: World) {
  const { url } = server()
  const logIn = async (name: string) => {
    const { email: username, password } = account(name)
    return (await requestTokens(url, { grant_type: 'password', username, password })).body
  }
  const [ada, bob] = [await logIn('ada'), await logIn('bob')]
  const form = { grant_type: 'password', username: account('bob').email, password: 'not the right one' }
  for (let n = 0; n < 5; n += 1) await requestTokens(url, form)
  const health = await callApi(url, '/v1/health/ready')
  if (health.status !== 200) throw new Error('The server is not ready.')
  return {
    refreshToken: textAt(ada, 'refresh_token'),
    idTokens: { ada: textAt(ada, 'id_token'), bob: textAt(bob, 'id_token') },
  }
}
