import { expect } from 'bun:test'
import { countryKey } from '../../../src/domain/guard/row-keys.ts'
import { usageOf } from '../../helpers/guard.ts'
import { createEvidenceBackfill } from '../../../src/domain/upkeep/guard-backfills.ts'
import { testKeys } from '../../helpers/keys.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import { openRaceFixture } from './fixture.ts'
import { runConcurrently, type Race } from './race.ts'

const messages = 30

export const guardBackfillRaces: Race[] = [
  {
    name: 'an upgrade that builds the evidence of the guard loses no message, and no message loses evidence',
    async open(database) {
      const fixture = await openRaceFixture(database, unlimitedPlans, { OTPD_GUARD_MODE: 'enforce' })
      const { service, otp } = fixture
      const backfill = createEvidenceBackfill({ keys: testKeys, clock: service.clock })
      /** Takes the whole backfill, a few phones at a time. */
      async function runBackfill() {
        for (let position: string | undefined = ''; position !== undefined;) {
          const from: string = position
          position = await service.store.write((tx) => backfill.step(tx, from, 20))
        }
      }
      return {
        close: fixture.close,
        async round(_, random) {
          const owner = await service.createDeveloper()
          const application = await service.createApplication(owner)
          const key = countryKey(owner.developer.id, 'US')
          const verified = Array.from({ length: 5 }, fixture.newPhone)
          for (const phone of verified) {
            const { requestId } = await otp.sendOrThrow(application, { phone })
            await otp.verify(application, requestId, await otp.getCode(requestId))
          }
          // As before the upgrade.
          await service.store.write(async (tx) => {
            for (const subject of await tx.guard.listKeys('', 100_000)) await tx.guard.delete(subject)
          })
          await runConcurrently<unknown>(messages + 1, random, (index) =>
            index === 0 ? runBackfill() : otp.sendOrThrow(application, { phone: fixture.newPhone() }),
          )
          const row = (await service.store.read.guard.named(key)).get(key)
          const { unverified, evidence } = usageOf(row, service.clock.now())
          expect({ unverified, evidence }).toEqual({ unverified: messages, evidence: verified.length })
        },
      }
    },
  },
]
