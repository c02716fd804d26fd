import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readRefusal } from '../../src/domain/apps/authentication.ts'
import type { CallingApplication } from '../../src/domain/model/application.ts'
import { unwrap } from '../../src/domain/model/rejected.ts'
import type { Stores } from '../../src/domain/store/store.ts'
import type { Database } from '../../src/store/engine/database.ts'
import { openSqlite } from '../../src/store/sqlite/database.ts'
import { createStore } from '../../src/store/store.ts'
import { describeEachDatabase, openTestSqlite } from '../helpers/databases.ts'
import { testKeys } from '../helpers/keys.ts'
import { unlimitedPlans } from '../helpers/plans.ts'
import { readRows } from '../helpers/read-rows.ts'
import { createTestService, type TestDeveloper, type TestService } from '../helpers/service.ts'
import { unsharedPermits } from '../domain/webhooks/fixture.ts'

const unauthenticated = { code: 'UNAUTHENTICATED' }

describe('credentials that are remembered', () => {
  let opened: Awaited<ReturnType<typeof openTestSqlite>>
  let foreign: Database
  let service: TestService
  let owner: TestDeveloper
  beforeAll(async () => {
    opened = await openTestSqlite()
    foreign = openSqlite(opened.path, { onDiskFault: () => {} })
    service = await createTestService({ database: opened.database, plans: unlimitedPlans })
    owner = await service.createDeveloper()
  })
  afterAll(async () => {
    await foreign.close()
    await service.dispose()
    await opened.dispose()
  })

  /** Creates an application and remembers its credentials, with a rotation that makes them worthless. */
  async function openCase() {
    const { appAuth } = service.services
    const { id, ...credentials } = await service.createApplication(owner)
    const authenticate = () => appAuth.authenticate(credentials)
    const caller = await authenticate()
    expect(await authenticate()).toBe(caller)
    const fresh = { type: 'api', salt: 's', hash: 'h', preview: '12345678' } as const
    return {
      authenticate,
      caller,
      rotate: async (tx: Pick<Stores, 'applications'>) =>
        expect(await tx.applications.rotate(owner.developer.id, id, fresh, 1)).toBe(true),
      revalidate: async (of: CallingApplication) =>
        unwrap(await readRows(service.store, { application: of }, (rows) => readRefusal(rows, of))),
    }
  }
  const nextTurn = () => new Promise(setImmediate)

  test('are refused after a rotation, and so is a call that was authenticated before it', async () => {
    const { authenticate, caller, revalidate, rotate } = await openCase()
    await revalidate(caller)
    await service.store.write(rotate)
    expect(authenticate()).rejects.toMatchObject(unauthenticated)
    expect(revalidate(caller)).rejects.toMatchObject(unauthenticated)
  })

  test('are refused to the calls of the batch that rotates them', async () => {
    const { caller, revalidate, rotate } = await openCase()
    // The bodies of a batch run before its calls.
    const outcomes = await Promise.allSettled([
      revalidate(caller),
      service.store.write(rotate),
      revalidate(caller),
    ])
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected'])
  })

  test('are refused after the commit to a call that was authenticated between the rotation and its commit', async () => {
    const { authenticate, revalidate, rotate } = await openCase()
    const between = await service.store.write(async (tx) => {
      await rotate(tx)
      return authenticate()
    })
    expect(authenticate()).rejects.toMatchObject(unauthenticated)
    expect(revalidate(between)).rejects.toMatchObject(unauthenticated)
  })

  test('stay valid if the rotation is rolled back', async () => {
    const { authenticate, caller, revalidate, rotate } = await openCase()
    const undone = service.store.write(async (tx) => {
      await rotate(tx)
      throw new Error('undone')
    })
    expect(undone).rejects.toThrow('undone')
    await revalidate(caller)
    await revalidate(await authenticate())
  })

  test('are refused as soon as another process has rotated them, also to calls in progress', async () => {
    const { authenticate, caller, revalidate, rotate } = await openCase()
    await createStore(foreign, { keys: testKeys }).write(rotate)
    await nextTurn()
    expect(authenticate()).rejects.toMatchObject(unauthenticated)
    expect(revalidate(caller)).rejects.toMatchObject(unauthenticated)
  })

  test('are not remembered from a snapshot that is older than the commit of another process', async () => {
    const { authenticate, rotate } = await openCase()
    const other = createStore(foreign, { keys: testKeys })
    await nextTurn()
    const rotated = other.write(rotate)
    const inBatch = service.store
      .write(() => authenticate())
      .then(
        () => 'accepted',
        () => 'refused',
      )
    // Opens the snapshot. Both batches run behind it in this turn, the other process's first.
    await service.store.read.developers.find(owner.developer.id)
    await rotated
    expect(await inBatch).toBe('refused')
    expect(authenticate()).rejects.toMatchObject(unauthenticated)
  })

  test('are not mixed up with the API key alone', async () => {
    const { appAuth } = service.services
    const { apiKey } = await service.createApplication(owner)
    await appAuth.authenticateKey(apiKey)
    for (const parts of [{}, { clientId: '', clientSecret: '' }]) {
      const presented = { clientId: undefined, clientSecret: undefined, apiKey, ...parts }
      expect(appAuth.authenticate(presented)).rejects.toMatchObject(unauthenticated)
    }
  })
})

