import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { toSid } from '../../src/shared/sids.ts'
import { startTwilioShop, type TwilioShop } from '../helpers/twilio-shop.ts'

let shop: TwilioShop
beforeAll(async () => {
  shop = await startTwilioShop({ env: { OTPD_GUARD_TRUSTED_PREFIXES: '+4930' } })
})
afterAll(() => shop.stop())

const isDate: unknown = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
const otherSid = (letters: string) => letters + '0'.repeat(32)

describe('attempts', () => {
  const list = async (query: Record<string, string> | string, as = shop.live) =>
    (await shop.call('GET', `/v2/Attempts?${new URLSearchParams(query)}`, undefined, { as }))
      .body as never as {
      attempts: Array<Record<string, unknown> & { sid: string }>
      meta: Record<string, string | null>
    }
  const summarize = async (query: Record<string, string> = {}, as = shop.live) =>
    (await shop.call('GET', `/v2/Attempts/Summary?${new URLSearchParams(query)}`, undefined, { as })).body

  test('are the messages of a verification, the newest converted', async () => {
    const { live, server } = shop
    const phone = shop.newPhone()
    const { sid } = (await shop.create(phone)).body
    const code = shop.codeOf(phone)
    await shop.create(phone, { Channel: 'call' })
    await shop.check({ To: phone, Code: code })
    const attempt = (number: number) => `VL${sid.slice(2, 14)}${number}${sid.slice(15)}`
    const { attempts, meta } = await list({ VerificationSid: sid })
    const base = { account_sid: live.accountSid, service_sid: live.serviceSid, verification_sid: sid }
    const unknown = { error_code: null, carrier: null, mcc: null, mnc: null }
    const newest = {
      ...base,
      sid: attempt(1),
      date_created: isDate,
      date_updated: isDate,
      conversion_status: 'converted',
      channel: 'call',
      price: null,
      channel_data: { to: phone, country: 'US', message_status: 'SENT', ...unknown },
      url: `${server.url}/v2/Attempts/${attempt(1)}`,
    }
    expect(attempts[0]).toEqual(newest as never)
    expect(attempts[1]).toMatchObject({
      ...base,
      sid: attempt(0),
      conversion_status: 'unconverted',
      channel: 'sms',
      channel_data: { to: phone, country: 'US', message_status: null, ...unknown },
    })
    expect(attempts).toHaveLength(2)
    const url = `${server.url}/v2/Attempts?VerificationSid=${sid}&PageSize=50&Page=0`
    expect(meta).toEqual({
      page: 0,
      page_size: 50,
      first_page_url: url,
      previous_page_url: null,
      next_page_url: null,
      url,
      key: 'attempts',
    } as never)
    const read = (one: string, as = live) => shop.call('GET', `/v2/Attempts/${one}`, undefined, { as })
    expect((await read(attempt(1))).body).toEqual(newest as never)
    expect((await read(attempt(2))).error).toMatchObject({
      code: 20404,
      message: `The requested resource /Attempts/${attempt(2)} was not found`,
    })
    expect((await read(attempt(1), shop.test)).status).toBe(404)
  })

  test('are filtered and read page by page, one application at a time', async () => {
    const account = await shop.createAccount('attempts', 'live')
    const phones = Array.from({ length: 3 }, () => shop.newPhone())
    for (const phone of phones) await shop.create(phone, {}, account)
    await shop.create(phones[1] ?? '', { Channel: 'call' }, account)
    await shop.native('/v1/otp/send', { phone: '+4915223433333', channel: 'sms' }, account)
    await shop.check({ To: phones[0] ?? '', Code: shop.codeOf(phones[0] ?? '') }, account)
    const { attempts: all } = await list({}, account)
    expect(all.map(({ channel }) => channel)).toEqual(['sms', 'sms', 'call', 'sms', 'sms'])
    const sids = async (query: Record<string, string>, as = account) =>
      (await list(query, as)).attempts.map(({ sid }) => all.findIndex((one) => one.sid === sid))
    for (const query of [{}, { DateCreatedAfter: '2020-01-01' }])
      for (const size of ['1', '2', '5']) {
        const seen: string[] = []
        let next: string | null = `/v2/Attempts?${new URLSearchParams({ ...query, PageSize: size })}`
        while (next !== null) {
          const page = (await shop.call('GET', next, undefined, { as: account })).body as never as {
            attempts: Array<{ sid: string }>
            meta: { next_page_url: string | null }
          }
          expect(page.attempts.length).toBeLessThanOrEqual(Number(size))
          seen.push(...page.attempts.map(({ sid }) => sid))
          next = page.meta.next_page_url?.replace(shop.server.url, '') ?? null
        }
        expect(seen).toEqual(all.map(({ sid }) => sid))
      }
    const now = String(all[0]?.['date_created'])
    const earlier = new Date(Date.parse(now) - 3_600_000).toISOString()
    const later = new Date(Date.parse(now) + 3_600_000).toISOString()
    for (const [query, expected] of [
      [{ 'ChannelData.To': phones[1] ?? '' }, [2, 3]],
      [{ 'ChannelData.To': phones[1] ?? '', PageToken: all[2]?.sid ?? '' }, [3]],
      [{ Channel: 'call' }, [2]],
      [{ Channel: 'email' }, []],
      [{ Country: 'de' }, [0]],
      [{ Status: 'CONVERTED' }, [4]],
      [{ Status: 'unconverted' }, [0, 1, 2, 3]],
      [{ VerifyServiceSid: account.serviceSid, Status: 'converted' }, [4]],
      [{ VerifyServiceSid: shop.live.serviceSid }, []],
      [{ VerificationSid: otherSid('VE') }, []],
      [{ DateCreatedAfter: earlier, DateCreatedBefore: later, Channel: 'call' }, [2]],
      [{ DateCreatedAfter: later }, []],
      [{ DateCreatedBefore: earlier }, []],
    ] as const)
      expect([query, await sids(query)]).toEqual([query, [...expected]] as never)
    expect(await sids({ VerificationSid: String(all[0]?.['verification_sid']) }, shop.live)).toEqual([])
    expect(await sids({ 'ChannelData.To': phones[1] ?? '' }, shop.live)).toEqual([])
    for (const query of [
      { PageToken: 'x' },
      { Channel: 'fax' },
      { Country: 'Germany' },
      { Status: 'pending' },
      { 'ChannelData.To': '123' },
      { DateCreatedAfter: 'yesterday' },
      { DateCreatedBefore: '2026-02-30T99:00:00Z' },
    ]) {
      const path = `/v2/Attempts?${new URLSearchParams(query)}`
      const { status, error } = await shop.call('GET', path, undefined)
      const [name = ''] = Object.keys(query)
      const hint = name === 'Channel' ? ': use sms, call, whatsapp, email or rbm' : ''
      const message = `Invalid parameter \`${name}\`${hint}`
      expect([status, error.code, error.message]).toEqual([400, 60200, message])
    }
    const url = `${shop.server.url}/v2/Attempts/Summary`
    const summary = (sent: number, converted: number, rate: number) => ({
      total_attempts: sent,
      total_converted: converted,
      total_unconverted: sent - converted,
      conversion_rate_percentage: rate,
      url,
    })
    for (const [query, expected] of [
      [{}, summary(5, 1, 20)],
      [{ Country: 'US' }, summary(4, 1, 25)],
      [{ Channel: 'call' }, summary(1, 0, 0)],
      [{ Channel: 'rbm' }, summary(0, 0, 0)],
      [{ VerifyServiceSid: shop.live.serviceSid }, summary(0, 0, 0)],
      [{ DateCreatedAfter: earlier, DateCreatedBefore: later }, summary(5, 1, 20)],
      [{ DateCreatedBefore: '2020-01-01' }, summary(0, 0, 0)],
    ] as const)
      expect([query, await summarize(query, account)]).toEqual([query, expected] as never)
    const refused = await shop.call('GET', '/v2/Attempts/Summary?DestinationPrefix=%2B49', undefined)
    expect(refused.error.code).toBe(60200)
  })

  test('cannot be written', async () => {
    for (const [method, path, allow] of [
      ['POST', 'Attempts', 'GET, HEAD'],
      ['DELETE', `Attempts/${otherSid('VL')}`, 'GET, HEAD'],
      ['POST', 'Attempts/Summary', 'GET, HEAD'],
      ['GET', 'SafeList/Numbers', 'POST'],
    ] as const) {
      const { status, error, headers } = await shop.call(method, `/v2/${path}`, undefined)
      expect([status, error.code, headers.get('allow')]).toEqual([405, 20004, allow] as never)
    }
  })
})

