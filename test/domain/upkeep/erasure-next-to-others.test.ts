import { afterAll, beforeAll, expect, test } from 'bun:test'
import { hostOrigin } from '../../../src/domain/model/audit.ts'
import { erasePhone } from '../../../src/domain/upkeep/erasure.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { testKeys } from '../../helpers/keys.ts'
import { createTestService, type TestService } from '../../helpers/service.ts'

const phone = '+14155550301'
/** More than a page of records. */
const others = 250

describeEachDatabase('an erasure by a developer', (database) => {
  let service: TestService
  beforeAll(async () => {
    service = await createTestService({ database: database() })
  })
  afterAll(() => service.dispose())

  test('leaves turns to other calls, and others their phones, while it reads messages and sessions of all', async () => {
    const { store, clock } = service
    const { newId } = service.services
    const now = clock.now()
    const [ada, eve] = [await service.createDeveloper(), await service.createDeveloper()]
    const [app, evesApplication] = [
      await service.createApplication(ada),
      await service.createApplication(eve),
    ]
    const message = (developerId: string, appId: string) => ({
      id: newId('msg'),
      developerId,
      projectId: 'prj',
      appId,
      environment: 'live' as const,
      phone,
      country: 'US',
      clientIp: null,
      channel: 'sms' as const,
      provider: 'main',
      messageId: null,
      status: 'sent' as const,
      outcome: null,
      estimatedPrice: null,
      chargedPrice: null,
      createdAt: now,
    })
    const session = (developerId: string, appId: string) => ({
      id: newId('ses'),
      developerId,
      appId,
      tokenHash: newId('ses'),
      returnUrl: 'https://shop.example/',
      state: null,
      phone,
      locale: null,
      template: null,
      variables: null,
      status: 'created' as const,
      requestId: null,
      sends: 0,
      createdAt: now,
      expiresAt: now + 1000,
    })
    const insert = (developerId: string, appId: string, times: number) =>
      store.write(async (tx) => {
        for (let i = 0; i < times; i++) {
          await tx.relayedMessages.insert(message(developerId, appId))
          await tx.otpSessions.insert(session(developerId, appId))
        }
      })
    await insert(eve.developer.id, evesApplication.id, others)
    await insert(ada.developer.id, app.id, 1)
    let turns = 0
    const needs = { ...service, newId, keys: testKeys }
    const developer = await store.read.developers.find(ada.developer.id)
    if (!developer) throw new Error('the developer is missing')
    const actor = { ...developer, origin: hostOrigin }

    await erasePhone(needs, phone, { actor, yieldToRequests: async () => void turns++ })

    expect(turns).toBeGreaterThanOrEqual((2 * others) / 100)
    for (const { listPhones } of [store.read.relayedMessages, store.read.otpSessions]) {
      const left = await listPhones('', 1000)
      expect(left.map((row) => row.developerId)).toEqual(
        Array.from({ length: others }, () => eve.developer.id),
      )
      expect(new Set(left.map((row) => row.phone))).toEqual(new Set([phone]))
      // Decrypting them would cost most of it.
      expect(new Set((await listPhones('', 1000, ada.developer.id)).map((row) => row.phone))).toEqual(
        new Set([null]),
      )
    }
  })
})
