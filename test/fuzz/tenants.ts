import { expect } from 'bun:test'
import { createIds } from '../../src/domain/model/ids.ts'
import { createApiTester } from '../helpers/api-tester.ts'
import { createTenantIsolationChecker } from '../helpers/tenant-isolation.ts'
import { describeError, formatElapsed, type FuzzPart } from './fuzz-part.ts'
import { seededRandom } from '../helpers/seeded-random.ts'

/** New tenants are created after this many rounds, so that calls still find resources that others have not deleted. */
const roundsPerTenantPair = 25

export const tenants: FuzzPart = {
  name: 'tenants',
  title: 'every operation on resources of another tenant, and on resources that do not exist',
  async run({ rounds, seed }, print) {
    const started = performance.now()
    const random = seededRandom(seed)
    const findings: string[] = []
    const apiTester = await createApiTester()
    const checker = createTenantIsolationChecker(apiTester)
    const newId = createIds(apiTester.service.clock, (bytes) => {
      for (let index = 0; index < bytes.length; index++) bytes[index] = Math.floor(random() * 256)
    })
    let [ada, eve] = [apiTester.owner, apiTester.owner]
    let sibling: Record<string, string> = {}
    let calls = 0
    for (let round = 0; round < rounds && findings.length === 0; round++) {
      if (round % roundsPerTenantPair === 0) {
        ada = await apiTester.createTenant(`+1415555${1000 + Math.floor(random() * 4000)}`)
        eve = await apiTester.createTenant(`+1415555${5000 + Math.floor(random() * 4000)}`)
        sibling = (await apiTester.service.createApplication(ada.developer, { environment: 'test' })).headers
      }
      const absent = {
        projectId: newId('prj'),
        appId: newId('app'),
        requestId: newId('otp'),
        webhookId: newId('whk'),
        deliveryId: newId('dlv'),
        eventId: newId('evt'),
        tokenId: newId('tok'),
        guardRuleId: newId('rul'),
        messageId: newId('msg'),
        sessionId: newId('ses'),
        phone: `+1415556${1000 + Math.floor(random() * 9000)}`,
      }
      const attempts = [
        ...checker.forConsole.map((operation) => ({ operation, as: eve.developer.headers })),
        ...checker.forApplications.map((operation) => ({ operation, as: eve.application.headers })),
        ...checker.forApplications.map((operation) => ({ operation, as: sibling })),
      ]
      for (const { operation, as } of attempts) {
        calls += 2
        try {
          const responses = await checker.compare(operation, as, ada, absent)
          expect(responses.foreign).toEqual(responses.absent)
          expect(responses.foreign.status).toBe(404)
        } catch (error) {
          findings.push(`${operation.operationId}, seed ${seed}: ${describeError(error)}`)
        }
      }
    }
    await apiTester.service.dispose()
    const operations = new Set([...checker.forConsole, ...checker.forApplications]).size
    print(`${operations} operations, ${rounds} rounds, ${calls} calls, ${formatElapsed(started)}`)
    return findings
  },
}
