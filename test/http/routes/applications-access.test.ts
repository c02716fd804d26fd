import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createTestService, type TestDeveloper, type TestService } from '../../helpers/service.ts'
import { unlimitedPlan } from '../../helpers/plans.ts'

let service: TestService
let owner: TestDeveloper
let stranger: TestDeveloper

beforeAll(async () => {
  service = await createTestService({
    plans: {
      free: { ...unlimitedPlan, sendPerMinute: 5, verifyPerMinute: 10 },
    },
  })
  owner = await service.createDeveloper()
  stranger = await service.createDeveloper()
})
afterAll(() => service.dispose())

const withoutTrace = (text: string) => text.replace(/req_\w{26}/, 'req')

describe("an application that is not the caller's", () => {
  const calls: Array<[method: string, path: string, body: unknown]> = [
    ['GET', '', undefined],
    ['PATCH', '', { name: 'mine' }],
    ['DELETE', '', undefined],
    ['POST', '/rotate/secret', undefined],
    ['POST', '/rotate/api', undefined],
    ['POST', '/rotate/webhook_secret', undefined],
    ['GET', '/webhook-secret', undefined],
  ]
  // The id of the caller's own project is well formed but no application.
  const makeIds = async () => [
    (await service.createApplication(stranger)).id,
    `app_${'0'.repeat(26)}`,
    'nonsense',
    'app_',
    '%00',
    (await service.createProject(owner)).id,
  ]

  test.each(calls)('responds to %s …%s as for an absent one', async (method, path, body) => {
    const responses = []
    for (const id of await makeIds()) {
      responses.push(await service.request(method, `/v1/applications/${id}${path}`, { as: owner, body }))
    }
    expect(responses.map(({ status }) => status)).toEqual(responses.map(() => 404))
    expect(responses[0]?.error.code).toBe('NOT_FOUND')
    expect(new Set(responses.map(({ text }) => withoutTrace(text))).size).toBe(1)
  })

  test('is unchanged', async () => {
    const foreign = await service.createApplication(stranger)
    const path = `/v1/applications/${foreign.id}`
    const getApplication = () => service.request('GET', path, { as: stranger })
    const before = (await getApplication()).data
    for (const [method, pathSuffix, body] of calls)
      await service.request(method, path + pathSuffix, { as: owner, body })
    expect((await getApplication()).data).toEqual(before)
    const secret = await service.request('GET', `${path}/webhook-secret`, { as: stranger })
    expect(secret.data).toEqual({ webhookSecret: foreign.webhookSecret })
  })
})

describe('without a valid token', () => {
  test.each([
    ['GET', ''],
    ['POST', ''],
    ['GET', '/x'],
    ['PATCH', '/x'],
    ['DELETE', '/x'],
    ['POST', '/x/rotate/nonsense'],
    ['GET', '/x/webhook-secret'],
  ])('%s /v1/applications%s responds 401 before any other check', async (method, path) => {
    const body = method === 'GET' ? undefined : { nonsense: true }
    const call = (headers: Record<string, string>) =>
      service.request(method, `/v1/applications${path}`, { body, headers })
    const credentials = (await service.createApplication(stranger)).headers
    for (const headers of [{}, { authorization: 'Bearer nonsense' }, credentials]) {
      const response = await call(headers)
      expect([response.status, response.error.code]).toEqual([401, 'UNAUTHENTICATED'])
    }
  })
})