test('the safe list has the numbers that the guard trusts or a rule allows, and is read only', async () => {
  const path = '/v2/SafeList/Numbers'
  const { status, body } = await shop.call('GET', `${path}/+4930123456`, undefined)
  const url = `${shop.server.url}${path}/%2B4930123456`
  expect([status, body]).toEqual([
    200,
    { sid: shop.live.accountSid.replace('AC', 'GN'), phone_number: '+4930123456', url } as never,
  ])
  const other = await shop.call('GET', `${path}/+4940123456`, undefined)
  expect([other.status, other.error.message]).toEqual([
    404,
    'The requested resource /SafeList/Numbers was not found',
  ])
  expect((await shop.call('GET', `${path}/4930`, undefined)).error.message).toBe(
    'Invalid parameter `PhoneNumber`',
  )
  const addRule = async (...args: string[]): Promise<string> => {
    const { stdout } = await shop.otpd(['guard', ...args, '--json'])
    return JSON.parse(stdout).data.id
  }
  const read = async (phone: string, as = shop.live) => {
    const answer = await shop.call('GET', `${path}/${phone}`, undefined, { as })
    return [answer.status, answer.body.sid]
  }
  const rule = await addRule('allow', '+4940123456')
  expect(await read('+4940123456')).toEqual([200, toSid('GN', rule)])
  const own = await addRule('allow', '+4940123456', '--app', 'live')
  expect(await read('+4940123456')).toEqual([200, toSid('GN', own)])
  await addRule('deny', '+4940123456', '--app', 'test')
  await addRule('deny', '+4930123456')
  expect((await read('+4940123456', shop.test))[0]).toBe(404)
  expect((await read('+4930123456'))[0]).toBe(404)
  for (const [method, at, fields] of [
    ['POST', path, { PhoneNumber: '+4930123456' }],
    ['DELETE', `${path}/+4930123456`, undefined],
  ] as const) {
    const { status: refused, error } = await shop.call(method, at, fields)
    expect([refused, error.code, error.message]).toEqual([
      403,
      20403,
      'The safe list is kept as guard rules: change it with `otpd guard allow` and `otpd guard remove`',
    ])
  }
})
