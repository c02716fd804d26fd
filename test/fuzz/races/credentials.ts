import { expect } from 'bun:test'
import { readRefusal } from '../../../src/domain/apps/authentication.ts'
import type { CallingApplication } from '../../../src/domain/model/application.ts'
import { readRows } from '../../helpers/read-rows.ts'
import type { TestResponse } from '../../helpers/service.ts'
import { runConcurrently, concurrentCalls, type Race } from './race.ts'
import { openRaceFixture } from './fixture.ts'

/** Changes that revoke an application's credentials, and the status of its calls afterwards. */
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

/** Waits for some turns of the event loop. A call takes several. */
async function afterTurns(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate)
}

export const credentialRaces: Race[] = revocations.flatMap(
  ({ title, path, method, body, refusal }): Race[] => [
    {
      name: `no operation in progress takes effect after ${title}`,
      async open(database) {
        const { service, developer, close } = await openRaceFixture(database)
        const outcomeCounts = { done: 0, refused: 0, 'done after revocation': 0 }

        /** Callers whose revocation was answered. */
        const revoked = new WeakSet<CallingApplication>()

        /** Runs an operation that, like all of them, checks the caller again inside its transaction. */
        const runOperation = (caller: CallingApplication) =>
          readRows(service.store, { application: caller }, (rows): keyof typeof outcomeCounts => {
            if (readRefusal(rows, caller)) return 'refused'
            // Without the version under which the caller was authenticated, its row is read.
            const { configurationVersion: _, ...unversioned } = caller
            const isAuthorized = !revoked.has(caller) && rows.credentialState(unversioned) === 'ok'
            return isAuthorized ? 'done' : 'done after revocation'
          })

        return {
          close,
          finish() {
            expect(outcomeCounts['done after revocation']).toBe(0)
            expect(Math.min(outcomeCounts.done, outcomeCounts.refused)).toBeGreaterThan(0)
          },
          async round(_, random) {
            const { id, ...credentials } = await service.createApplication(developer)
            const caller = await service.services.appAuth.authenticate(credentials)
            const target = `/v1/applications/${id}${path}`
            const revoke = async () => {
              const answer = await service.request(method, target, { as: developer, body })
              revoked.add(caller)
              return answer
            }
            const outcomes = await runConcurrently<TestResponse<unknown> | keyof typeof outcomeCounts>(
              concurrentCalls,
              random,
              (index) => (index === 0 ? revoke() : afterTurns(index % 6).then(() => runOperation(caller))),
            )
            for (const outcome of outcomes) {
              if (typeof outcome === 'string') outcomeCounts[outcome]++
              else expect(outcome.status).toBe(200)
            }
            expect(outcomeCounts['done after revocation']).toBe(0)
            expect(await runOperation(caller)).toBe('refused')
          },
        }
      },
    },

    {
      name: `continuous calls are refused as soon as ${title} has been answered`,
      sqliteOnly: true,
      async open(database) {
        const { service, developer, otp, close } = await openRaceFixture(database)
        let acceptedCount = 0
        return {
          close,
          finish: () => expect(acceptedCount).toBeGreaterThan(0),
          async round(_, random) {
            const application = await service.createApplication(developer, { environment: 'test' })
            const send = () => otp.send(application, { phone: '+14155550100' })
            let revoked = false
            const keepCalling = async () => {
              for (let refusedCount = 0; refusedCount < 2;) {
                const startedLate = revoked
                const { status } = await send()
                expect(startedLate ? [refusal] : [201, refusal]).toContain(status)
                if (startedLate) refusedCount++
                else if (status === 201) acceptedCount++
              }
            }
            await runConcurrently(5, random, async (index) => {
              if (index > 0) return keepCalling()
              await send()
              const target = `/v1/applications/${application.id}${path}`
              const response = await service.request(method, target, { as: developer, body })
              revoked = true
              expect(response.status).toBe(200)
            })
          },
        }
      },
    },
  ],
)
