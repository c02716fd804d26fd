import { afterAll, describe, expect, test } from 'bun:test'
import { createOtpTestService, phone } from '../../helpers/otp-client.ts'
import type { TestDeveloper } from '../../helpers/service.ts'

type Item = {
  id: string
  requestId: string | null
  appId: string | null
  phone: string
  code: string | null
  text: string | null
  sentAt: string
  expiresAt: string
}

const dayMs = 24 * 60 * 60 * 1000

const { service, otp } = await createOtpTestService()
afterAll(() => service.dispose())

const listInbox = async (as: TestDeveloper, query = '') =>
  service.request<Item[]>('GET', `/v1/inbox${query}`, { as })
async function newCaller(environment: 'live' | 'test' = 'live') {
  const developer = await service.createDeveloper()
  return { developer, application: await service.createApplication(developer, { environment }) }
}

describe('GET /v1/inbox', () => {
  test.each(['live', 'test'] as const)(
    'holds messages of a %s application while no provider is configured',
    async (environment) => {
      const { developer, application } = await newCaller(environment)
      const { requestId, expiresAt } = await otp.sendOrThrow(application)
      const code = await otp.getCode(requestId)
      const { data } = await listInbox(developer)
      expect(data).toEqual([
        {
          id: expect.stringMatching(/^evt_/),
          requestId,
          appId: application.id,
          phone,
          code,
          text: expect.stringContaining(code),
          sentAt: new Date(service.clock.now()).toISOString(),
          expiresAt,
        },
      ])
      expect((await otp.verify(application, requestId, data[0]?.code ?? '')).status).toBe(200)
    },
  )

  test.each([
    [
      'verified',
      (as: Awaited<ReturnType<typeof newCaller>>, id: string) => otp.verifyRightCode(as.application, id),
    ],
    ['canceled', (as: Awaited<ReturnType<typeof newCaller>>, id: string) => otp.cancel(as.application, id)],
    ['expired', async () => service.clock.advance(300_000)],
  ])('has neither code nor text once the request is %s', async (_, end) => {
    const caller = await newCaller()
    const { requestId } = await otp.sendOrThrow(caller.application)
    await end(caller, requestId)
    const { data } = await listInbox(caller.developer)
    expect(data[0]).toMatchObject({ requestId, phone, code: null, text: null })
  })

  test('drops a message after 24 hours', async () => {
    const { developer, application } = await newCaller()
    await otp.sendOrThrow(application)
    service.clock.advance(dayMs - 1)
    expect((await listInbox(developer)).data).toHaveLength(1)
    service.clock.advance(1)
    expect((await listInbox(developer)).data).toEqual([])
  })

  test('lists newest first, page by page', async () => {
    const { developer, application } = await newCaller()
    const sent: string[] = []
    for (let i = 0; i < 5; i++) sent.unshift((await otp.sendOrThrow(application)).requestId)
    const first = await listInbox(developer, '?limit=3')
    const second = await listInbox(developer, `?limit=3&cursor=${first.pagination.nextCursor}`)
    expect([...first.data, ...second.data].map(({ requestId }) => requestId)).toEqual(sent)
    expect(second.pagination.nextCursor).toBeNull()
  })

  test('is only for its developer', async () => {
    const { application } = await newCaller()
    await otp.sendOrThrow(application)
    expect((await listInbox(await service.createDeveloper())).data).toEqual([])
    expect((await service.request('GET', '/v1/inbox', { as: application })).status).toBe(401)
  })
})

describe('a message to a virtual number', () => {
  test('of the sending developer is in their inbox, with its ids', async () => {
    const { developer, application } = await newCaller()
    const { requestId } = await otp.sendOrThrow(application, { phone: developer.developer.virtualPhone })
    const { data } = await listInbox(developer)
    expect(data).toHaveLength(1)
    expect(data[0]).toMatchObject({ requestId, appId: application.id, code: await otp.getCode(requestId) })
  })

  test('of another developer is only in their inbox, without ids', async () => {
    const [sender, receiver] = [await newCaller(), await newCaller()]
    const number = receiver.developer.developer.virtualPhone
    const { requestId } = await otp.sendOrThrow(sender.application, { phone: number })
    const { data, text } = await listInbox(receiver.developer)
    expect(data).toHaveLength(1)
    expect(data[0]).toMatchObject({
      requestId: null,
      appId: null,
      phone: number,
      code: await otp.getCode(requestId),
    })
    expect(text).not.toContain(requestId)
    expect(text).not.toContain(sender.application.id)
    expect((await listInbox(sender.developer)).data).toEqual([])
    expect((await otp.get(receiver.developer, requestId)).status).toBe(404)
    expect((await otp.verify(sender.application, requestId, data[0]?.code ?? '')).status).toBe(200)
    expect((await listInbox(receiver.developer)).data[0]).toMatchObject({ code: null, text: null })
  })

  test('that no developer owns is rejected', async () => {
    const { application } = await newCaller()
    const response = await otp.send(application, { phone: '+9990000000000' })
    expect([response.status, response.error.code]).toEqual([400, 'INVALID_PHONE_NUMBER'])
  })

  test('creates an identity for the developer whose application sent it', async () => {
    const [sender, receiver] = [await newCaller(), await newCaller()]
    const number = receiver.developer.developer.virtualPhone
    const { requestId } = await otp.sendOrThrow(sender.application, { phone: number })
    await otp.verifyRightCode(sender.application, requestId)
    const user = (as: TestDeveloper) => service.request('GET', `/v1/users/${number}`, { as })
    expect([(await user(sender.developer)).status, (await user(receiver.developer)).status]).toEqual([
      200, 404,
    ])
  })
})
