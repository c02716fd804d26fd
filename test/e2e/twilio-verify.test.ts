import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { fromSid, toSid } from '../../src/shared/sids.ts'
import { startTwilioShop, type TwilioShop } from '../helpers/twilio-shop.ts'

let shop: TwilioShop
beforeAll(async () => {
  shop = await startTwilioShop()
})
afterAll(() => shop.stop())

const seconds = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/
const isDate: unknown = expect.stringMatching(seconds)
const otherSid = (letters: string) => letters + '0'.repeat(32)

describe('a service is an application', () => {
  test('that can be read and listed, as its sid in either case', async () => {
    const { serviceSid, accountSid, id } = shop.live
    const { status, body, headers } = await shop.call('GET', `/v2/Services/${serviceSid}`, undefined)
    expect(status).toBe(200)
    expect(headers.get('content-type')).toBe('application/json')
    expect(headers.get('x-request-id')).toMatch(/^req_/)
    expect(headers.get('cache-control')).toBe('no-store')
    const url = `${shop.server.url}/v2/Services/${serviceSid}`
    expect(body).toEqual({
      sid: serviceSid,
      account_sid: accountSid,
      friendly_name: 'live',
      code_length: 6,
      lookup_enabled: false,
      psd2_enabled: false,
      skip_sms_to_landlines: false,
      dtmf_input_required: false,
      do_not_share_warning_enabled: false,
      custom_code_enabled: false,
      verify_event_subscription_enabled: false,
      tts_name: null,
      default_template_sid: null,
      push: { include_date: false, apn_credential_sid: null, fcm_credential_sid: null },
      totp: { issuer: null, time_step: null, code_length: null, skew: null },
      whatsapp: { msg_service_sid: null, from: null },
      passkeys: {
        relying_party: { id: null, name: null, origins: null },
        authenticator_attachment: null,
        discoverable_credentials: null,
        user_verification: null,
      },
      date_created: isDate,
      date_updated: isDate,
      url,
      links: { verifications: `${url}/Verifications`, verification_checks: `${url}/VerificationCheck` },
    } as never)
    const upper = `VA${serviceSid.slice(2).toUpperCase()}`
    expect((await shop.call('GET', `/v2/Services/${upper}`, undefined)).body.sid).toBe(serviceSid)
    expect(fromSid(['VA'], 'app', upper)).toBe(id)
  })

  test('is the only one of its list', async () => {
    const list = async (query: string) => (await shop.call('GET', `/v2/Services${query}`, undefined)).body
    const base = `${shop.server.url}/v2/Services`
    const first = await list('')
    expect(first['services']).toHaveLength(1)
    expect(first['meta']).toEqual({
      page: 0,
      page_size: 50,
      first_page_url: `${base}?PageSize=50&Page=0`,
      previous_page_url: null,
      next_page_url: null,
      url: `${base}?PageSize=50&Page=0`,
      key: 'services',
    })
    const second = await list('?PageSize=1000&Page=1&PageToken=PA1')
    expect(second['services']).toEqual([])
    expect(second['meta']).toMatchObject({ page: 1, previous_page_url: `${base}?PageSize=1000&Page=0` })
    for (const query of ['?PageSize=0', '?PageSize=1001', '?PageSize=x', '?Page=-1', '?FriendlyName=x'])
      expect((await shop.call('GET', `/v2/Services${query}`, undefined)).error.code).toBe(60200)
  })

  test('is made and changed elsewhere', async () => {
    const { serviceSid } = shop.live
    for (const [method, path, fields] of [
      ['POST', '', { FriendlyName: 'x' }],
      ['POST', `/${serviceSid}`, { FriendlyName: 'x' }],
      ['DELETE', `/${serviceSid}`, undefined],
    ] as const) {
      const { status, error } = await shop.call(method, `/v2/Services${path}`, fields)
      expect([status, error]).toEqual([
        403,
        {
          code: 20403,
          message: 'Services are applications of otpd: make and change them with `otpd app`',
          more_info: 'https://www.twilio.com/docs/errors/20403',
          status: 403,
        },
      ])
    }
  })

  test('of another application does not exist, nor does any other resource', async () => {
    const other = shop.test.serviceSid
    for (const path of [
      `Services/${other}`,
      `Services/${otherSid('VA')}/Verifications/${otherSid('VE')}`,
      `Services/${shop.live.serviceSid}/RateLimits`,
      `Services/${shop.live.serviceSid}/Verifications/${otherSid('VE')}/more`,
      `Attempts/${otherSid('VL')}`,
      'Attempts/VL1',
      'Attempts/Summary/more',
      'SafeList/Numbers/%2B14155550100',
      'SafeList/Numbers/%2B14155550100/more',
      'SafeList',
      'Forms/form-push',
    ]) {
      const { status, error } = await shop.call('GET', `/v2/${path}`, undefined)
      expect([status, error.code, error.status]).toEqual([404, 20404, 404])
    }
    expect((await shop.call('GET', '/v3/Services', undefined)).error.code).toBe(20404)
    expect((await shop.call('GET', `/v2/Services/${other}`, undefined)).error.message).toBe(
      `The requested resource /Services/${other} was not found`,
    )
  })
})

