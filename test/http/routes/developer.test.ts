import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createTestService, type TestDeveloper, type TestService } from '../../helpers/service.ts'

type Profile = { id: string; uid: string; name: string; company: string | null; updatedAt: string }

let service: TestService
let developer: TestDeveloper

beforeAll(async () => {
  service = await createTestService()
  developer = await service.createDeveloper()
})
afterAll(() => service.dispose())

const patch = (body: unknown) =>
  service.request<Profile>('PATCH', '/v1/developer/me', { as: developer, body })

describe('GET /v1/developer/me', () => {
  test('returns the profile with the limits of the plan', async () => {
    const response = await service.request('GET', '/v1/developer/me', { as: developer })
    const { id, virtualPhone, createdAt } = developer.developer
    expect(response.status).toBe(200)
    expect(response.data).toEqual({
      id,
      uid: id,
      email: null,
      name: 'Ada',
      company: null,
      plan: 'free',
      virtualPhoneNumber: virtualPhone,
      limits: {
        projects: 10,
        applications: 5,
        sendPerMinute: 5,
        verifyPerMinute: 10,
        consolePerMinute: 600,
        lookupsPerMinute: 60,
      },
      createdAt: new Date(createdAt).toISOString(),
      updatedAt: new Date(createdAt).toISOString(),
    })
  })
})

describe('PATCH /v1/developer/me', () => {
  test('changes only the given fields', async () => {
    service.clock.advance(1000)
    const response = await patch({ name: 'Ada Lovelace' })
    expect(response.status).toBe(200)
    expect(response.data).toMatchObject({ name: 'Ada Lovelace', company: null })
    expect(response.data.updatedAt).toBe(new Date(service.clock.now()).toISOString())
    expect((await patch({ company: 'Analytical Engines' })).data).toMatchObject({
      name: 'Ada Lovelace',
      company: 'Analytical Engines',
    })
    expect((await patch({ company: null })).data.company).toBeNull()
  })

  test.each([
    ['nothing', {}],
    ['the plan', { plan: 'pro' }],
    ['the virtual number', { virtualPhoneNumber: '+9990000000000' }],
    ['the plan next to a name', { name: 'Ada', plan: 'free' }],
    ['an unknown field', { admin: true }],
    ['an empty name', { name: '' }],
    ['a name of spaces', { name: '  ' }],
    ['no name', { name: null }],
    ['a name of 81 characters', { name: 'x'.repeat(81) }],
    ['a company of 121 characters', { company: 'x'.repeat(121) }],
    ['a name that is a number', { name: 5 }],
  ])('responds 400 to %s and changes nothing', async (_name, body) => {
    const before = (await service.request('GET', '/v1/developer/me', { as: developer })).data
    const response = await patch(body)
    expect(response.status).toBe(400)
    expect(response.error.code).toBe('INVALID_ARGUMENT')
    expect((await service.request('GET', '/v1/developer/me', { as: developer })).data).toEqual(before)
  })
})
