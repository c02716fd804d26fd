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

type Wire = {
  id: string
  name: string
  description: string | null
  applicationCount: number
  createdAt: string
  updatedAt: string
}

const create = (body: unknown, headers = {}) =>
  service.request<Wire>('POST', '/v1/projects', { as: owner, body, headers })
const get = (id: string) => service.request<Wire>('GET', `/v1/projects/${id}`, { as: owner })
const patch = (id: string, body: unknown) =>
  service.request<Wire>('PATCH', `/v1/projects/${id}`, { as: owner, body })

describe('POST /v1/projects', () => {
  test('returns the created project', async () => {
    const response = await create({ name: 'storefront', description: 'Sign-in of the shop' })
    expect(response.status).toBe(201)
    expect(response.data).toEqual({
      id: expect.stringMatching(/^prj_[0-9a-z]{26}$/),
      name: 'storefront',
      description: 'Sign-in of the shop',
      applicationCount: 0,
      createdAt: '2026-11-20T12:00:00.000Z',
      updatedAt: '2026-11-20T12:00:00.000Z',
    })
    expect((await get(response.data.id)).data).toEqual(response.data)
  })

  test.each([
    ['no description', {}, null],
    ['null as description', { description: null }, null],
    ['an empty description', { description: '' }, ''],
    ['a description of 280 characters', { description: 'd'.repeat(280) }, 'd'.repeat(280)],
  ])('accepts %s', async (_, body, description) => {
    const response = await create({ name: 'x'.repeat(80), ...body })
    expect([response.status, response.data.description]).toEqual([201, description])
  })

  test.each([
    ['no name', {}, 'name', 'REQUIRED'],
    ['an empty name', { name: '' }, 'name', 'INVALID'],
    ['a blank name', { name: ' \t' }, 'name', 'INVALID'],
    ['a name of 81 characters', { name: 'x'.repeat(81) }, 'name', 'INVALID'],
    ['a number as name', { name: 1 }, 'name', 'INVALID'],
    [
      'a description of 281 characters',
      { name: 'x', description: 'd'.repeat(281) },
      'description',
      'INVALID',
    ],
    ['an id', { name: 'x', id: 'prj_1' }, 'id', 'UNKNOWN'],
    ['an owner', { name: 'x', developerId: 'dev_1' }, 'developerId', 'UNKNOWN'],
  ])('rejects %s', async (_, body, path, code) => {
    const response = await create(body)
    expect([response.status, response.error.code]).toEqual([400, 'INVALID_ARGUMENT'])
    expect(response.error.details).toContainEqual(expect.objectContaining({ in: 'body', path, code }))
  })

  test('rejects the eleventh on the free plan, and a deletion makes room', async () => {
    const limited = await createTestService()
    const developer = await limited.createDeveloper()
    const created = []
    for (let i = 0; i < 10; i++) created.push(await limited.createProject(developer))
    const createEleventh = () =>
      limited.request('POST', '/v1/projects', { as: developer, body: { name: 'eleventh' } })
    const refused = await createEleventh()
    expect(refused.status).toBe(403)
    expect(refused.error).toMatchObject({
      code: 'PLAN_LIMIT_REACHED',
      metadata: { resource: 'projects', limit: 10, plan: 'free' },
    })
    await limited.request('DELETE', `/v1/projects/${created[3]?.id}`, { as: developer })
    expect((await createEleventh()).status).toBe(201)
    await limited.dispose()
  })

  test('with an idempotency key creates once and replays the response', async () => {
    const headers = { 'idempotency-key': '"once"' }
    const first = await create({ name: 'once' }, headers)
    const retryResponse = await create({ name: 'once' }, { 'idempotency-key': 'once' })
    expect([first.status, retryResponse.status]).toEqual([201, 201])
    expect(retryResponse.text).toBe(first.text)
    expect(first.headers.get('idempotency-replayed')).toBeNull()
    expect(retryResponse.headers.get('idempotency-replayed')).toBe('true')
    const other = await create({ name: 'other' }, headers)
    expect([other.status, other.error.code]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED'])
    const otherDevelopersProject = await service.request<Wire>('POST', '/v1/projects', {
      as: stranger,
      body: { name: 'once' },
      headers,
    })
    expect(otherDevelopersProject.status).toBe(201)
    expect(otherDevelopersProject.data.id).not.toBe(first.data.id)
  })
})

describe('GET /v1/projects', () => {
  test("lists the caller's projects, newest first, in pages", async () => {
    const developer = await service.createDeveloper()
    const created: string[] = []
    for (let i = 0; i < 7; i++) created.push((await service.createProject(developer)).id)
    const seen: string[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const query: string = cursor === '' ? '' : `&cursor=${cursor}`
      const page = await service.request<Wire[]>('GET', `/v1/projects?limit=3${query}`, { as: developer })
      expect(page.pagination.limit).toBe(3)
      seen.push(...page.data.map(({ id }) => id))
      cursor = page.pagination.nextCursor
    }
    expect(seen).toEqual(created.toReversed())
  })

  test('counts the applications of each', async () => {
    const developer = await service.createDeveloper()
    const { projectId } = await service.createApplication(developer)
    await service.createApplication(developer, { projectId })
    const empty = await service.createProject(developer)
    const { data } = await service.request<Wire[]>('GET', '/v1/projects', { as: developer })
    expect(data.map(({ id, applicationCount }) => [id, applicationCount])).toEqual([
      [empty.id, 0],
      [projectId, 2],
    ])
  })

  test("refuses another developer's cursor", async () => {
    const developer = await service.createDeveloper()
    for (let i = 0; i < 2; i++) await service.createProject(developer)
    const { pagination } = await service.request('GET', '/v1/projects?limit=1', { as: developer })
    const newDeveloper = await service.createDeveloper()
    const page = await service.request('GET', `/v1/projects?cursor=${pagination.nextCursor}`, {
      as: newDeveloper,
    })
    expect([page.status, page.error.reason]).toEqual([400, 'CURSOR_INVALID'])
  })
})

describe('PATCH /v1/projects/:id', () => {
  test('changes only the given fields; null clears the description', async () => {
    const before = (await create({ name: 'old', description: 'text' })).data
    service.clock.advance(1000)
    const updatedAt = new Date(service.clock.now()).toISOString()
    expect((await patch(before.id, { name: 'new' })).data).toEqual({ ...before, name: 'new', updatedAt })
    const clearedResponse = await patch(before.id, { description: null })
    expect(clearedResponse.data).toEqual({ ...before, name: 'new', description: null, updatedAt })
    expect((await get(before.id)).data).toEqual(clearedResponse.data)
  })

  test.each([
    ['nothing', {}],
    ['null as name', { name: null }],
    ['a description of 281 characters', { description: 'd'.repeat(281) }],
    ['a count', { applicationCount: 3 }],
  ])('rejects %s', async (_, body) => {
    const { data } = await create({ name: 'same' })
    const response = await patch(data.id, body)
    expect([response.status, response.error.code]).toEqual([400, 'INVALID_ARGUMENT'])
    expect((await get(data.id)).data).toEqual(data)
  })
})

describe('DELETE /v1/projects/:id', () => {
  test('deletes an empty project', async () => {
    const { id } = await service.createProject(owner)
    const remove = () => service.request('DELETE', `/v1/projects/${id}`, { as: owner })
    const response = await remove()
    expect([response.status, response.data]).toEqual([200, { id, deleted: true }])
    expect((await get(id)).status).toBe(404)
    expect((await remove()).status).toBe(404)
  })

  test('responds 409 while the project has applications', async () => {
    const { projectId } = await service.createApplication(owner)
    const response = await service.request('DELETE', `/v1/projects/${projectId}`, { as: owner })
    expect(response.status).toBe(409)
    expect(response.error).toMatchObject({ code: 'CONFLICT', reason: 'PROJECT_NOT_EMPTY' })
    expect((await get(projectId)).status).toBe(200)
  })
})
