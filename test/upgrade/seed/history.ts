import { poll, requestTokens } from '../http.ts'
import { listAt, textAt, valueAt } from '../json.ts'
import { dayMs, hourMs, minuteMs, type World } from '../world.ts'
import { createEndpoint } from './setup.ts'

export const erasedPhone = '+15125550143'
const oldPhones = ['+15125550101', '+15125550102', '+4915112345678']

/** Creates deliveries in every final state, and endpoints that are disabled by failures, by 410 and by their owner. */
export async function seedWebhooks(world: World): Promise<void> {
  const { call, clock, send, verify, awaitDelivery } = world
  const headers = { 'X-Shop-Token': 'a header value that is sealed' }
  const all = await createEndpoint(world, 'sandbox', '/ok', ['*'], { description: 'Everything', headers })
  const flaky = await createEndpoint(world, 'web', '/flaky', ['otp.verified'])
  const down = await createEndpoint(world, 'web', '/down', ['otp.verified'])
  const gone = await createEndpoint(world, 'sandbox', '/gone', ['otp.sent'])
  const paused = await createEndpoint(world, 'legacy', '/ok', ['otp.verified', 'otp.failed'])
  const removed = await createEndpoint(world, 'removed', '/ok', ['*'])
  await call('ada', 'PATCH', `/v1/webhooks/${paused}`, { body: { status: 'disabled' } })

  for (const phone of [...oldPhones, erasedPhone]) await verify('web', await send('web', phone))
  const inTest = await send('sandbox', '+14155550100')
  await verify('sandbox', inTest)
  await awaitDelivery('ada', gone, (delivery) => valueAt(delivery, 'lastStatusCode') === 410)
  const delivered = (delivery: unknown) => JSON.stringify(delivery).includes('"status":"delivered"')
  const first = (await awaitDelivery('ada', all, delivered)).find(delivered) ?? null
  await call('ada', 'POST', `/v1/webhooks/${all}/deliveries/${textAt(first, 'id')}/redeliver`)
  await call('ada', 'POST', `/v1/webhooks/${all}/test`)
  await send('removed', '+14155550177')
  await call('ada', 'DELETE', `/v1/applications/${world.application('removed').id}`)
  await call('ada', 'GET', `/v1/webhooks/${removed}`, { status: 404 })

  // Retries end after the eighth attempt. Each step is longer than the planned wait with its jitter.
  await awaitDelivery('ada', down, (delivery) => valueAt(delivery, 'attempts') === 1)
  const waits = [7_000, 7 * minuteMs, 40 * minuteMs, 3 * hourMs, 7 * hourMs, 13 * hourMs, 13 * hourMs]
  for (const [n, waitMs] of waits.entries()) {
    clock.advance(waitMs)
    await poll(
      async () => listAt(await call('ada', 'GET', `/v1/webhooks/${down}/deliveries`), 'data'),
      (deliveries) => deliveries.every((delivery) => valueAt(delivery, 'attempts') === n + 2),
      `attempt ${n + 2}`,
    )
  }
  await awaitDelivery('ada', flaky, delivered)

  // An endpoint that has failed for 120 hours is disabled by its next failure.
  clock.advance(5 * dayMs)
  await verify('web', await send('web', '+15125550104'))
  await poll(
    () => call('ada', 'GET', `/v1/webhooks/${down}`),
    (endpoint) => valueAt(endpoint, 'data', 'status') === 'disabled',
    'the failing endpoint is disabled',
  )
}

/** Disables an application that has requests. */
export async function seedDisabledApplication({ call, send, verify, application }: World): Promise<void> {
  await verify('legacy', await send('legacy', '+33612345678'))
  const { id } = application('legacy')
  await call('ada', 'PATCH', `/v1/applications/${id}`, { body: { status: 'disabled' } })
  await call('legacy', 'POST', '/v1/otp/send', { body: { phone: '+33612345678' }, status: 403 })
}

/** Creates sessions, ends one by reuse of its refresh token, and rotates the signing key. */
export async function seedSessions(world: World): Promise<void> {
  const { url } = world.server()
  const { email: username, password } = world.account('ada')
  const logIn = async () => {
    const { body } = await requestTokens(url, { grant_type: 'password', username, password })
    return textAt(body, 'refresh_token')
  }
  const reused = await logIn()
  await requestTokens(url, { grant_type: 'refresh_token', refresh_token: reused })
  world.clock.advance(2 * minuteMs)
  await requestTokens(url, { grant_type: 'refresh_token', refresh_token: reused })
  await requestTokens(url, { grant_type: 'refresh_token', refresh_token: await logIn() })
  await world.operate(['admin', 'rotate-signing-key'])
}

/**
 * Lets retention pseudonymize old phones, and erases one phone. Needs a server that keeps phones for 30 days;
 * the other servers of the scenario delete nothing.
 */
export async function seedRetention(world: World): Promise<void> {
  const { call, clock } = world
  clock.advance(35 * dayMs)
  await world.operate(['admin', 'erase', erasedPhone])
  clock.advance(11 * minuteMs)
  await poll(
    async () => JSON.stringify([await call('ada', 'GET', '/v1/users'), await call('ada', 'GET', '/v1/otp')]),
    (records) => oldPhones.every((phone) => !records.includes(phone)),
    'old phones are replaced',
  )
}

/** Creates requests that the guard blocks. Needs a server that enforces the guard and denies North Korea. */
export async function seedGuard(world: World): Promise<void> {
  const { call } = world
  await call('web', 'POST', '/v1/otp/send', { body: { phone: '+85021234567' }, status: 403 })
  await call('web', 'POST', '/v1/otp/send', {
    body: { phone: '+8501921234567', clientIp: '203.0.113.7' },
    status: 403,
  })
}
