import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import type { AuditEntry } from '../../../src/domain/model/audit.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { createPurger } from '../../helpers/retention.ts'
import { createTestService, type TestDeveloper, type TestService } from '../../helpers/service.ts'

const password = 'correct horse battery'
const dayMs = 24 * 60 * 60 * 1000
type Entry = Omit<AuditEntry, 'at' | 'developerId'> & { at: string }

describeEachDatabase('the audit trail', (database) => {
  let service: TestService
  beforeAll(async () => {
    service = await createTestService({ database: database() })
  })
  afterAll(() => service.dispose())

  const headers = { 'user-agent': 'curl/8' }
  const call = <T>(method: string, path: string, as: TestDeveloper, body?: unknown) =>
    service.request<T>(method, path, { as, headers, ...(body !== undefined && { body }) })
  const listAuditEntries = async (as: TestDeveloper, query = '') =>
    (await call<Entry[]>('GET', `/v1/audit${query}`, as)).data
  const brief = (entries: Entry[]) =>
    entries
      .map(({ action, targetId, targetName, detail }) => [action, targetId, targetName, detail])
      .toReversed()

  test('has one entry for a change of the profile that is repeated within a minute', async () => {
    const dev = await service.createDeveloper()
    const rename = (body: object) => call('PATCH', '/v1/developer/me', dev, body)
    const listUpdates = async () =>
      (await listAuditEntries(dev, '?action=account.updated')).map(({ detail }) => detail).toReversed()
    await Promise.all(Array.from({ length: 50 }, (_, n) => rename({ name: `Ada ${n}` })))
    expect(await listUpdates()).toEqual(['name'])
    // Other fields are another change, however often the two alternate.
    for (let round = 0; round < 5; round++) {
      await rename({ company: 'Acme' })
      await rename({ name: 'Ada' })
    }
    expect(await listUpdates()).toEqual(['name', 'company'])
    service.clock.advance(60_000)
    await rename({ name: 'Grace' })
    expect(await listUpdates()).toEqual(['name', 'company', 'name'])
  })

  test('lists every change with its target, newest first, and none of other developers', async () => {
    const ada = await service.createDeveloper()
    const eve = await service.createDeveloper()
    const project = (await call<{ id: string }>('POST', '/v1/projects', ada, { name: 'Shop' })).data
    await call('PATCH', `/v1/projects/${project.id}`, ada, { description: 'Sells' })
    const applicationInput = { name: 'Web', projectId: project.id, environment: 'live' }
    const app = (await call<{ id: string }>('POST', '/v1/applications', ada, applicationInput)).data
    await call('PATCH', `/v1/applications/${app.id}`, ada, { name: 'Web 2', otpTtlSeconds: 60 })
    await call('PATCH', `/v1/applications/${app.id}`, ada, { status: 'disabled' })
    await call('PATCH', `/v1/applications/${app.id}`, ada, { status: 'active' })
    for (const type of ['secret', 'api', 'webhook_secret'])
      await call('POST', `/v1/applications/${app.id}/rotate/${type}`, ada)
    const webhookInput = { appId: app.id, url: 'https://hooks.example/a', events: ['*'] }
    const hook = (await call<{ id: string }>('POST', '/v1/webhooks', ada, webhookInput)).data
    await call('PATCH', `/v1/webhooks/${hook.id}`, ada, { events: ['otp.verified'] })
    await call('PATCH', `/v1/webhooks/${hook.id}`, ada, { status: 'disabled' })
    await call('DELETE', `/v1/webhooks/${hook.id}`, ada)
    await call('DELETE', `/v1/applications/${app.id}`, ada)
    await call('DELETE', `/v1/projects/${project.id}`, ada)
    await call('PATCH', '/v1/developer/me', ada, { company: 'Engines' })

    const entries = await listAuditEntries(ada)
    expect(brief(entries)).toEqual([
      ['project.created', project.id, 'Shop', null],
      ['project.updated', project.id, 'Shop', 'description'],
      ['application.created', app.id, 'Web', 'live'],
      ['application.updated', app.id, 'Web 2', 'name,otpTtlSeconds'],
      ['application.disabled', app.id, 'Web 2', 'status'],
      ['application.enabled', app.id, 'Web 2', 'status'],
      ['credential.rotated', app.id, 'Web 2', 'secret'],
      ['credential.rotated', app.id, 'Web 2', 'api'],
      ['credential.rotated', app.id, 'Web 2', 'webhook_secret'],
      ['webhook.created', hook.id, null, app.id],
      ['webhook.updated', hook.id, null, 'events'],
      ['webhook.disabled', hook.id, null, 'status'],
      ['webhook.deleted', hook.id, null, null],
      ['application.deleted', app.id, 'Web 2', null],
      ['project.deleted', project.id, 'Shop', null],
      ['account.updated', ada.developer.id, null, 'company'],
    ])
    for (const entry of entries) {
      expect(entry).toMatchObject({
        id: expect.stringMatching(/^aud_/),
        actorId: ada.developer.id,
        source: 'api',
        userAgent: 'curl/8',
        traceId: expect.stringMatching(/^req_/),
        at: new Date(service.clock.now()).toISOString(),
      })
      expect(Object.keys(entry)).not.toContain('developerId')
    }
    expect(await listAuditEntries(eve)).toEqual([])
  })

  test('is paginated, and filtered by action and by target', async () => {
    const ada = await service.createDeveloper()
    const ids: string[] = []
    for (const name of ['a', 'b', 'c']) ids.push((await service.createProject(ada, name)).id)
    await call('DELETE', `/v1/projects/${ids[1]}`, ada)
    const first = await call<Entry[]>('GET', '/v1/audit?limit=3', ada)
    expect(first.data).toHaveLength(3)
    const secondPage = await call<Entry[]>(
      'GET',
      `/v1/audit?limit=3&cursor=${first.pagination.nextCursor}`,
      ada,
    )
    expect(secondPage.data.map(({ targetName }) => targetName)).toEqual(['a'])
    expect(secondPage.pagination.nextCursor).toBeNull()
    expect(brief(await listAuditEntries(ada, '?action=project.deleted'))).toEqual([
      ['project.deleted', ids[1] ?? '', 'b', null],
    ])
    expect(await listAuditEntries(ada, `?targetId=${ids[1]}`)).toHaveLength(2)
    for (const query of ['action=project.exploded', 'cursor=x', 'limit=0'])
      expect((await call('GET', `/v1/audit?${query}`, ada)).status).toBe(400)
    expect((await service.request('GET', '/v1/audit')).status).toBe(401)
  })

  test('has no entry for failed requests, and one for idempotent retries', async () => {
    const ada = await service.createDeveloper()
    const eve = await service.createDeveloper()
    const project = await service.createProject(ada, 'Mine')
    expect((await call('DELETE', `/v1/projects/${project.id}`, eve)).status).toBe(404)
    expect(
      (await call('POST', '/v1/applications', eve, { name: 'x', projectId: project.id, environment: 'live' }))
        .status,
    ).toBe(404)
    expect(await listAuditEntries(eve)).toEqual([])
    const twice = () =>
      service.request('POST', '/v1/projects', {
        as: eve,
        headers: { 'idempotency-key': 'once' },
        body: { name: 'Once' },
      })
    await twice()
    expect((await twice()).headers.get('idempotency-replayed')).toBe('true')
    expect(brief(await listAuditEntries(eve)).map(([action]) => action)).toEqual(['project.created'])
  })

  describe('of logins', () => {
    const grant = (form: Record<string, string>, agent = 'otpd/1') =>
      service.app.handle(
        new Request('http://otpd.test/v1/auth/token', {
          method: 'POST',
          headers: { 'content-type': 'application/x-www-form-urlencoded', 'user-agent': agent },
          body: new URLSearchParams(form).toString(),
        }),
      )
    const login = (username: string, secret: string, agent?: string) =>
      grant({ grant_type: 'password', username, password: secret }, agent)

    async function account(email: string): Promise<TestDeveloper> {
      const { builtIn } = service.services
      if (!builtIn) throw new Error('there is no built-in provider')
      await builtIn.accounts.create({ email, password })
      const response = await login(email, password)
      const { id_token: token } = (await response.json()) as { id_token: string }
      const verified = await builtIn.accounts.authenticate(email, password, {
        network: '192.0.2.200',
        origin: { source: 'api', ip: null, userAgent: null, traceId: null, tokenId: null },
      })
      if (typeof verified !== 'object') throw new Error('the login failed')
      const origin = { source: 'host', ip: null, userAgent: null, traceId: null, tokenId: null } as const
      return { developer: { ...verified.developer, origin }, headers: { authorization: `Bearer ${token}` } }
    }
    const actions = async (as: TestDeveloper) =>
      (await listAuditEntries(as)).map(({ action }) => action).toReversed()

    test('has successful and failed ones, with the client', async () => {
      const ada = await account('ada@example.com')
      expect((await login('ada@example.com', 'wrong horse battery', 'x'.repeat(500))).status).toBe(400)
      expect((await login('ada@example.com', password, 'otpd/2')).status).toBe(200)
      const trail = (await listAuditEntries(ada)).toReversed()
      expect(
        trail.map(({ action, actorId, source, userAgent, detail }) => ({
          action,
          actorId,
          source,
          userAgent,
          detail,
        })),
      ).toEqual([
        { action: 'account.created', actorId: null, source: 'host', userAgent: null, detail: null },
        {
          action: 'login.succeeded',
          actorId: ada.developer.id,
          source: 'api',
          userAgent: 'otpd/1',
          detail: 'password',
        },
        { action: 'login.failed', actorId: null, source: 'api', userAgent: 'x'.repeat(200), detail: null },
        {
          action: 'login.succeeded',
          actorId: ada.developer.id,
          source: 'api',
          userAgent: 'otpd/2',
          detail: 'password',
        },
      ])
      const whole = JSON.stringify(await database().read.select().from(database().tables.auditEntries))
      expect(whole).not.toContain('horse')
      expect(whole).not.toContain('ada@example.com')
    })

    test('has no entry for unknown e-mail addresses, so that strangers cannot fill the disk', async () => {
      const count = async () => (await database().read.select().from(database().tables.auditEntries)).length
      const before = await count()
      expect((await login('nobody@example.com', password)).status).toBe(400)
      expect(await count()).toBe(before)
    })

    test('has logouts, reuse of a refresh token, and password changes', async () => {
      const bob = await account('bob@example.com')
      const session = (await (await login('bob@example.com', password)).json()) as { refresh_token: string }
      const renew = (token: string) => grant({ grant_type: 'refresh_token', refresh_token: token })
      expect((await renew(session.refresh_token)).status).toBe(200)
      service.clock.advance(61_000)
      expect((await renew(session.refresh_token)).status).toBe(400)
      expect((await actions(bob)).at(-1)).toBe('login.token_reused')
      const { refresh_token: token } = (await (await login('bob@example.com', password)).json()) as {
        refresh_token: string
      }
      await service.app.handle(
        new Request('http://otpd.test/v1/auth/revoke', {
          method: 'POST',
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
          body: new URLSearchParams({ token }).toString(),
        }),
      )
      expect((await actions(bob)).at(-1)).toBe('login.ended')
      const newPassword = 'another horse battery'
      const change = (currentPassword: string) =>
        call('POST', '/v1/auth/password', bob, { currentPassword, newPassword })
      expect((await change('wrong horse battery')).status).toBe(400)
      expect((await change(password)).status).toBe(200)
      // The change ended the session that made it.
      const { id_token: idToken } = (await (await login('bob@example.com', newPassword)).json()) as {
        id_token: string
      }
      const changed = { ...bob, headers: { authorization: `Bearer ${idToken}` } }
      expect((await actions(changed)).slice(-3)).toEqual([
        'password.change_failed',
        'password.changed',
        'login.succeeded',
      ])
    })
  })

  test('shows entries of a later version, whose nodes may serve the same database', async () => {
    const ada = await service.createDeveloper()
    const { id } = await service.createProject(ada, 'Shop')
    const { auditEntries: entries } = service.database.tables
    const later = { action: 'room.created' as AuditEntry['action'] }
    await service.database.write(
      async (tx) => void (await tx.update(entries).set(later).where(eq(entries.targetId, id))),
    )
    expect(brief(await listAuditEntries(ada))).toEqual([['room.created', id, 'Shop', null]])
  })

  test('is kept for a year', async () => {
    const ada = await service.createDeveloper()
    await service.createProject(ada, 'Old')
    service.clock.advance(365 * dayMs - 1)
    await createPurger(service)()
    expect(await listAuditEntries(ada)).toHaveLength(1)
    service.clock.advance(1)
    await createPurger(service)()
    expect(await listAuditEntries(ada)).toEqual([])
  })
})
