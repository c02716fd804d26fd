import { afterAll, describe, expect, test } from 'bun:test'
import { createOtpTestService, phone } from '../../helpers/otp-client.ts'

const { service, otp, owner, application: live } = await createOtpTestService()
const testing = await service.createApplication(owner, { environment: 'test' })
afterAll(() => service.dispose())

const findRow = (requestId: string) => service.store.read.otpRequests.find(requestId)
const after = (ms: number) => new Date(service.clock.now() + ms).toISOString()

describe('POST /v1/otp/send', () => {
  test('responds 201 with the request, but without the code of a live application', async () => {
    const response = await otp.send(live)
    expect(response.status).toBe(201)
    expect(response.data).toEqual({
      requestId: expect.stringMatching(/^otp_[0-9a-z]{26}$/),
      phone,
      status: 'pending',
      expiresAt: after(300_000),
    })
    expect(response.text).not.toContain(await otp.getCode(response.data.requestId))
  })

  test('returns the code of a test application, which verifies', async () => {
    const { requestId, code } = await otp.sendOrThrow(testing)
    expect(code).toMatch(/^[0-9]{6}$/)
    expect((await otp.verify(testing, requestId, code ?? '')).status).toBe(200)
  })

  test('uses the fixed code for fictional numbers in test applications only', async () => {
    expect((await otp.sendOrThrow(testing, { phone: '+12125550142' })).code).toBe('424242')
    const { requestId } = await otp.sendOrThrow(live, { phone: '+12125550142' })
    expect((await otp.verify(live, requestId, '424242')).error.code).toBe('INVALID_CODE')
  })

  test('returns and stores the number in E.164, in whatever notation it was sent', async () => {
    const { requestId, phone: answered } = await otp.sendOrThrow(live, { phone: '00 1 (415) 555-26.71' })
    expect(answered).toBe(phone)
    expect(await findRow(requestId)).toMatchObject({ phone, country: 'US' })
  })

  test('has the lifetime set by the application or the call', async () => {
    const short = await service.createApplication(owner)
    const path = `/v1/applications/${short.id}`
    expect((await service.request('PATCH', path, { as: owner, body: { otpTtlSeconds: 60 } })).status).toBe(
      200,
    )
    expect((await otp.sendOrThrow(short)).expiresAt).toBe(after(60_000))
    expect((await otp.sendOrThrow(short, { ttlSeconds: 600 })).expiresAt).toBe(after(600_000))
  })

  test('stores the optional fields', async () => {
    const metadata = { order: '17', note: 'ünïcode ✓' }
    const { requestId } = await otp.sendOrThrow(live, {
      channel: 'voice',
      locale: 'pt-BR',
      ttlSeconds: 120,
      metadata,
      clientIp: '2001:db8::1',
    })
    expect(await findRow(requestId)).toMatchObject({
      channel: 'voice',
      locale: 'pt-BR',
      metadata,
      clientIp: '2001:db8::1',
    })
  })

  test('creates a new request each time and keeps the older one valid', async () => {
    const [first, second] = [await otp.sendOrThrow(live), await otp.sendOrThrow(live)]
    expect(second.requestId).not.toBe(first.requestId)
    expect((await otp.verifyRightCode(live, second.requestId)).status).toBe(200)
    expect((await otp.verifyRightCode(live, first.requestId)).status).toBe(200)
  })

  test.each(['4155552671', '+1415556', '+999 0000000000', '+0123456789'])('rejects %s', async (text) => {
    const { status, error, text: body } = await otp.send(live, { phone: text })
    expect(status).toBe(400)
    expect(error).toMatchObject({ code: 'INVALID_PHONE_NUMBER', details: [{ in: 'body', path: 'phone' }] })
    expect(body).not.toContain(text)
  })

  test('reaches a virtual number of a developer, which has no country', async () => {
    const { requestId } = await otp.sendOrThrow(live, { phone: owner.developer.virtualPhone })
    expect(await findRow(requestId)).toMatchObject({ country: null, provider: 'inbox' })
  })

  test('writes request, event, inbox and count together', async () => {
    const developer = await service.createDeveloper()
    const application = await service.createApplication(developer)
    const { requestId } = await otp.sendOrThrow(application)
    expect(await otp.listLogEntries(developer, requestId)).toEqual([
      {
        id: expect.stringMatching(/^evt_/),
        type: 'otp.sent',
        appId: application.id,
        requestId,
        phone,
        status: 'pending',
        detail: null,
        at: after(0),
      },
    ])
    expect((await service.services.analytics.summary(developer.developer)).otpRequests).toBe(1)
  })

  test('leaves no trace if it is rejected', async () => {
    const developer = await service.createDeveloper()
    const application = await service.createApplication(developer)
    expect((await otp.send(application, { phone: '+9990000000000' })).status).toBe(400)
    for (const path of ['/v1/otp', '/v1/logs', '/v1/inbox']) {
      expect((await service.request('GET', path, { as: developer })).data).toEqual([])
    }
    expect((await service.services.analytics.summary(developer.developer)).otpRequests).toBe(0)
  })
})

describe('the stored form of a code', () => {
  test('does not contain it, in any table', async () => {
    const { requestId } = await otp.sendOrThrow(testing, { phone: '+14155552672' })
    const code = await otp.getCode(requestId)
    const request = await findRow(requestId)
    const { codeSalt, codeHash, ...rest } = { codeSalt: '', codeHash: '', ...request }
    expect(codeSalt.length).toBe(22)
    expect(codeHash.length).toBe(16)
    // By chance its digits may stand within an id or a time.
    expect(JSON.stringify(rest)).not.toMatch(new RegExp(`(?<![0-9a-z])${code}(?![0-9a-z])`))
    const { events, idempotencyKeys, inboxMessages } = service.database.tables
    for (const table of [events, idempotencyKeys, inboxMessages]) {
      const rows = JSON.stringify(await service.database.read.select().from(table))
      expect(rows.includes(`"${code}"`)).toBe(false)
    }
  })
})
