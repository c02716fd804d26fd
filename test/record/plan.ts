import { signWebhook } from '../../src/shared/webhook-signature.ts'
import { toSid } from '../../src/shared/sids.ts'
import type { Operation } from '../helpers/openapi.ts'
import { pick } from '../helpers/seeded-random.ts'
import { twilioHeaders } from '../helpers/twilio-headers.ts'
import type { ShopApplication, World } from './world.ts'

/** A call, complete but for what `TestService.request` adds. */
export type RecordedCall = {
  method: string
  path: string
  headers?: Record<string, string>
  /** A string is sent as it is, an object as JSON. */
  body?: unknown
  /** Application whose code the call may send, and the way in. */
  sender?: Sender
}

export type Sender = { application: ShopApplication; facade: 'twilio' | 'camara' | null }

type KnownRequest = Sender & { id: string; phone: string; code: string }

/** Numbers of countries with and without restrictions; their last digit decides what the provider does. */
const phones = [
  ...Array.from({ length: 40 }, (_, index) => `+1415555${String(100 + index).padStart(4, '0')}`),
  ...Array.from({ length: 10 }, (_, index) => `+49151234567${String(index).padStart(2, '0')}`),
  ...Array.from({ length: 5 }, (_, index) => `+3161234560${index}`),
  '+8613812345678', // denied by the configuration
  '+870773111632', // satellite
  '+1415', // too short
  'rubbish',
]
const networks = ['192.0.2.1', '198.51.100.7', '203.0.113.200', '2001:db8::1', 'not an address']
const devices = ['phone-a', 'phone-b', 'laptop']
const statuses = ['pending', 'verified', 'failed', 'expired', 'canceled', 'unknown']

/**
 * Creates the calls of a record. They follow from `random` and from the responses alone, so that builds that behave
 * alike get the same calls.
 */
