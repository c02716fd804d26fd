import { expect } from 'bun:test'
import { countByOutcome } from '../../helpers/otp-client.ts'
import { runConcurrently, type Race } from './race.ts'
import { openRaceFixture } from './fixture.ts'

export const identityRaces: Race[] = [
  {
    name: 'applications of one developer that verify the same phone count every success',
    async open(database) {
      const { service, otp, developer, newPhone, close } = await openRaceFixture(database)
      const applications = await runConcurrently(4, Math.random, () => service.createApplication(developer))
      const { summary } = service.services.analytics
      return {
        close,
        async round(_, random) {
          const phone = newPhone()
          const before = (await summary(developer.developer)).activeUsers
          const sent = await runConcurrently(4, random, async (index) => {
            const as = applications[index]
            if (!as) throw new Error('There is no application.')
            return { as, ...(await otp.sendOrThrow(as, { phone })) }
          })
          const responses = await Promise.all(
            sent.map(({ as, requestId }) => otp.verifyRightCode(as, requestId)),
          )
          expect(countByOutcome(responses)).toEqual({ '200': 4 })
          const identity = await service.request<{ verificationCount: number; applications: string[] }>(
            'GET',
            `/v1/users/${phone}`,
            { as: developer },
          )
          expect(identity.data).toMatchObject({
            verificationCount: 4,
            applications: applications.map(({ id }) => id).toSorted(),
          })
          expect((await summary(developer.developer)).activeUsers).toBe(before + 1)
        },
      }
    },
  },
]
