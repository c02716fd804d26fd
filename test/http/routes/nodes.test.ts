import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { createEventWatch } from '../../../src/domain/log/event-watch.ts'
import { hostOrigin } from '../../../src/domain/model/audit.ts'
import type { Database } from '../../../src/store/engine/database.ts'
import { openTestPostgres } from '../../helpers/databases.ts'
import { readEventStream } from '../../helpers/event-stream.ts'
import { createOtpClient, guardOffEnv } from '../../helpers/otp-client.ts'
import { unlimitedPlan, unlimitedPlans } from '../../helpers/plans.ts'
import {
  createTestService,
  credentialHeaders,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../../helpers/service.ts'

const url = process.env['OTPD_TEST_POSTGRES_URL'] ?? ''
const rounds = 20

describe.skipIf(url === '')(
  'what changes at one node on PostgreSQL holds at the next call of another:',
  () => {
    let opened: Awaited<ReturnType<typeof openTestPostgres>>
    let second: Database
    let here: TestService
    let there: TestService
    let ada: TestDeveloper
    let application: TestApplication
    let phones = 0

    beforeAll(async () => {
      opened = await openTestPostgres(url)
      second = opened.openNode()
    })
    afterAll(() => opened.dispose())
    beforeEach(async () => {
      const plans = {
        ...unlimitedPlans,
        small: { ...unlimitedPlan, sendPerMinute: 1, verifyPerMinute: 5 },
        counted: { ...unlimitedPlan, sendPerMinute: 1_000 },
      }
      const options = { plans, env: guardOffEnv }
      here = await createTestService({ ...options, database: opened.database })
      there = await createTestService({ ...options, database: second })
      ada = await here.createDeveloper()
      application = await here.createApplication(ada)
    })
    afterEach(async () => {
      await here.dispose()
      await there.dispose()
    })

    const sendThere = () => createOtpClient(there).send(application, { phone: `+1415555${1000 + phones++}` })
    const listThere = (headers: Record<string, string>) =>
      there.request('GET', '/v1/projects', { as: { headers } })
    const path = (suffix = '') => `/v1/applications/${application.id}${suffix}`

    test('a replaced secret or key, also while calls are under way', async () => {
      for (let round = 0; round < rounds; round++) {
        expect((await sendThere()).status).toBe(201)
        const underWay = Promise.all(Array.from({ length: 10 }, () => sendThere()))
        const type = round % 2 === 0 ? 'secret' : 'api'
        const rotated = await here.request<{ value: string }>('POST', path(`/rotate/${type}`), { as: ada })
        expect(rotated.status).toBe(200)
        expect((await sendThere()).status).toBe(401)
        expect((await underWay).every(({ status }) => status === 201 || status === 401)).toBe(true)
        const { value } = rotated.data
        const credentials = { ...application, [type === 'secret' ? 'clientSecret' : 'apiKey']: value }
        application = { ...credentials, headers: credentialHeaders(credentials) }
        expect((await sendThere()).status).toBe(201)
      }
    })

    test('a replaced secret, for calls that are answered before or without their operation', async () => {
      const { id } = ada.developer
      await here.store.write((tx) => tx.developers.update(id, { plan: 'counted' }, here.clock.now()))
      const headers = { ...application.headers, 'idempotency-key': 'key' }
      const body = { phone: '+14155550199' }
      const send = (sent: object) => there.request('POST', '/v1/otp/send', { as: { headers }, body: sent })
      expect((await send(body)).status).toBe(201)
      expect((await send(body)).headers.get('idempotency-replayed')).toBe('true')
      expect((await here.request('POST', path('/rotate/secret'), { as: ada })).status).toBe(200)
      const refused = await Promise.all(
        [body, { phone: '+14155550198' }, {}, { phone: 'no phone' }].map(send),
      )
      expect(refused.map(({ status }) => status)).toEqual([401, 401, 401, 401])
      // Nor do they say how much the application sends.
      expect(refused.map(({ headers: received }) => received.get('ratelimit'))).toEqual([
        null,
        null,
        null,
        null,
      ])
    })

    test('a changed lifetime of codes, and another plan', async () => {
      const lifetime = async () => {
        const { data } = await sendThere()
        return Math.round((Date.parse(data.expiresAt) - there.clock.now()) / 1000)
      }
      expect(await lifetime()).toBe(300)
      const changed = await here.request('PATCH', path(), { as: ada, body: { otpTtlSeconds: 120 } })
      expect(changed.status).toBe(200)
      expect(await lifetime()).toBe(120)
      const prove = async () => {
        const body = { type: 'firebase-pnv', token: 'none' }
        const { error, headers } = await there.request('POST', '/v1/otp/proofs', { as: application, body })
        return [error.code, headers.get('ratelimit-policy')]
      }
      expect(await prove()).toEqual(['PROOF_REJECTED', null])
      const { id } = ada.developer
      await here.store.write((tx) => tx.developers.update(id, { plan: 'small' }, here.clock.now()))
      expect(await prove()).toEqual(['PROOF_REJECTED', '"otp-verify";q=5;w=60'])
      expect([(await sendThere()).status, (await sendThere()).status]).toEqual([201, 429])
      // An error before the operation tells the limit of that plan too.
      const invalid = await there.request('POST', '/v1/otp/send', { as: application, body: {} })
      expect([invalid.status, invalid.headers.get('ratelimit-policy')]).toEqual([400, '"otp-send";q=1;w=60'])
    })

    test('a disabled and a deleted application, and a disabled developer', async () => {
      expect((await sendThere()).status).toBe(201)
      const setStatus = (status: 'active' | 'disabled') =>
        here.request('PATCH', path(), { as: ada, body: { status } })
      expect((await setStatus('disabled')).status).toBe(200)
      expect((await sendThere()).status).toBe(403)
      expect((await setStatus('active')).status).toBe(200)
      expect((await sendThere()).status).toBe(201)
      const { id } = ada.developer
      const now = here.clock.now()
      await here.store.write((tx) => tx.developers.update(id, { status: 'disabled' }, now))
      expect([(await sendThere()).status, (await listThere(ada.headers)).status]).toEqual([403, 403])
      await here.store.write((tx) => tx.developers.update(id, { status: 'active' }, now))
      expect((await sendThere()).status).toBe(201)
      expect((await here.request('DELETE', path(), { as: ada })).status).toBe(200)
      expect((await sendThere()).status).toBe(401)
    })

    test('a revoked API token, which also ends streams', async () => {
      const body = { name: `token ${crypto.randomUUID()}`, scopes: ['read'] }
      const created = await here.request<{ id: string; token: string }>('POST', '/v1/tokens', {
        as: ada,
        body,
      })
      const headers = { authorization: `Bearer ${created.data.token}` }
      expect((await listThere(headers)).status).toBe(200)
      const stream = await openStream(headers)
      expect((await here.request('DELETE', `/v1/tokens/${created.data.id}`, { as: ada })).status).toBe(200)
      expect((await listThere(headers)).status).toBe(401)
      // As every two seconds.
      there.services.logStreams.wake()
      expect(await stream.next()).toMatchObject({ event: 'end', data: '{"reason":"token_revoked"}' })
    })

    test('a logout, for an ID token that was verified before', async () => {
      const client = { network: '192.0.2.1', origin: hostOrigin }
      const email = `${crypto.randomUUID()}@example.com`
      const password = 'correct horse battery'
      await here.services.builtIn?.accounts.create({ email, name: 'Bob', password })
      const form = { grant_type: 'password', username: email, password }
      const tokens = await here.services.builtIn?.provider.grant(form, client)
      if (!tokens || !('id_token' in tokens)) throw new Error('the login failed')
      const headers = { authorization: `Bearer ${tokens.id_token}` }
      expect((await listThere(headers)).status).toBe(200)
      await here.services.builtIn?.provider.revoke(tokens.refresh_token, client)
      expect(await listThere(headers)).toMatchObject({ status: 401, error: { reason: 'TOKEN_REVOKED' } })
    })

    test('a log entry, for streams', async () => {
      const { logStreams } = there.services
      const look = createEventWatch({
        store: there.store,
        isNeeded: logStreams.isInUse,
        async onEntries(developerIds) {
          for (const id of developerIds ?? []) logStreams.wake(id)
        },
      })
      expect(logStreams.isInUse()).toBe(false)
      const stream = await openStream(ada.headers)
      expect(logStreams.isInUse()).toBe(true)
      await look()
      const entry = stream.nextEntryIds(1)
      await createOtpClient(here).sendOrThrow(application, { phone: '+14155550100' })
      await look()
      expect(await entry).toHaveLength(1)
      await stream.cancel()
    })

    async function openStream(headers: Record<string, string>) {
      const request = new Request('http://otpd.test/v1/logs/stream', { headers })
      const stream = readEventStream((await there.app.handle(request)).body)
      // The position at which it starts.
      await stream.next()
      return stream
    }

    test('nodes that start at once sign with one key', async () => {
      const { signingKeys } = opened.database.tables
      for (let round = 0; round < rounds; round++) {
        await opened.database.write(async (tx) => void (await tx.delete(signingKeys)))
        const keys = await Promise.all(
          [here, there, here, there].map(({ services }) => services.builtIn?.signingKeys.current()),
        )
        expect(new Set(keys.map((key) => key?.kid)).size).toBe(1)
      }
    })
  },
)
