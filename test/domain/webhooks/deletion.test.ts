import { beforeAll, expect, test } from 'bun:test'
import { createApplicationService } from '../../../src/domain/apps/applications.ts'
import { createWebhookEndpointService } from '../../../src/domain/webhooks/endpoints.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { unlimitedPlan } from '../../helpers/plans.ts'
import { createWebhookFixture, type WebhookFixture } from './fixture.ts'

const events = 250

describeEachDatabase('deliveries of an endpoint that is deleted', (database) => {
  let fixture: WebhookFixture
  beforeAll(async () => {
    fixture = await createWebhookFixture(database())
  })

  const countDeliveries = async () =>
    (await database().read.select().from(database().tables.webhookDeliveries)).length

  test.each(['endpoint', 'application'] as const)(
    'are deleted by many small transactions, before their %s',
    async (kind) => {
      const { store, developer, guard } = fixture
      const [app, other] = [await fixture.createApplication(), await fixture.createApplication()]
      const id = await fixture.createEndpoint(app.id, 'http://127.0.0.1:9/')
      const otherId = await fixture.createEndpoint(other.id, 'http://127.0.0.1:9/')
      for (let i = 0; i < events; i++) await fixture.record(app.id)
      await fixture.record(other.id)
      const before = await countDeliveries()
      let most = 0
      const write: typeof store.write = async (body) => {
        const countBefore = await countDeliveries()
        const result = await store.write(body)
        most = Math.max(most, countBefore - (await countDeliveries()))
        return result
      }
      const needs = {
        ...fixture,
        plans: { free: unlimitedPlan },
        random: (bytes: Uint8Array<ArrayBuffer>) => crypto.getRandomValues(bytes),
        store: { ...store, write },
      }
      const [service, deleted] =
        kind === 'endpoint'
          ? [createWebhookEndpointService({ ...needs, targets: guard, endpointsMax: 20 }), id]
          : [createApplicationService(needs), app.id]

      await service.delete(developer, deleted)

      expect(await countDeliveries()).toBe(before - events)
      expect(most).toBeGreaterThan(0)
      expect(most).toBeLessThanOrEqual(100)
      await expect(fixture.endpoints.get(developer, id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
      const lists = [{}, { status: 'pending' as const }]
      for (const list of lists)
        expect(await store.read.webhookDeliveries.list(otherId, { ...list, limit: 9 })).toHaveLength(1)
    },
  )

  test('are deleted although each transaction is followed by another event', async () => {
    const { store, developer, guard } = fixture
    const app = await fixture.createApplication()
    const id = await fixture.createEndpoint(app.id, 'http://127.0.0.1:9/')
    for (let i = 0; i < 150; i++) await fixture.record(app.id)
    let writes = 0
    const write: typeof store.write = async (body) => {
      if (++writes > 10) throw new Error('the deletion does not end')
      const result = await store.write(body)
      await fixture.record(app.id)
      return result
    }
    const busy = { ...fixture, store: { ...store, write }, targets: guard, endpointsMax: 20 }

    await createWebhookEndpointService(busy).delete(developer, id)

    expect(await store.read.webhookDeliveries.list(id, { limit: 9 })).toEqual([])
  })

  test('of another developer stay', async () => {
    const app = await fixture.createApplication()
    const id = await fixture.createEndpoint(app.id, 'http://127.0.0.1:9/')
    await fixture.record(app.id)
    const stranger = await fixture.makeDeveloper()
    await expect(fixture.endpoints.delete(stranger, id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(fixture.applications.delete(stranger, app.id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect(await fixture.store.read.webhookDeliveries.list(id, { limit: 9 })).toHaveLength(1)
  })
})
