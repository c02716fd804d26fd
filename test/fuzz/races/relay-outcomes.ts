import { noCost } from '../../../src/domain/model/price.ts'
import { expect } from 'bun:test'
import { countryKey } from '../../../src/domain/guard/row-keys.ts'
import { usageOf } from '../../helpers/guard.ts'
import { countByOutcome } from '../../helpers/otp-client.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import { openRaceFixture } from './fixture.ts'
import { concurrentCalls, runConcurrently, type Race } from './race.ts'

export const relayOutcomeRaces: Race[] = [
  {
    name: `${concurrentCalls} reports about two messages to one phone count one verification of each, and one phone`,
    async open(database) {
      const fixture = await openRaceFixture(database, unlimitedPlans, { OTPD_GUARD_MODE: 'enforce' })
      const { service } = fixture
      return {
        close: fixture.close,
        async round(_, random) {
          const owner = await service.createDeveloper()
          const application = await service.createApplication(owner)
          const developerId = owner.developer.id
          const phone = fixture.newPhone()
          const ids = [service.services.newId('msg'), service.services.newId('msg')]
          for (const id of ids)
            await service.store.write((tx) =>
              tx.relayedMessages.insert({
                id,
                developerId,
                projectId: application.projectId,
                appId: application.id,
                environment: 'live',
                phone,
                country: 'US',
                clientIp: '198.51.100.7',
                channel: 'sms',
                provider: 'main',
                messageId: null,
                status: 'sent',
                outcome: null,
                ...noCost,
                createdAt: service.clock.now(),
              }),
            )
          const responses = await runConcurrently(concurrentCalls, random, (index) =>
            service.request('POST', `/v1/otp/deliver/${ids[index % 2]}/outcome`, {
              as: application,
              body: { outcome: index % 5 === 0 ? 'failed' : 'verified' },
            }),
          )
          const { '200': recorded = 0, '409 ALREADY_VERIFIED': late = 0 } = countByOutcome(responses)
          expect(recorded).toBeGreaterThanOrEqual((concurrentCalls * 4) / 5)
          expect(recorded + late).toBe(concurrentCalls)
          const key = countryKey(developerId, 'US')
          const row = (await service.store.read.guard.named(key)).get(key)
          expect(usageOf(row, service.clock.now()).evidence).toBe(1)
          for (const id of ids) expect(await fixture.countEvents(id)).toMatchObject({ 'message.verified': 1 })
          const identity = await service.services.identities.getByPhone(developerId, phone)
          expect(identity.verificationCount).toBe(2)
        },
      }
    },
  },
]
