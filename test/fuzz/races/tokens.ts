import { expect } from 'bun:test'
import { builtInIssuer } from '../../../src/domain/accounts/developers.ts'
import { createRefreshTokens } from '../../../src/domain/accounts/refresh-tokens.ts'
import { apiTokensMax } from '../../../src/domain/apps/api-tokens.ts'
import { hostOrigin } from '../../../src/domain/model/audit.ts'
import { countByOutcome } from '../../helpers/otp-client.ts'
import { createTestService } from '../../helpers/service.ts'
import { concurrentCalls, maybeStartLater, runConcurrently, type Race } from './race.ts'

export const tokenRaces: Race[] = [
  {
    name: `${concurrentCalls} concurrent API tokens of one name: exactly one is created`,
    async open(database) {
      const service = await createTestService({ database })
      return {
        close: service.dispose,
        async round(_, random) {
          const as = await service.createDeveloper()
          const body = { name: 'raced', scopes: ['read'] }
          const responses = await runConcurrently(concurrentCalls, random, () =>
            service.request('POST', '/v1/tokens', { as, body }),
          )
          expect(countByOutcome(responses)).toEqual({
            '201': 1,
            '409 CONFLICT TOKEN_NAME_TAKEN': concurrentCalls - 1,
          })
        },
      }
    },
  },

  {
    name: `${concurrentCalls} concurrent API tokens below the limit: exactly as many as fit are created`,
    async open(database) {
      const service = await createTestService({ database })
      return {
        close: service.dispose,
        async round(_, random) {
          const as = await service.createDeveloper()
          const create = (name: string) =>
            service.request('POST', '/v1/tokens', { as, body: { name, scopes: ['read'] } })
          await service.store.write(async (tx) => {
            for (let index = 0; index < apiTokensMax - 10; index++)
              await tx.apiTokens.insert({
                id: service.services.newId('tok'),
                developerId: as.developer.id,
                name: `early ${index}`,
                scopes: ['read'],
                preview: '00000000',
                salt: '00',
                hash: '00',
                createdAt: 0,
                expiresAt: null,
                lastUsedAt: null,
              })
          })
          const responses = await runConcurrently(concurrentCalls, random, (index) => create(`late ${index}`))
          expect(countByOutcome(responses)).toEqual({
            '201': 10,
            '409 CONFLICT TOKEN_LIMIT_REACHED': concurrentCalls - 10,
          })
          expect(await service.store.read.apiTokens.count(as.developer.id)).toBe(apiTokensMax)
        },
      }
    },
  },

  {
    name: 'a login and a password reset: no session survives the reset',
    async open(database) {
      const service = await createTestService({ database })
      const { store, clock, services } = service
      const { newId, keys } = services
      const refreshTokens = createRefreshTokens({
        store,
        clock,
        newId,
        random: (bytes) => crypto.getRandomValues(bytes),
        keys,
      })
      const outcomeCounts = { 'login first': 0, 'reset first': 0 }
      return {
        close: service.dispose,
        finish: () => expect(Math.min(...Object.values(outcomeCounts))).toBeGreaterThan(0),
        async round(_, random) {
          const { developer } = await service.createDeveloper()
          const [session] = await runConcurrently(2, random, async (index) => {
            await maybeStartLater(random)
            return index === 0
              ? refreshTokens.issue({ ...developer, origin: hostOrigin }, 'password')
              : store.write(async (tx) => {
                  await tx.developers.lock(developer.id)
                  await tx.refreshTokens.deleteByDeveloper(developer.id)
                  await tx.developers.setTokensValidFrom(developer.id, clock.now() + 1000)
                  return undefined
                })
          })
          outcomeCounts[session ? 'login first' : 'reset first']++
          const found = await store.read.developers.findLogin(
            builtInIssuer,
            developer.id,
            session?.sessionId ?? '',
          )
          expect(found?.hasSession).toBe(false)
        },
      }
    },
  },
]