export function createPlan(world: World, operations: readonly Operation[], random: () => number) {
  const known: KnownRequest[] = []
  const keys: string[] = []
  const cursors = new Map<string, string>()
  let names = 0

  const chance = (probability: number) => random() < probability
  const choose = <T>(list: readonly T[]): T => pick(list, random)
  const chooseShop = () => choose(world.shops)
  const json = (application: ShopApplication, key?: string) => ({
    ...application.headers,
    'content-type': 'application/json',
    ...(key !== undefined && { 'idempotency-key': key }),
  })
  /** An origin of the end user; most calls of a backend have one. */
  const origin = () => ({
    ...(chance(0.6) && { clientIp: chance(0.97) ? choose(networks.slice(0, 4)) : choose(networks) }),
    ...(chance(0.3) && { deviceId: choose(devices) }),
  })
  /** A new key, or one that an earlier call had: then it is a repetition or a conflict. */
  const idempotencyKey = () => {
    if (!chance(0.25)) return undefined
    if (keys.length > 0 && chance(0.5)) return choose(keys)
    keys.push(`key-${names++}`)
    return keys.at(-1)
  }
  /** One of the last requests, since most are verified at once. */
  const chooseRequest = (facade?: Sender['facade']): KnownRequest | undefined => {
    const matching = facade === undefined ? known : known.filter((one) => one.facade === facade)
    return matching.length === 0 ? undefined : choose(matching.slice(chance(0.8) ? -20 : 0))
  }

  function send(): RecordedCall {
    const application = choose(chooseShop().applications)
    const body = {
      phone: choose(phones),
      ...(chance(0.2) && { channel: choose(['sms', 'voice', 'whatsapp', 'pigeon']) }),
      ...(chance(0.2) && { locale: choose(['de', 'en-GB', 'ar', 'xx']) }),
      ...(chance(0.1) && { ttlSeconds: choose([60, 600, 5]) }),
      ...(chance(0.2) && { metadata: { order: String(names) } }),
      ...origin(),
    }
    const headers = json(application, idempotencyKey())
    return { method: 'POST', path: '/v1/otp/send', headers, body, sender: { application, facade: null } }
  }

  /** The right code most of the time. */
  const guess = ({ code }: KnownRequest) =>
    chance(0.6) ? code : choose(['000000', '123456', '12345', 'abc'])

  function verify(): RecordedCall {
    const request = chooseRequest()
    if (!request) return send()
    const target = chance(0.75) ? { requestId: request.id } : { phone: request.phone, ...origin() }
    const headers = json(request.application)
    return { method: 'POST', path: '/v1/otp/verify', headers, body: { ...target, code: guess(request) } }
  }

  const change = (name: 'resend' | 'cancel') => (): RecordedCall => {
    const request = chooseRequest()
    if (!request) return send()
    // Now and then by an application to which the request does not exist.
    const application = chance(0.9) ? request.application : choose(chooseShop().applications)
    const target = chance(0.7) ? { requestId: request.id } : { phone: request.phone }
    const body = { ...target, ...(name === 'resend' && chance(0.3) && { channel: 'voice' }) }
    const sender = { application, facade: null }
    return { method: 'POST', path: `/v1/otp/${name}`, headers: json(application), body, sender }
  }

  function deliver(): RecordedCall {
    const { applications } = chooseShop()
    const phone = choose(phones)
    const body = { phone, code: '907155', ...(chance(0.5) && { locale: 'de' }), ...origin() }
    const headers = json(choose(applications), idempotencyKey())
    return { method: 'POST', path: '/v1/otp/deliver', headers, body }
  }

  function supabaseHook(): RecordedCall {
    const application = choose(chooseShop().applications)
    const body = JSON.stringify({
      user: { id: '4b0c', phone: choose(phones).slice(1), user_metadata: {} },
      sms: { otp: '907155' },
    })
    const id = `hook-${names++}`
    const timestamp = String(Math.floor(world.service.clock.now() / 1000))
    const secret = chance(0.9) ? application.webhookSecret : `whsec_${'0'.repeat(48)}`
    const signature = signWebhook(secret, { id, timestamp, body })
    const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature }
    return { method: 'POST', path: `/v1/hooks/supabase/${application.id}`, headers, body }
  }

  function twilio(): RecordedCall {
    const request = chooseRequest('twilio')
    const application = request?.application ?? choose(chooseShop().applications)
    const service = `/v2/Services/${toSid('VA', application.id)}`
    const phone = request && chance(0.7) ? request.phone : choose(phones)
    const headers = twilioHeaders(application)
    const form = (path: string, fields: Record<string, string>) => ({
      method: 'POST',
      path: `${service}/${path}`,
      headers,
      body: new URLSearchParams(fields).toString(),
      sender: { application, facade: 'twilio' as const },
    })
    return choose([
      () => form('Verifications', { To: phone, Channel: choose(['sms', 'call', 'email']) }),
      () => form('VerificationCheck', { To: phone, Code: request && chance(0.6) ? request.code : '123456' }),
      () => form(`Verifications/${encodeURIComponent(phone)}`, { Status: choose(['canceled', 'approved']) }),
      () => ({ method: 'GET', path: `${service}/Verifications/${encodeURIComponent(phone)}`, headers }),
      () => ({ method: 'GET', path: service, headers }),
    ])()
  }

  async function camara(): Promise<RecordedCall> {
    const isSend = chance(0.6)
    const request = isSend ? undefined : chooseRequest('camara')
    const application = request?.application ?? choose(chooseShop().applications)
    const headers = {
      authorization: `Bearer ${await world.camaraToken(application)}`,
      'content-type': 'application/json',
    }
    const body = isSend
      ? { phoneNumber: choose(phones), message: chance(0.9) ? 'Your code: {{code}}' : 'no code' }
      : { authenticationId: request?.id ?? 'x', code: request ? guess(request) : '123456' }
    const path = `/one-time-password-sms/v1/${isSend ? 'send' : 'validate'}-code`
    return { method: 'POST', path, headers, body, sender: { application, facade: 'camara' } }
  }

  function receipt(): RecordedCall {
    const request = chooseRequest()
    const provider = choose(['main', 'spare', 'forged'])
    const status = choose(['sent', 'delivered', 'delivered', 'undelivered'])
    const path = provider === 'forged' ? '/v1/callbacks/main/forged' : world.callbackPath(provider)
    return { method: 'POST', path, body: `${provider}-${request?.id ?? 'none'}-1 ${status}` }
  }

  /** Settings of an application that change what its later messages say. */
  function settings(): RecordedCall {
    const { owner, applications } = chooseShop()
    const body = choose([
      { otpTtlSeconds: choose([60, 300, 600, 1]) },
      { defaultLocale: choose(['de', 'nl', null]) },
      { name: choose(['Web', 'Shop', '']) },
    ])
    const headers = { ...owner.headers, 'content-type': 'application/json' }
    return { method: 'PATCH', path: `/v1/applications/${choose(applications).id}`, headers, body }
  }

  /** A list, its first page or the one after the last that was read. */
  function list(): RecordedCall {
    const shop = chooseShop()
    const request = chooseRequest()
    const [application] = shop.applications
    const base = choose([
      '/v1/otp',
      `/v1/otp?status=${choose(statuses)}`,
      `/v1/otp?appId=${application?.id}&limit=7`,
      `/v1/otp?phone=${encodeURIComponent(request?.phone ?? '+14155550100')}`,
      `/v1/otp/${request?.id ?? 'otp_none'}`,
      '/v1/logs?limit=200',
      `/v1/logs?appId=${application?.id}&type=${choose(['otp.sent', 'otp.verified', 'otp.failed', 'nothing'])}`,
      `/v1/logs?requestId=${request?.id ?? 'none'}`,
      '/v1/users?limit=20',
      `/v1/users/${encodeURIComponent(request?.phone ?? 'x')}`,
      '/v1/analytics/summary',
      `/v1/analytics/timeseries?range=${choose(['7d', '30d', '90d', '1d'])}`,
      `/v1/analytics/breakdown?by=${choose(['country', 'channel', 'provider'])}`,
      '/v1/inbox?limit=20',
      `/v1/webhooks/${choose(shop.webhookIds)}/deliveries?limit=20`,
      '/v1/audit?limit=20',
      '/v1/guard',
    ])
    const cursor = cursors.get(base)
    if (cursor === undefined || chance(0.5)) return { method: 'GET', path: base, headers: shop.owner.headers }
    const path = `${base}${base.includes('?') ? '&' : '?'}cursor=${encodeURIComponent(cursor)}`
    return { method: 'GET', path, headers: shop.owner.headers }
  }

  /** Any operation of the document with the body of its example, about the own, another's or no resource. */
  function anyOperation(): RecordedCall {
    const { method, path, requestBody } = choose(operations)
    const shop = chooseShop()
    const other = chance(0.8) ? shop : chooseShop()
    const application = choose(other.applications)
    const [, , resource = ''] = path.split('/')
    const ids: Record<string, string> = {
      projects: application.projectId,
      applications: application.id,
      otp: chooseRequest()?.id ?? 'otp_none',
      webhooks: choose(other.webhookIds),
    }
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) =>
      name === 'id'
        ? (ids[resource] ?? 'none')
        : name === 'phoneNumber'
          ? '%2B14155550100'
          : 'secret_of_none',
    )
    const example = requestBody?.content['application/json']?.example
    const body = chance(0.8) ? example : choose(['{', '[]', '{"a":1}', 'null'])
    const headers = chance(0.1) ? {} : { ...shop.owner.headers, ...(chance(0.4) && application.headers) }
    return { method, path: filled, headers, ...(requestBody && { body }) }
  }

  const kinds: ReadonlyArray<{ weight: number; make(): RecordedCall | Promise<RecordedCall> }> = [
    { weight: 25, make: send },
    { weight: 20, make: verify },
    { weight: 6, make: change('resend') },
    { weight: 3, make: change('cancel') },
    { weight: 3, make: deliver },
    { weight: 2, make: supabaseHook },
    { weight: 9, make: twilio },
    { weight: 5, make: camara },
    { weight: 5, make: receipt },
    { weight: 14, make: list },
    { weight: 1, make: settings },
    { weight: 8, make: anyOperation },
  ]
  const total = kinds.reduce((sum, { weight }) => sum + weight, 0)

  return {
    /** Chooses the next call. */
    next(): RecordedCall | Promise<RecordedCall> {
      let left = random() * total
      for (const { weight, make } of kinds) if ((left -= weight) < 0) return make()
      return send()
    },

    /** Milliseconds until the next call: bursts, minutes, and now and then hours. */
    pauseMs: () =>
      choose([0, 0, 0, 10, 500, 5_000, 20_000, ...(chance(0.02) ? [3_600_000, 90_000_000] : [])]),

    /** Remembers a request with its code, for later calls. */
    remember: (request: KnownRequest) => void known.push(request),

    /** Remembers the next page of a list. */
    rememberCursor(path: string, cursor: string | null) {
      const base = path.replace(/[?&]cursor=[^&]*/, '')
      if (cursor === null) cursors.delete(base)
      else cursors.set(base, cursor)
    },
  }
}
