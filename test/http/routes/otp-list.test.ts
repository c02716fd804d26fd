import { afterAll, describe, expect, test } from 'bun:test'
import { createOtpTestService, phone, type OtpRequestData } from '../../helpers/otp-client.ts'

const { service, otp, owner, application } = await createOtpTestService()
afterAll(() => service.dispose())

const list = (query = '', as = owner) => service.request<OtpRequestData[]>('GET', `/v1/otp${query}`, { as })
const fetchIds = async (query: string, as = owner) => (await list(query, as)).data.map(({ id }) => id)

describe('GET /v1/otp/:id', () => {
  test('returns every field, and never the code, its hash or its salt', async () => {
    const { requestId } = await otp.sendOrThrow(application, { metadata: { order: '17' } })
    const createdAt = new Date(service.clock.now()).toISOString()
    service.clock.advance(1_000)
    await otp.verifyWrongCode(application, requestId)
    const response = await otp.get(owner, requestId)
    expect(response.status).toBe(200)
    expect(response.data).toEqual({
      id: requestId,
      requestId,
      appId: application.id,
      environment: 'live',
      phone,
      country: 'US',
      status: 'pending',
      failureReason: null,
      channel: 'sms',
      provider: 'inbox',
      deliveryStatus: null,
      attempts: 1,
      maxAttempts: 5,
      resends: 0,
      metadata: { order: '17' },
      template: null,
      createdAt,
      expiresAt: new Date(Date.parse(createdAt) + 300_000).toISOString(),
      verifiedAt: null,
      updatedAt: new Date(service.clock.now()).toISOString(),
    } as OtpRequestData)
    const row = await service.store.read.otpRequests.find(requestId)
    for (const secret of [await otp.getCode(requestId), row?.codeHash, row?.codeSalt]) {
      expect(response.text).not.toContain(`"${secret}"`)
    }
  })

  test('returns the same to the application of the request', async () => {
    const { requestId } = await otp.sendOrThrow(application)
    expect((await otp.get(application, requestId)).text).toBe((await otp.get(owner, requestId)).text)
  })
})

describe('GET /v1/otp', () => {
  test('lists newest first, page by page, each request once', async () => {
    const developer = await service.createDeveloper()
    const own = await service.createApplication(developer)
    const sent: string[] = []
    for (let i = 0; i < 7; i++) sent.unshift((await otp.sendOrThrow(own)).requestId)
    const seen: string[] = []
    let cursor: string | null = ''
    const sizes: number[] = []
    while (cursor !== null) {
      const page = await list(`?limit=3${cursor && `&cursor=${cursor}`}`, developer)
      expect(page.pagination.limit).toBe(3)
      sizes.push(page.data.length)
      seen.push(...page.data.map(({ id }) => id))
      cursor = page.pagination.nextCursor
      // Requests created meanwhile appear on no later page.
      await otp.sendOrThrow(own)
    }
    expect(seen).toEqual(sent)
    expect(sizes).toEqual([3, 3, 1])
  })

  test('has 50 per page by default, and 200 at most', async () => {
    const developer = await service.createDeveloper()
    const own = await service.createApplication(developer)
    for (let i = 0; i < 51; i++) await otp.sendOrThrow(own)
    const page = await list('', developer)
    expect([page.data.length, page.pagination.limit]).toEqual([50, 50])
    expect(page.pagination.nextCursor).not.toBeNull()
    expect((await list('?limit=200', developer)).data).toHaveLength(51)
    expect((await list('?limit=201', developer)).status).toBe(400)
  })

  test('filters by application and by status', async () => {
    const [one, other] = [await service.createApplication(owner), await service.createApplication(owner)]
    const [pending, verified, canceled] = [
      await otp.sendOrThrow(one),
      await otp.sendOrThrow(one),
      await otp.sendOrThrow(other),
    ]
    await otp.verifyRightCode(one, verified.requestId)
    await otp.cancel(other, canceled.requestId)
    expect(await fetchIds(`?appId=${one.id}`)).toEqual([verified.requestId, pending.requestId])
    expect(await fetchIds(`?appId=${one.id}&status=verified`)).toEqual([verified.requestId])
    expect(await fetchIds(`?appId=${one.id}&status=pending`)).toEqual([pending.requestId])
    expect(await fetchIds(`?appId=${other.id}&status=canceled`)).toEqual([canceled.requestId])
    expect(await fetchIds(`?appId=${other.id}&status=failed`)).toEqual([])
  })

  test('keeps listing the requests of a deleted application', async () => {
    const developer = await service.createDeveloper()
    const own = await service.createApplication(developer)
    const [first, second] = [await otp.sendOrThrow(own), await otp.sendOrThrow(own)]
    await otp.verifyRightCode(own, first.requestId)
    const before = (await service.services.analytics.summary(developer.developer)).otpRequests
    expect((await service.request('DELETE', `/v1/applications/${own.id}`, { as: developer })).status).toBe(
      200,
    )
    expect(await fetchIds('', developer)).toEqual([second.requestId, first.requestId])
    expect(await fetchIds(`?appId=${own.id}`, developer)).toEqual([second.requestId, first.requestId])
    expect((await otp.get(developer, first.requestId)).status).toBe(200)
    service.clock.advance(300_000)
    await service.services.otp.expireRequests()
    expect((await otp.listLogEntries(developer, second.requestId)).map(({ type }) => type)).toEqual([
      'otp.sent',
      'otp.expired',
    ])
    const { applications, otpRequests, otpVerified } = await service.services.analytics.summary(
      developer.developer,
    )
    expect([applications, otpRequests, otpVerified]).toEqual([0, before, 1])
  })
})
