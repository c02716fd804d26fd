import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readOpened } from '../../helpers/sealed-rows.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../../helpers/service.ts'
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

type Wire = Record<string, unknown> & { id: string; clientId: string; status: string; updatedAt: string }

const get = (id: string) => service.request<Wire>('GET', `/v1/applications/${id}`, { as: owner })
const patch = (id: string, body: unknown) =>
  service.request<Wire>('PATCH', `/v1/applications/${id}`, { as: owner, body })
const rotate = (id: string, type: string) =>
  service.request<{ type: string; value: string; rotatedAt: string }>(
    'POST',
    `/v1/applications/${id}/rotate/${type}`,
    { as: owner },
  )

describe('POST /v1/applications', () => {
  const create = (body: unknown, headers = {}) =>
    service.request<Wire>('POST', '/v1/applications', { as: owner, body, headers })

  test.each(['live', 'test'])('returns all four credentials of a %s application', async (environment) => {
    const { id: projectId } = await service.createProject(owner)
    const response = await create({ name: 'web', projectId, environment })
    expect(response.status).toBe(201)
    expect(response.data).toEqual({
      id: expect.stringMatching(/^app_[0-9a-z]{26}$/),
      name: 'web',
      projectId,
      environment,
      status: 'active',
      clientId: expect.stringMatching(new RegExp(`^ph_${environment}_client_[0-9a-f]{48}$`)),
      clientSecret: expect.stringMatching(new RegExp(`^ph_${environment}_secret_[0-9a-f]{48}$`)),
      apiKey: expect.stringMatching(new RegExp(`^ph_${environment}_api_[0-9a-f]{48}$`)),
      webhookSecret: expect.stringMatching(/^whsec_[0-9a-f]{48}$/),
      warning: expect.stringContaining('Store'),
      otpTtlSeconds: 300,
      createdAt: '2026-11-20T12:00:00.000Z',
      updatedAt: '2026-11-20T12:00:00.000Z',
    })
  })

  test('takes the settings that a change takes', async () => {
    const { id: projectId } = await service.createProject(owner)
    const settings = { otpTtlSeconds: 60, defaultLocale: 'pt-BR', webOtpDomain: 'example.com' }
    const { data } = await create({ name: 'web', projectId, environment: 'live', ...settings })
    const path = `/v1/applications/${data.id}`
    expect((await service.request('GET', path, { as: owner })).data).toMatchObject({
      ...settings,
      androidAppHash: null,
    })
  })

  test('stores no credential in plain text, and seals the webhook secret, which is read again', async () => {
    const application = await service.createApplication(owner)
    const { applications } = service.database.tables
    const rows = JSON.stringify(await service.database.read.select().from(applications))
    const { clientId, clientSecret, apiKey, webhookSecret } = application
    for (const secret of [clientId, clientSecret, apiKey, webhookSecret]) {
      expect(rows).not.toContain(secret.slice(-48))
    }
    expect(JSON.stringify(await readOpened(service.database, 'applications'))).toContain(webhookSecret)
  })

  test.each([
    ['no name', { name: undefined }, 'name', 'REQUIRED'],
    ['an empty name', { name: '' }, 'name', 'INVALID'],
    ['a blank name', { name: '  ' }, 'name', 'INVALID'],
    ['a name of 81 characters', { name: 'x'.repeat(81) }, 'name', 'INVALID'],
    ['no project', { projectId: undefined }, 'projectId', 'REQUIRED'],
    ['no environment', { environment: undefined }, 'environment', 'REQUIRED'],
    ['an unknown environment', { environment: 'staging' }, 'environment', 'INVALID'],
    ['a status', { status: 'active' }, 'status', 'UNKNOWN'],
    ['a lifetime of 59 seconds', { otpTtlSeconds: 59 }, 'otpTtlSeconds', 'INVALID'],
  ])('rejects %s', async (_, change, path, code) => {
    const { id: projectId } = await service.createProject(owner)
    const response = await create({ name: 'web', projectId, environment: 'live', ...change })
    expect(response.status).toBe(400)
    expect(response.error.code).toBe('INVALID_ARGUMENT')
    expect(response.error.details).toContainEqual(expect.objectContaining({ in: 'body', path, code }))
  })

  test('with an idempotency key creates once and never returns the credentials again', async () => {
    const { id: projectId } = await service.createProject(owner)
    const body = { name: 'web', projectId, environment: 'live' }
    const headers = { 'idempotency-key': 'once' }
    expect((await create(body, headers)).status).toBe(201)
    const retryResponse = await create(body, headers)
    expect([retryResponse.status, retryResponse.error.code, retryResponse.error.reason]).toEqual([
      409,
      'CONFLICT',
      'IDEMPOTENCY_RESULT_NOT_STORED',
    ])
    const other = await create({ ...body, name: 'other' }, headers)
    expect([other.status, other.error.code]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED'])
    const list = await service.request<Wire[]>('GET', `/v1/applications?projectId=${projectId}`, {
      as: owner,
    })
    expect(list.data).toHaveLength(1)
  })

  test('judges a refused call with an idempotency key again, also with another body', async () => {
    const headers = { 'idempotency-key': 'refused' }
    const refused = await create(
      { name: 'web', projectId: `prj_${'0'.repeat(26)}`, environment: 'live' },
      headers,
    )
    expect(refused.status).toBe(404)
    const { id: projectId } = await service.createProject(owner)
    const cured = await create({ name: 'web', projectId, environment: 'live' }, headers)
    expect([cured.status, cured.headers.get('idempotency-replayed')]).toEqual([201, null])
  })
})

describe('the application limit of the free plan', () => {
  test('is five per account across all projects, and a deletion makes room', async () => {
    const limited = await createTestService()
    const developer = await limited.createDeveloper()
    const created: TestApplication[] = []
    for (let i = 0; i < 5; i++) created.push(await limited.createApplication(developer))
    const create = () =>
      limited.request('POST', '/v1/applications', {
        as: developer,
        body: { name: 'sixth', projectId: created[0]?.projectId, environment: 'test' },
      })
    const refused = await create()
    expect(refused.status).toBe(403)
    expect(refused.error).toMatchObject({
      code: 'PLAN_LIMIT_REACHED',
      metadata: { resource: 'applications', limit: 5, plan: 'free' },
    })
    await limited.request('DELETE', `/v1/applications/${created[1]?.id}`, { as: developer })
    expect((await create()).status).toBe(201)
    await limited.dispose()
  })

  test('follows the plan of the developer', async () => {
    const two = { ...unlimitedPlan, projects: 1, applications: 2, sendPerMinute: 5, verifyPerMinute: 10 }
    const limited = await createTestService({ plans: { free: { ...two, applications: 0 }, two } })
    const developer = await limited.createDeveloper('two')
    const { projectId } = await limited.createApplication(developer)
    await limited.createApplication(developer, { projectId })
    const body = { name: 'third', projectId, environment: 'live' }
    const refused = await limited.request('POST', '/v1/applications', { as: developer, body })
    expect(refused.error.metadata).toEqual({ resource: 'applications', limit: 2, plan: 'two' })
    await limited.dispose()
  })
})

describe('GET /v1/applications', () => {
  test("lists the caller's applications, newest first, in pages", async () => {
    const developer = await service.createDeveloper()
    const created: string[] = []
    for (let i = 0; i < 5; i++) created.push((await service.createApplication(developer)).id)
    const seen: string[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const query: string = cursor === '' ? '' : `&cursor=${cursor}`
      const page = await service.request<Wire[]>('GET', `/v1/applications?limit=2${query}`, { as: developer })
      expect(page.status).toBe(200)
      seen.push(...page.data.map(({ id }) => id))
      cursor = page.pagination.nextCursor
    }
    expect(seen).toEqual(created.toReversed())
  })

  test('returns previews and never a credential', async () => {
    const developer = await service.createDeveloper()
    const application = await service.createApplication(developer)
    const list = await service.request<Wire[]>('GET', '/v1/applications', { as: developer })
    const one = await service.request<Wire>('GET', `/v1/applications/${application.id}`, { as: developer })
    expect(list.data).toEqual([one.data])
    expect(list.text).not.toContain(application.clientSecret)
    expect(list.text).not.toContain(application.apiKey)
    expect(list.text).not.toContain(application.webhookSecret)
  })

  test("filters by project, and does not find another developer's or an absent one", async () => {
    const developer = await service.createDeveloper()
    const first = await service.createApplication(developer)
    await service.createApplication(developer)
    const foreign = await service.createApplication(stranger)
    const list = (projectId: string) =>
      service.request<Wire[]>('GET', `/v1/applications?projectId=${projectId}`, { as: developer })
    expect((await list(first.projectId)).data.map(({ id }) => id)).toEqual([first.id])
    for (const other of [foreign.projectId, `prj_${'0'.repeat(26)}`, 'nonsense', '']) {
      const response = await list(other)
      expect([response.status, response.error.message]).toEqual([404, 'No project with this id.'])
    }
  })
})

describe('GET /v1/applications/:id', () => {
  test('returns client id and masked previews', async () => {
    const { id, projectId, clientId, clientSecret, apiKey } = await service.createApplication(owner)
    const masked = (value: string) => `${value.slice(0, -44)}****${value.slice(-4)}`
    expect((await get(id)).data).toEqual({
      id,
      name: 'Application',
      projectId,
      environment: 'live',
      status: 'active',
      clientId,
      clientSecretPreview: masked(clientSecret),
      apiKeyPreview: masked(apiKey),
      otpTtlSeconds: 300,
      defaultLocale: null,
      webOtpDomain: null,
      androidAppHash: null,
      defaultCountry: null,
      countries: null,
      createdAt: '2026-11-20T12:00:00.000Z',
      updatedAt: '2026-11-20T12:00:00.000Z',
    })
  })
})

describe('PATCH /v1/applications/:id', () => {
  test('changes only the given fields', async () => {
    const { id } = await service.createApplication(owner)
    const before = (await get(id)).data
    service.clock.advance(1000)
    const updatedAt = new Date(service.clock.now()).toISOString()
    expect((await patch(id, { name: 'new' })).data).toEqual({ ...before, name: 'new', updatedAt })
    expect((await patch(id, { status: 'disabled' })).data.status).toBe('disabled')
    expect((await patch(id, { otpTtlSeconds: 60 })).data['otpTtlSeconds']).toBe(60)
    const after = await patch(id, { status: 'active', otpTtlSeconds: 600 })
    expect(after.status).toBe(200)
    expect(after.data).toEqual({ ...before, name: 'new', otpTtlSeconds: 600, updatedAt })
    expect((await get(id)).data).toEqual(after.data)
  })

  test.each([
    ['nothing', {}],
    ['an unknown status', { status: 'paused' }],
    ['a lifetime of 59 s', { otpTtlSeconds: 59 }],
    ['a lifetime of 601 s', { otpTtlSeconds: 601 }],
    ['a lifetime of 60.5 s', { otpTtlSeconds: 60.5 }],
    ['a lifetime as text', { otpTtlSeconds: '300' }],
    ['no name', { name: null }],
    ['another project', { projectId: 'prj_1' }],
    ['another environment', { environment: 'test' }],
    ['a credential', { clientSecret: 'mine' }],
  ])('rejects %s', async (_, body) => {
    const { id } = await service.createApplication(owner)
    const response = await patch(id, body)
    expect([response.status, response.error.code]).toEqual([400, 'INVALID_ARGUMENT'])
  })
})

describe('POST /v1/applications/:id/rotate/:type', () => {
  test.each([
    ['secret', 'clientSecretRotatedAt', 'clientSecretPreview', /^ph_live_secret_[0-9a-f]{48}$/],
    ['api', 'apiKeyRotatedAt', 'apiKeyPreview', /^ph_live_api_[0-9a-f]{48}$/],
    ['webhook_secret', 'webhookSecretRotatedAt', undefined, /^whsec_[0-9a-f]{48}$/],
  ])('replaces only %s', async (type, timeField, previewField, form) => {
    const { id } = await service.createApplication(owner)
    const before = (await get(id)).data
    service.clock.advance(5000)
    const now = new Date(service.clock.now()).toISOString()
    const response = await rotate(id, type)
    expect(response.status).toBe(200)
    expect(response.data).toEqual({ type, value: expect.stringMatching(form), rotatedAt: now })
    const { value } = response.data
    expect((await get(id)).data).toEqual({
      ...before,
      updatedAt: now,
      [timeField]: now,
      ...(previewField && { [previewField]: `${value.slice(0, -44)}****${value.slice(-4)}` }),
    })
  })

  test.each(['client', 'SECRET', 'webhook-secret', '%00'])('rejects the type %s', async (type) => {
    const { id } = await service.createApplication(owner)
    const response = await rotate(id, type)
    expect([response.status, response.error.code]).toEqual([400, 'INVALID_ARGUMENT'])
    expect(response.error.details).toMatchObject([{ in: 'path', path: 'type' }])
  })

  test('accepts an empty body with a JSON media type', async () => {
    const { id } = await service.createApplication(owner)
    const headers = { 'content-type': 'application/json' }
    const path = `/v1/applications/${id}/rotate/api`
    expect((await service.request('POST', path, { as: owner, headers })).status).toBe(200)
  })
})

describe('GET /v1/applications/:id/webhook-secret', () => {
  test('returns the current secret in full, every time', async () => {
    const { id, webhookSecret } = await service.createApplication(owner)
    const read = () => service.request('GET', `/v1/applications/${id}/webhook-secret`, { as: owner })
    expect((await read()).data).toEqual({ webhookSecret })
    expect((await read()).data).toEqual({ webhookSecret })
    const rotated = await rotate(id, 'webhook_secret')
    expect((await read()).data).toEqual({ webhookSecret: rotated.data.value })
  })
})

describe('DELETE /v1/applications/:id', () => {
  test('deletes once, and then its project can be deleted', async () => {
    const { id, projectId } = await service.createApplication(owner)
    const remove = (path: string) => service.request('DELETE', path, { as: owner })
    expect((await remove(`/v1/projects/${projectId}`)).error.reason).toBe('PROJECT_NOT_EMPTY')
    const response = await remove(`/v1/applications/${id}`)
    expect([response.status, response.data]).toEqual([200, { id, deleted: true }])
    expect((await remove(`/v1/applications/${id}`)).status).toBe(404)
    expect((await get(id)).status).toBe(404)
    expect((await remove(`/v1/projects/${projectId}`)).status).toBe(200)
  })
})
