import { expect } from 'bun:test'
import { templatesMax } from '../../../src/domain/model/message-template.ts'
import { countByOutcome } from '../../helpers/otp-client.ts'
import { createTestService } from '../../helpers/service.ts'
import { runConcurrently, concurrentCalls, type Race } from './race.ts'

export const templateRaces: Race[] = [
  {
    name: `${concurrentCalls} concurrent templates of an application: exactly ${templatesMax} are created`,
    async open(database) {
      const service = await createTestService({ database })
      return {
        close: service.dispose,
        async round(_, random) {
          const as = await service.createDeveloper()
          const { id } = await service.createApplication(as)
          const put = (index: number) =>
            service.request('PUT', `/v1/applications/${id}/templates/t${index}`, {
              as,
              body: { texts: { en: '{code} is your code' } },
            })
          const responses = await runConcurrently(concurrentCalls, random, async (index) => {
            let response = await put(index)
            // All wait for one row: on a busy machine some wait too long for a connection, and clients repeat them.
            while (response.status === 503) response = await put(index)
            return response
          })
          expect(countByOutcome(responses)).toEqual({
            '200': templatesMax,
            '409 CONFLICT TEMPLATE_LIMIT_REACHED': concurrentCalls - templatesMax,
          })
          expect(await service.store.read.templates.list(id)).toHaveLength(templatesMax)
        },
      }
    },
  },
]
