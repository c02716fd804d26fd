import { expect } from 'bun:test'
import { listRulesMax } from '../../../src/domain/model/list-rule.ts'
import { countByOutcome } from '../../helpers/otp-client.ts'
import { createTestService } from '../../helpers/service.ts'
import { runConcurrently, concurrentCalls, type Race } from './race.ts'

export const guardRuleRaces: Race[] = [
  {
    name: `${concurrentCalls} concurrent guard rules below the limit: exactly as many as fit are created, and none is lost`,
    async open(database) {
      const service = await createTestService({ database })
      return {
        close: service.dispose,
        async round(_, random) {
          const as = await service.createDeveloper()
          const rule = {
            effect: 'deny',
            target: 'prefix',
            appId: null,
            createdAt: 0,
            expiresAt: null,
          } as const
          const early = Array.from({ length: listRulesMax - 10 }, (_, index) => ({
            ...rule,
            id: service.services.newId('rul'),
            value: `+49${1000 + index}`,
          }))
          await service.store.write((tx) => tx.listRules.save(as.developer.id, early))
          const responses = await runConcurrently(concurrentCalls, random, (index) =>
            service.request('POST', '/v1/guard/rules', {
              as,
              body: { effect: 'deny', value: `+33${1000 + index}` },
            }),
          )
          expect(countByOutcome(responses)).toEqual({
            '201': 10,
            '409 CONFLICT GUARD_RULE_LIMIT_REACHED': concurrentCalls - 10,
          })
          expect(await service.store.read.listRules.list(as.developer.id)).toHaveLength(listRulesMax)
        },
      }
    },
  },
]