describeEachDatabase('the configurationVersion of the configuration', (database, kind) => {
  let service: TestService
  let owner: TestDeveloper
  beforeAll(async () => {
    service = await createTestService({ database: database() })
    owner = await service.createDeveloper()
  })
  afterAll(() => service.dispose())

  const endpoint = { url: 'https://hooks.example/otpd', events: ['*'] }
  async function createEndpoint() {
    const { id: appId } = await service.createApplication(owner, { environment: 'test' })
    const body = { ...endpoint, appId }
    const created = await service.request<{ id: string }>('POST', '/v1/webhooks', { as: owner, body })
    return { appId, id: created.data.id }
  }
  function subscribers(appId: string) {
    const { id: developerId } = owner.developer
    return readRows(service.store, { subscribers: appId, subscribersOfDeveloper: developerId }, (rows) => [
      ...rows.subscribers(appId),
      ...rows.subscribersOfDeveloper(developerId),
    ])
  }

  test('moves with every write that authentication or the list of subscribers reads', async () => {
    const { id: developerId } = owner.developer
    const { appId, id } = await createEndpoint()
    const { store, clock } = service
    const now = clock.now()
    const [application, stored, found] = [
      await store.read.applications.find(developerId, appId),
      await store.read.webhookEndpoints.find(developerId, id),
      await store.read.developers.find(developerId),
    ]
    if (!application || !stored || !found) throw new Error('nothing was created')
    const copy = { ...application, webhookSecret: 'whsec', id: 'app_copy', apiKeyPreview: '87654321' }
    const fresh = { type: 'secret', salt: 's', hash: 'h', preview: '1234' } as const
    const invited = { ...found, id: 'dev_copy', issuer: null, subject: null, virtualPhone: '+99912345678' }
    const writes: Record<string, (tx: Stores) => Promise<unknown>> = {
      'applications.insert': (tx) => tx.applications.insert(copy),
      'applications.update': (tx) => tx.applications.update(developerId, appId, { name: 'new' }, now),
      'applications.rotate': (tx) => tx.applications.rotate(developerId, appId, fresh, now),
      'developers.insert': (tx) => tx.developers.insert({ ...invited, email: 'a@b.example' }),
      'developers.claimInvitation': (tx) =>
        tx.developers.claimInvitation('a@b.example', { issuer: 'i', subject: 's', name: null }, now),
      'developers.update': (tx) => tx.developers.update('dev_copy', { plan: 'free' }, now),
      'developers.setTokensValidFrom': (tx) => tx.developers.setTokensValidFrom('dev_copy', now),
      'developers.anonymize': (tx) => tx.developers.anonymize('dev_copy', now),
      'webhookEndpoints.insert': (tx) => tx.webhookEndpoints.insert({ ...stored, id: 'whk_copy' }),
      'webhookEndpoints.update': (tx) => tx.webhookEndpoints.update(developerId, id, {}, now),
      'webhookEndpoints.disable': (tx) =>
        tx.webhookEndpoints.disable(id, 'failing', { url: stored.url, failingSinceBefore: undefined }, now),
      'webhookEndpoints.delete': (tx) => tx.webhookEndpoints.delete(developerId, id),
      'applications.delete': (tx) => tx.applications.delete(developerId, appId),
      'deadlines.shiftDeadlines': (tx) => tx.deadlines.shiftDeadlines(1, now),
    }
    const moved: string[] = []
    for (const [name, write] of Object.entries(writes)) {
      await store.write(async (tx) => {
        const before = tx.applications.configurationVersion()
        await write(tx)
        if (tx.applications.configurationVersion() !== before) moved.push(name)
      })
    }
    expect(moved).toEqual(kind === 'SQLite' ? Object.keys(writes) : [])
  })

  test('does not move with the bookkeeping of deliveries', async () => {
    const { appId } = await createEndpoint()
    const configurationVersion = () => service.store.read.applications.configurationVersion()
    const before = configurationVersion()
    const now = service.clock.now()
    await service.store.write(async (tx) => {
      const [subscriber] = await tx.webhookEndpoints.subscribers(appId)
      if (!subscriber) throw new Error('no subscriber')
      const entry = { type: 'otp.sent', developerId: owner.developer.id, appId, at: now } as const
      const nothing = { requestId: null, phone: null, status: null, detail: null }
      const seq = await tx.events.append([{ entry: { ...entry, ...nothing } }])
      const payload = { id: 'evt_1', body: '{}' }
      const delivery = { id: 'dlv_1', endpointId: subscriber.id, eventSeq: seq, type: 'otp.sent', payload }
      tx.webhookOutbox.lockEndpoints([subscriber.id], now)
      tx.webhookOutbox.insert([{ ...delivery, developerId: owner.developer.id, appId, now }])
    })
    const lease = { owner: 'worker', now, leaseUntil: now + 1000, permits: unsharedPermits() }
    const [claim] = await service.store.write((tx) => tx.webhookOutbox.claim(lease))
    if (!claim) throw new Error('nothing to deliver')
    const attempt = { at: now, statusCode: 200, error: null, request: null, durationMs: 1, body: null }
    await service.store.write((tx) =>
      tx.webhookOutbox.finish({ ...claim, owner: 'worker', attempt, retryAt: null, now }),
    )
    expect(configurationVersion()).toBe(before)
  })

  test('lets every change of an endpoint be seen by the next event', async () => {
    const { appId, id } = await createEndpoint()
    const path = `/v1/webhooks/${id}`
    const seen = async () => (await subscribers(appId)).filter((subscriber) => subscriber.id === id)
    const both = (events: string[]) => [
      { id, events },
      { id, events },
    ]
    expect(await seen()).toEqual(both(['*']))
    await service.request('PATCH', path, { as: owner, body: { events: ['otp.sent'] } })
    expect(await seen()).toEqual(both(['otp.sent']))
    await service.request('PATCH', path, { as: owner, body: { status: 'disabled' } })
    // Its events are kept, as skipped deliveries.
    expect(await seen()).toEqual(both(['otp.sent']))
    await service.request('DELETE', path, { as: owner })
    expect(await seen()).toEqual([])
  })

  test('forgets an endpoint whose transaction was rolled back', async () => {
    const { appId, id } = await createEndpoint()
    const undone = service.store.write(async (tx) => {
      await tx.webhookEndpoints.delete(owner.developer.id, id)
      expect(await tx.webhookEndpoints.subscribers(appId)).toEqual([])
      throw new Error('undone')
    })
    // On SQLite in one batch with another write, so that the failed one is rolled back alone.
    const seen = kind === 'SQLite' ? subscribers(appId) : undefined
    expect(undone).rejects.toThrow('undone')
    await undone.catch(() => undefined)
    for (const list of [await seen, await subscribers(appId)]) {
      if (list) expect(list.filter((subscriber) => subscriber.id === id)).toHaveLength(2)
    }
  })
})
