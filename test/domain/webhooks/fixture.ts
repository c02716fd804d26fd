import { eq } from 'drizzle-orm'
import { createApplicationService } from '../../../src/domain/apps/applications.ts'
import { hostOrigin, type Actor } from '../../../src/domain/model/audit.ts'
import { insertDeveloper } from '../../../src/domain/accounts/developers.ts'
import { loadEventIds } from '../../../src/store/event-ids.ts'
import type { Subscription } from '../../../src/shared/event-kinds.ts'
import { eventChange } from '../../../src/domain/log/changes.ts'
import type { LogType } from '../../../src/shared/event-kinds.ts'
import type { Environment } from '../../../src/domain/model/application.ts'
import { createIds } from '../../../src/domain/model/ids.ts'
import { createFairPermits } from '../../../src/domain/model/fair-permits.ts'
import type { Random } from '../../../src/domain/model/random.ts'
import { createProjectService } from '../../../src/domain/apps/projects.ts'
import { createWebhookEndpointService } from '../../../src/domain/webhooks/endpoints.ts'
import type { Database } from '../../../src/store/engine/database.ts'
import { createStore, type StoreNeeds } from '../../../src/store/store.ts'
import { createTargetGuard } from '../../../src/webhooks/targets.ts'
import { testClock } from '../../helpers/clock.ts'
import { createPendingRequest } from '../../helpers/otp-request.ts'
import { testKeys } from '../../helpers/keys.ts'
import { readConnection } from '../../helpers/sealed-rows.ts'
import { unlimitedPlan } from '../../helpers/plans.ts'

/** Permits that one developer may take all. */
export const unsharedPermits = (max = 50) => createFairPermits(max, Infinity)

export type WebhookFixture = Awaited<ReturnType<typeof createWebhookFixture>>

/**
 * Creates a developer and a project, and functions that add to them: the real services on a real database.
 *
 * @param deliveryQueue leases deliveries that are inserted
 */
export async function createWebhookFixture(
  database: Database,
  deliveryQueue?: NonNullable<StoreNeeds['deliveryQueue']>,
) {
  const clock = testClock()
  const random: Random = (bytes) => crypto.getRandomValues(bytes)
  const newId = createIds(clock, random)
  const store = createStore(database, { keys: testKeys, clock, ...(deliveryQueue && { deliveryQueue }) })
  const plan = unlimitedPlan
  const keys = testKeys
  const needs = { store, clock, newId, random, keys, plans: { free: plan } }
  const guard = createTargetGuard({ hosts: [], cidrs: ['127.0.0.1/32'] })
  const createEndpointService = (endpointsMax: number) =>
    createWebhookEndpointService({ ...needs, targets: guard, endpointsMax })
  const applications = createApplicationService(needs)
  const developer = await makeDeveloper()
  const projects = createProjectService(needs)
  const { value: project } = await projects.create(developer, { name: 'Project' })
  /** Owners by application. */
  const owners = new Map<string, { developer: Actor; projectId: string }>()

  async function makeDeveloper(): Promise<Actor> {
    const id = newId('dev')
    const newDeveloper = { id, issuer: 'test', subject: id, email: null, name: null, now: clock.now() }
    const created = await store.write((tx) => insertDeveloper(tx, newDeveloper, random))
    if (!created) throw new Error('The developer could not be created.')
    return { ...created, origin: hostOrigin }
  }

  return {
    clock,
    newId,
    keys,
    store,
    guard,
    developer,
    makeDeveloper,
    applications,
    endpoints: createEndpointService(1_000),
    createEndpointService,

    async createApplication(
      environment: Environment = 'live',
      owner = developer,
    ): Promise<{ id: string; webhookSecret: string }> {
      const projectId =
        owner === developer ? project.id : (await projects.create(owner, { name: 'Project' })).value.id
      const { value } = await applications.create(owner, { name: 'Application', projectId, environment })
      owners.set(value.application.id, { developer: owner, projectId })
      return { id: value.application.id, webhookSecret: value.secrets.webhookSecret }
    },

    async createEndpoint(appId: string, url: string, events: Subscription[] = ['*']): Promise<string> {
      const owner = owners.get(appId)?.developer ?? developer
      const { value } = await this.endpoints.create(owner, { appId, url, events })
      return value.id
    },

    /** Records an event of a sample request of the application. @returns the id of the event */
    async record(appId: string, type: LogType = 'otp.verified'): Promise<string> {
      const now = clock.now()
      const owner = owners.get(appId)
      const request = createRequest(
        owner?.developer.id ?? developer.id,
        owner?.projectId ?? project.id,
        appId,
      )
      await store.decide({
        preload: { first: () => ({ subscribers: appId }) },
        decide: (rows) => ({
          result: undefined,
          changes: [eventChange(newId, type, request, rows.subscribers(appId), now)],
        }),
      })
      const { events } = database.tables
      const [entry] = await database.read
        .select({ id: events.id, seq: events.seq })
        .from(events)
        .where(eq(events.requestId, request.id))
      if (!entry) throw new Error('The event was not recorded.')
      return entry.id ?? (await loadEventIds(readConnection(database))).encode(now, entry.seq)
    },

    async deliveries(endpointId: string) {
      const { webhookDeliveries, events } = database.tables
      const rows = await database.read.select().from(webhookDeliveries)
      const eventRows = await database.read
        .select({ id: events.id, seq: events.seq, at: events.at })
        .from(events)
      const ids = await loadEventIds(readConnection(database))
      const eventIds = new Map(eventRows.map(({ id, seq, at }) => [seq, id ?? ids.encode(at, seq)]))
      return rows
        .filter((row) => row.endpointId === endpointId)
        .map((row) => ({ ...row, eventId: eventIds.get(row.eventSeq) }))
    },
  }

  function createRequest(developerId: string, projectId: string, appId: string) {
    const now = clock.now()
    return createPendingRequest(now, {
      id: newId('otp'),
      developerId,
      projectId,
      appId,
      phone: '+14155550123',
      status: 'verified',
      metadata: { order: '7' },
      attempts: 1,
      verifiedAt: now,
    })
  }
}