describe('a verification', () => {
  test('is created, read, checked and gone', async () => {
    const phone = shop.newPhone()
    const created = await shop.create(phone)
    expect(created.status).toBe(201)
    const { sid } = created.body
    const { serviceSid, accountSid } = shop.live
    const url = `${shop.server.url}/v2/Services/${serviceSid}/Verifications/${sid}`
    const attempt = { time: isDate, channel: 'SMS', attempt_sid: `VL${sid.slice(2, 14)}0${sid.slice(15)}` }
    const base = {
      sid,
      service_sid: serviceSid,
      account_sid: accountSid,
      to: phone,
      channel: 'sms',
      amount: null,
      payee: null,
      date_created: isDate,
      date_updated: isDate,
    }
    const pending = {
      ...base,
      status: 'pending',
      valid: false,
      lookup: {},
      send_code_attempts: [attempt],
      sna: null,
      url,
    }
    expect(sid).toMatch(/^VE[0-9a-f]{12}7[0-9a-f]{19}$/)
    expect(created.body).toEqual(pending as never)
    for (const item of [sid, `VE${sid.slice(2).toUpperCase()}`, phone, encodeURIComponent(phone)])
      expect((await shop.fetch(item)).body).toEqual(pending as never)
    const approved = await shop.check({ To: phone, Code: shop.codeOf(phone) })
    expect(approved.status).toBe(200)
    expect(approved.body).toEqual({
      ...base,
      status: 'approved',
      valid: true,
      sna_attempts_error_codes: [],
    } as never)
    for (const answer of [
      await shop.fetch(sid),
      await shop.fetch(phone),
      await shop.update(sid),
      await shop.check({ VerificationSid: sid, Code: shop.codeOf(phone) }),
      await shop.check({ To: phone, Code: shop.codeOf(phone) }),
    ])
      expect([answer.status, answer.error.code]).toEqual([404, 20404])
    const { error } = await shop.check({ To: phone, Code: shop.codeOf(phone) })
    expect(error.message).toBe(
      `The requested resource /Services/${serviceSid}/VerificationCheck was not found`,
    )
    const gone = await shop.fetch(phone)
    expect(gone.text).not.toContain(phone.slice(1))
  })

  test('of the API is found by its sid, and not by its phone', async () => {
    const phone = shop.newPhone()
    const { data } = await shop.native('/v1/otp/send', { phone })
    const sid = toSid('VE', data.requestId)
    expect((await shop.fetch(sid)).body).toMatchObject({ sid, status: 'pending' })
    expect((await shop.fetch(phone)).status).toBe(404)
    expect((await shop.fetch(sid, shop.test)).status).toBe(404)
    expect((await shop.check({ VerificationSid: sid, Code: shop.codeOf(phone) })).body.status).toBe(
      'approved',
    )
  })

  test('is sent again with the same code by the channel asked for, four messages in all', async () => {
    const phone = shop.newPhone()
    const first = await shop.create(phone)
    const code = shop.codeOf(phone)
    const sent = [first]
    for (const Channel of ['call', 'auto', 'sms']) sent.push(await shop.create(phone, { Channel }))
    expect(sent.map(({ status, body }) => [status, body.sid === first.body.sid, body.channel])).toEqual([
      [201, true, 'sms'],
      [201, true, 'call'],
      [201, true, 'call'],
      [201, true, 'sms'],
    ])
    const attempts = sent.at(-1)?.body.send_code_attempts ?? []
    expect(attempts.map(({ channel, attempt_sid }) => [channel, attempt_sid[14]])).toEqual([
      ['SMS', '0'],
      ['CALL', '1'],
      ['CALL', '2'],
      ['SMS', '3'],
    ])
    expect(shop.codeOf(phone)).toBe(code)
    const fifth = await shop.create(phone)
    expect([fifth.status, fifth.error.code]).toEqual([429, 60203])
    expect(Number(fifth.headers.get('retry-after'))).toBeGreaterThan(200)
    expect((await shop.check({ To: phone, Code: code })).body.valid).toBe(true)
    expect((await shop.create(phone)).body.sid).not.toBe(first.body.sid)
  })

  test('that the API made meanwhile does not take its place', async () => {
    const phone = shop.newPhone()
    const { body } = await shop.create(phone)
    const code = shop.codeOf(phone)
    await shop.native('/v1/otp/send', { phone })
    expect((await shop.fetch(phone)).body.sid).toBe(body.sid)
    expect((await shop.create(phone)).body.sid).toBe(body.sid)
    expect((await shop.check({ To: phone, Code: code })).body.status).toBe('approved')
  })

  test('is canceled, can then be read, and not be checked', async () => {
    const phone = shop.newPhone()
    const { sid } = (await shop.create(phone)).body
    for (const item of [phone, sid])
      expect((await shop.update(item)).body).toMatchObject({ sid, status: 'canceled', valid: false })
    expect((await shop.fetch(sid)).body.status).toBe('canceled')
    expect((await shop.check({ VerificationSid: sid, Code: shop.codeOf(phone) })).status).toBe(404)
    expect((await shop.create(phone)).body.sid).not.toBe(sid)
  })

  test('with five wrong codes can be read, and refuses checks until its time is over', async () => {
    const phone = shop.newPhone()
    const { sid } = (await shop.create(phone)).body
    for (let distance = 1; distance <= 5; distance++) {
      const { status, body } = await shop.check({ To: phone, Code: shop.wrongCodeOf(phone, distance) })
      expect([status, body.status, body.valid]).toEqual([200, 'pending', false])
    }
    const sixth = await shop.check({ To: phone, Code: shop.codeOf(phone) })
    expect([sixth.status, sixth.error.code, sixth.error.message]).toEqual([
      429,
      60202,
      'Max check attempts reached',
    ])
    expect((await shop.fetch(sid)).body.status).toBe('max_attempts_reached')
    expect((await shop.update(sid)).body.status).toBe('max_attempts_reached')
    shop.advance(301_000)
    expect((await shop.check({ To: phone, Code: shop.codeOf(phone) })).status).toBe(404)
    expect((await shop.fetch(sid)).body.status).toBe('max_attempts_reached')
  })

  test('that expired is gone', async () => {
    const phone = shop.newPhone()
    const { sid } = (await shop.create(phone)).body
    shop.advance(301_000)
    for (const answer of [
      await shop.fetch(sid),
      await shop.update(sid),
      await shop.check({ VerificationSid: sid, Code: shop.codeOf(phone) }),
    ])
      expect([answer.status, answer.error.code]).toEqual([404, 20404])
  })

  test('that no provider took has failed', async () => {
    const phone = shop.newPhone()
    const { status, error } = await shop.create(phone, { Channel: 'whatsapp' })
    expect([status, error.code]).toEqual([400, 60205])
    expect((await shop.fetch(phone)).body).toMatchObject({ status: 'failed', valid: false })
    expect((await shop.check({ To: phone, Code: '123456' })).status).toBe(404)
  })

  test('is answered again under an idempotency key, and charged once', async () => {
    const phone = shop.newPhone()
    const headers = { 'idempotency-key': 'create-1' }
    const first = await shop.create(phone, {}, shop.live, headers)
    await shop.check({ To: phone, Code: shop.codeOf(phone) })
    const again = await shop.create(phone, {}, shop.live, headers)
    expect([again.status, again.body]).toEqual([201, first.body])
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    const other = await shop.create(shop.newPhone(), {}, shop.live, headers)
    expect([other.status, other.error.code]).toEqual([422, 20422])
  })

  test('of a test application has the code that its numbers always have', async () => {
    const { sid } = (await shop.create('+14155550132', {}, shop.test)).body
    const { body } = await shop.check({ VerificationSid: sid, Code: '424242' }, shop.test)
    expect(body).toMatchObject({ sid, status: 'approved', valid: true })
  })
})

test('50 creates at once are one verification, and 50 right checks at once one approval', async () => {
  const phone = '+14155550142'
  const created = await Promise.all(Array.from({ length: 50 }, () => shop.create(phone, {}, shop.test)))
  const sids = new Set(created.flatMap(({ status, body }) => (status === 201 ? [body.sid] : [])))
  expect(sids.size).toBe(1)
  expect(created.filter(({ status }) => status === 201)).toHaveLength(4)
  expect(created.filter(({ error }) => error.code === 60203)).toHaveLength(46)
  const checked = await Promise.all(
    Array.from({ length: 50 }, () => shop.check({ To: phone, Code: '424242' }, shop.test)),
  )
  expect(checked.filter(({ body }) => body.status === 'approved')).toHaveLength(1)
  expect(checked.filter(({ error }) => error.code === 20404)).toHaveLength(49)
})
