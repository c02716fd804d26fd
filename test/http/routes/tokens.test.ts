import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { apiTokensMax } from '../../../src/domain/apps/api-tokens.ts'
import { dayMs, minuteMs } from '../../../src/shared/durations.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { createTestService, type TestDeveloper, type TestService } from '../../helpers/service.ts'

type Wire = {
  id: string
  name: string
  scopes: string[]
  preview: string
  createdAt: string
  expiresAt: string | null
  lastUsedAt: string | null
}
type Created = Wire & { token: string }

describeEachDatabase('API tokens', (database) => {
  let service: TestService
  let ada: TestDeveloper
  beforeAll(async () => void (service = await createTestService({ database: database() })))
  beforeEach(async () => void (ada = await service.createDeveloper()))
  afterAll(() => service.dispose())

  const post = (body: unknown, headers = {}, as = ada) =>
    service.request<Created>('POST', '/v1/tokens', { as, body, headers })
  const create = async (body: object = {}, as = ada) =>
    (await post({ name: 'ci', scopes: ['read'], ...body }, {}, as)).data
  const list = async (query = '') => service.request<Wire[]>('GET', `/v1/tokens${query}`, { as: ada })
  const revoke = (id: string) => service.request('DELETE', `/v1/tokens/${id}`, { as: ada })
  const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })
  const use = (token: string) => service.request('GET', '/v1/projects', { as: bearer(token) })
  const iso = (afterMs: number) => new Date(service.clock.now() + afterMs).toISOString()

  describe('creation', () => {
    test('returns the token once, and stores only its salted hash', async () => {
      const created = await create({ scopes: ['otp:read', 'write'] })
      const { token, ...rest } = created
      expect(token).toMatch(/^otpd_pat_[0-9a-f]{48}$/)
      expect(rest).toEqual({
        id: expect.stringMatching(/^tok_[0-9a-z]{26}$/),
        name: 'ci',
        scopes: ['otp:read', 'write'],
        preview: `otpd_pat_${token.slice(9, 13)}****${token.slice(-4)}`,
        createdAt: iso(0),
        expiresAt: iso(90 * dayMs),
        lastUsedAt: null,
      })
      expect((await list()).data).toEqual([rest])
      const rows = JSON.stringify(await database().read.select().from(database().tables.apiTokens))
      expect(rows).not.toContain(token.slice(13, -4))
    })

    test('with another expiry, or none', async () => {
      expect((await create({ name: 'a', expiresAt: iso(1) })).expiresAt).toBe(iso(1))
      expect((await create({ name: 'b', expiresAt: null })).expiresAt).toBeNull()
      expect((await create({ name: 'c', expiresAt: iso(3650 * dayMs) })).expiresAt).toBe(iso(3650 * dayMs))
    })

    test.each([
      ['no scopes', { scopes: undefined }, 'scopes'],
      ['an empty list of scopes', { scopes: [] }, 'scopes'],
      ['a repeated scope', { scopes: ['read', 'read'] }, 'scopes'],
      ['an unknown scope', { scopes: ['admin'] }, 'scopes.0'],
      ['the requirement of a login as scope', { scopes: ['login'] }, 'scopes.0'],
      ['no name', { name: undefined }, 'name'],
      ['a blank name', { name: ' ' }, 'name'],
      ['an expiry in the past', { expiresAt: '2026-11-20T11:59:59Z' }, 'expiresAt'],
      ['an expiry in eleven years', { expiresAt: '2037-11-20T12:00:00Z' }, 'expiresAt'],
      ['an expiry without time', { expiresAt: '2026-12-20' }, 'expiresAt'],
      ['an expiry on no day', { expiresAt: '2026-13-40T12:00:00Z' }, 'expiresAt'],
      ['its own value', { token: `otpd_pat_${'0'.repeat(48)}` }, 'token'],
    ])('is refused with %s', async (_, fault, path) => {
      const response = await post({ name: 'ci', scopes: ['read'], ...fault })
      expect([response.status, response.error.details?.map((detail) => detail.path)]).toEqual([400, [path]])
      expect((await list()).data).toEqual([])
    })

    test('is refused for a name that is in use, but not for one of another developer', async () => {
      const { id } = await create()
      const eve = await service.createDeveloper()
      expect(await create({}, eve)).toMatchObject({ name: 'ci' })
      const refused = await post({ name: 'ci', scopes: ['write'] })
      expect([refused.status, refused.error.reason]).toEqual([409, 'TOKEN_NAME_TAKEN'])
      await revoke(id)
      expect(await create()).toMatchObject({ name: 'ci' })
    })

    test('takes the name of an expired token, which stays listed until then', async () => {
      const old = await create({ expiresAt: iso(minuteMs) })
      await create({ name: 'other', expiresAt: iso(minuteMs) })
      service.clock.advance(minuteMs)
      expect((await list()).data.map(({ name }) => name)).toEqual(['other', 'ci'])
      const { id } = await create()
      expect((await list()).data.map((listed) => listed.name)).toEqual(['ci', 'other'])
      expect([(await revoke(old.id)).status, (await revoke(id)).status]).toEqual([404, 200])
    })

    test('takes the places of expired tokens once there are a hundred', async () => {
      await create({ name: 'kept' })
      for (let index = 1; index < apiTokensMax; index++)
        await create({ name: `token ${index}`, expiresAt: iso(minuteMs) })
      expect((await post({ name: 'more', scopes: ['read'] })).status).toBe(409)
      service.clock.advance(minuteMs)
      await create({ name: 'more' })
      expect((await list()).data.map(({ name }) => name)).toEqual(['more', 'kept'])
    })

    test('is refused beyond a hundred, until one is revoked', async () => {
      for (let index = 0; index < apiTokensMax; index++) await create({ name: `token ${index}` })
      const refused = await post({ name: 'more', scopes: ['read'] })
      expect([refused.status, refused.error.reason, refused.error.metadata]).toEqual([
        409,
        'TOKEN_LIMIT_REACHED',
        { limit: apiTokensMax },
      ])
      const [newest] = (await list()).data
      await revoke(newest?.id ?? '')
      expect((await post({ name: 'more', scopes: ['read'] })).status).toBe(201)
    })

    test('happens once per idempotency key, whose stored result holds no token', async () => {
      const headers = { 'idempotency-key': 'once' }
      const body = { name: 'ci', scopes: ['read'] }
      const { token } = (await post(body, headers)).data
      const repeated = await post(body, headers)
      expect([repeated.status, repeated.error.reason]).toEqual([409, 'IDEMPOTENCY_RESULT_NOT_STORED'])
      expect((await list()).data).toHaveLength(1)
      const rows = JSON.stringify(await database().read.select().from(database().tables.idempotencyKeys))
      expect(rows).not.toContain(token)
    })
  })

  test.each(['2027-02-29T00:00:00Z', '2026-02-30T00:00:00Z', '2027-01-01T24:00:00Z'])(
    'do not expire at %s, which does not exist',
    async (expiresAt) => {
      const refused = await post({ name: 'ci', scopes: ['read'], expiresAt })
      expect([refused.status, refused.error.details?.[0]?.message]).toEqual([
        400,
        'Expected a time such as 2026-11-20T12:00:00Z.',
      ])
    },
  )

  test('are not created by a session that a reset has just ended', async () => {
    await service.store.write((tx) =>
      tx.developers.setTokensValidFrom(ada.developer.id, service.clock.now() + 1000),
    )
    // Authenticated just before.
    const creation = service.services.apiTokens.create(ada.developer, { name: 'late', scopes: ['write'] })
    await expect(creation).rejects.toMatchObject({ reason: 'TOKEN_REVOKED' })
  })

  test('are listed newest first, in pages, without those of others', async () => {
    await create({}, await service.createDeveloper())
    for (const name of ['a', 'b', 'c']) await create({ name })
    const first = await list('?limit=2')
    expect(first.data.map(({ name }) => name)).toEqual(['c', 'b'])
    const second = await list(`?limit=2&cursor=${first.pagination.nextCursor}`)
    expect([second.data.map(({ name }) => name), second.pagination.nextCursor]).toEqual([['a'], null])
  })

  describe('authentication', () => {
    test('accepts the token until it is revoked', async () => {
      const { id, token } = await create()
      expect((await use(token)).status).toBe(200)
      expect((await revoke(id)).status).toBe(200)
      const refused = await use(token)
      expect([refused.status, refused.error.reason]).toEqual([401, 'TOKEN_INVALID'])
      expect(refused.headers.get('www-authenticate')).toContain('invalid_token')
      expect((await revoke(id)).status).toBe(404)
    })

    test('accepts it until it expires, without leeway', async () => {
      const { token } = await create({ expiresAt: iso(minuteMs) })
      service.clock.advance(minuteMs - 1)
      expect((await use(token)).status).toBe(200)
      service.clock.advance(1)
      const refused = await use(token)
      expect([refused.status, refused.error.reason]).toEqual([401, 'TOKEN_EXPIRED'])
    })

    test('is refused while the developer is disabled', async () => {
      const { token } = await create()
      const setStatus = (status: 'active' | 'disabled') =>
        service.store.write((tx) => tx.developers.update(ada.developer.id, { status }, service.clock.now()))
      await setStatus('disabled')
      const refused = await use(token)
      expect([refused.status, refused.error.reason]).toEqual([403, 'ACCOUNT_NOT_ALLOWED'])
      await setStatus('active')
      expect((await use(token)).status).toBe(200)
    })

    test('compares the whole token, among several with one preview', async () => {
      const { id, token } = await create({ name: 'first' })
      const other = await create({ name: 'second' })
      const { apiTokens } = database().tables
      const [row] = (await database().read.select().from(apiTokens)).filter((one) => one.id === id)
      // As likely as one in four billion.
      const twin = token.slice(0, 20) + (token[20] === '0' ? '1' : '0') + token.slice(21)
      await database().write(async (tx) => {
        if (row)
          await tx.insert(apiTokens).values({
            ...row,
            id: `${id.slice(0, -1)}${id.endsWith('x') ? 'y' : 'x'}`,
            name: 'x',
            hash: '00'.repeat(32),
          })
      })
      expect((await use(token)).status).toBe(200)
      expect((await use(other.token)).status).toBe(200)
      for (const guess of [
        twin,
        token.slice(0, -1),
        `${token}0`,
        token.toUpperCase(),
        `${token} `,
        `x${token}`,
      ])
        expect([guess.length, (await use(guess)).status]).toEqual([
          guess.length,
          guess === `${token} ` ? 200 : 401,
        ])
    })

    test('works for no application route', async () => {
      const { token } = await create({ scopes: ['write'] })
      const body = { phone: '+14155550132' }
      const sent = await service.request('POST', '/v1/otp/send', { as: bearer(token), body })
      expect(sent.status).toBe(401)
    })

    test('records the last use, at most once a minute', async () => {
      const { token } = await create()
      const lastUsedAt = async () => (await list()).data[0]?.lastUsedAt
      const first = iso(0)
      await use(token)
      service.clock.advance(minuteMs - 1)
      await use(token)
      expect(await lastUsedAt()).toBe(first)
      service.clock.advance(1)
      await use(token)
      expect(await lastUsedAt()).toBe(iso(0))
    })
  })

  test('appear in the audit trail: their creation, their use and their end', async () => {
    const { id, token } = await create({ scopes: ['write'] })
    await service.request('POST', '/v1/projects', { as: bearer(token), body: { name: 'Shop' } })
    await revoke(id)
    const { data } = await service.request<object[]>('GET', '/v1/audit', { as: ada })
    const actorId = ada.developer.id
    expect(data.toReversed()).toMatchObject([
      { action: 'token.created', targetId: id, targetName: 'ci', detail: 'write', actorId, tokenId: null },
      { action: 'project.created', targetName: 'Shop', actorId, tokenId: id },
      { action: 'token.revoked', targetId: id, targetName: 'ci', actorId, tokenId: null },
    ])
  })
})
