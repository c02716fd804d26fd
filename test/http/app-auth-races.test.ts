import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { recheckCaller, type CallingApplication } from '../../src/domain/app-auth.ts'
import type { ApplicationService } from '../../src/domain/applications.ts'
import type { Actor } from '../../src/domain/audit.ts'
import { describeEachDatabase, raceRounds } from '../helpers/databases.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../helpers/service.ts'

const noLimits = { free: { projects: 10_000, applications: 10_000, sendPerMinute: 0, verifyPerMinute: 0 } }

/** What takes the right to call away from an application, and what its calls are answered from then on. */
const revocations = [
  { title: 'a rotation of the key', path: '/rotate/api', method: 'POST', body: undefined, refusal: 401 },
  {
    title: 'a rotation of the secret',
    path: '/rotate/secret',
    method: 'POST',
    body: undefined,
    refusal: 401,
  },
  { title: 'disabling', path: '', method: 'PATCH', body: { status: 'disabled' }, refusal: 403 },
  { title: 'a deletion', path: '', method: 'DELETE', body: undefined, refusal: 401 },
]

type Revoke = (applications: ApplicationService, owner: Actor, id: string) => Promise<unknown>

const revokers: Array<[string, Revoke]> = [
  ['a rotation of the key', (applications, owner, id) => applications.rotate(owner, id, 'api')],
  ['a rotation of the secret', (applications, owner, id) => applications.rotate(owner, id, 'secret')],
  ['disabling', (applications, owner, id) => applications.update(owner, id, { status: 'disabled' })],
  ['a deletion', (applications, owner, id) => applications.delete(owner, id)],
]

describeEachDatabase('of the operations under way', (database, kind) => {
  let service: TestService
  let owner: TestDeveloper
  beforeAll(async () => {
    service = await createTestService({ plans: noLimits, database: database() })
    owner = await service.createDeveloper()
  })
  afterAll(() => service.dispose())

  /** An operation as all of them are built, that looks again at the end of its transaction. */
  async function operate(caller: CallingApplication): Promise<'done' | 'refused' | 'done without right'> {
    return service.store.write(async (tx) => {
      const refused = await recheckCaller(tx, caller).then(
        () => false,
        () => true,
      )
      if (refused) return 'refused'
      await tx.developers.find(caller.developerId)
      const now = await tx.applications.find(caller.developerId, caller.id)
      const holds = now?.status === 'active' && now.credentialsVersion === caller.credentialsVersion
      return holds ? 'done' : 'done without right'
    })
  }

  test.each(revokers)(
    'none takes effect after %s',
    async (_, revoke) => {
      const { appAuth, applications } = service.services
      const seen = { done: 0, refused: 0, 'done without right': 0 }
      for (let round = 0; round < raceRounds(kind); round++) {
        const { id, ...credentials } = await service.createApplication(owner)
        const caller = await appAuth.authenticate(credentials)
        const before = Array.from({ length: 6 }, () => operate(caller))
        const revocation = revoke(applications, owner.developer, id)
        const after = Array.from({ length: 6 }, () => operate(caller))
        for (const outcome of await Promise.all([...before, ...after])) seen[outcome]++
        await revocation
        expect(await operate(caller)).toBe('refused')
      }
      expect(seen['done without right']).toBe(0)
      expect(Math.min(seen.done, seen.refused)).toBeGreaterThan(0)
    },
    120_000,
  )
})

describe('calls that keep coming', () => {
  let service: TestService
  let owner: TestDeveloper
  beforeAll(async () => {
    service = await createTestService({ plans: noLimits })
    owner = await service.createDeveloper()
  })
  afterAll(() => service.dispose())

  const send = (application: TestApplication) =>
    service.request('POST', '/v1/otp/send', { as: application, body: { phone: '+14155550100' } })

  test.each(revocations)(
    'are refused from the answer to $title on',
    async ({ path, method, body, refusal }) => {
      let late = 0
      let early = 0
      for (let round = 0; round < 200; round++) {
        const application = await service.createApplication(owner, { environment: 'test' })
        let revoked = false
        const worker = async () => {
          for (let rest = 3; rest > 0;) {
            const startedLate = revoked
            const { status } = await send(application)
            expect(startedLate ? [refusal] : [201, refusal]).toContain(status)
            if (startedLate) {
              late++
              rest--
            } else if (status === 201) early++
          }
        }
        const workers = [worker(), worker(), worker(), worker()]
        await send(application)
        const target = `/v1/applications/${application.id}${path}`
        const answer = await service.request(method, target, { as: owner, body })
        revoked = true
        expect(answer.status).toBe(200)
        await Promise.all(workers)
      }
      expect(late).toBe(200 * 4 * 3)
      expect(early).toBeGreaterThan(200)
    },
    120_000,
  )
})
