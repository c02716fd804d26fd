import { expect } from 'bun:test'
import { createIds } from '../../src/domain/model/ids.ts'
import { createEdge } from '../helpers/edge.ts'
import { createTenantWalk } from '../helpers/tenant-walk.ts'
import { describeError, seconds, seededRandom, type Part } from './part.ts'

/** Tenants that are made anew now and then, so that no call meets only what others left. */
const walksPerPair = 25

export const tenants: Part = {
  name: 'tenants',
  title: 'every operation about what belongs to another tenant, and about what belongs to nobody',
  async run({ rounds, seed }, print) {
    const started = performance.now()
    const random = seededRandom(seed)
    const findings: string[] = []
    const edge = await createEdge()
    const walk = createTenantWalk(edge)
    const newId = createIds(edge.service.clock, (bytes) => {
      for (let at = 0; at < bytes.length; at++) bytes[at] = Math.floor(random() * 256)
    })
    let [ada, eve] = [edge.owner, edge.owner]
    let sibling: Record<string, string> = {}
    let calls = 0
    for (let round = 0; round < rounds && findings.length === 0; round++) {
      if (round % walksPerPair === 0) {
        ada = await edge.makeBelongings(`+1415555${1000 + Math.floor(random() * 4000)}`)
        eve = await edge.makeBelongings(`+1415555${5000 + Math.floor(random() * 4000)}`)
        sibling = (await edge.service.createApplication(ada.developer, { environment: 'test' })).headers
      }
      const absent = {
        projectId: newId('prj'),
        appId: newId('app'),
        requestId: newId('otp'),
        webhookId: newId('whk'),
        deliveryId: newId('dlv'),
        eventId: newId('evt'),
        phone: `+1415556${1000 + Math.floor(random() * 9000)}`,
      }
      const tries = [
        ...walk.forConsole.map((operation) => ({ operation, as: eve.developer.headers })),
        ...walk.forApplications.map((operation) => ({ operation, as: eve.application.headers })),
        ...walk.forApplications.map((operation) => ({ operation, as: sibling })),
      ]
      for (const { operation, as } of tries) {
        calls += 2
        try {
          const answers = await walk.compare(operation, as, ada, absent)
          expect(answers.foreign).toEqual(answers.absent)
          expect(answers.foreign.status).toBe(404)
        } catch (error) {
          findings.push(`${operation.operationId}, seed ${seed}: ${describeError(error)}`)
        }
      }
    }
    await edge.service.dispose()
    const operations = new Set([...walk.forConsole, ...walk.forApplications]).size
    print(`${operations} operations, ${rounds} rounds, ${calls} calls, ${seconds(started)}`)
    return findings
  },
}
