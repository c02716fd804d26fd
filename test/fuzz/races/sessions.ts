import { expect } from 'bun:test'
import { ServiceError } from '../../../src/domain/model/errors.ts'
import { deriveStoredCode } from '../../../src/domain/model/code.ts'
import { testKeys } from '../../helpers/keys.ts'
import { openRaceFixture } from './fixture.ts'
import { concurrentCalls, maybeStartLater, runConcurrently, type Race } from './race.ts'

/** Refusals count as results; anything else fails the round. */
const refusal = (error: unknown) => {
  if (error instanceof ServiceError) return error
  throw error
}

/** All windows are of one browser. */
const deviceId = 'browser'

export const sessionRaces: Race[] = [
  {
    name: `of ${concurrentCalls} windows with one session, which verify its code or send to phones of their own and verify those, one succeeds`,
    async open(database) {
      const fixture = await openRaceFixture(database)
      const { service, application: own } = fixture
      const { sessions } = service.services.otp
      await service.services.pages.update(fixture.developer.developer, own.id, {
        enabled: true,
        returnOrigins: ['https://shop.example'],
      })
      const application = await service.services.appAuth.findActive(own.id)
      const winners = { first: 0, other: 0 }

      async function open(token: string) {
        const session = await sessions.findByToken(token)
        return session && sessions.open(session, deviceId)
      }

      /** Does what a window does that has just loaded the page. */
      async function openWindow(token: string) {
        const opened = await open(token)
        if (!opened) throw new Error('the session is gone')
        return { application, session: opened.session, request: opened.request }
      }

      async function verify(token: string): Promise<boolean> {
        const window = await openWindow(token)
        const { requestId } = window.session
        const request = requestId === null ? undefined : await fixture.findRow(requestId)
        if (!request) return false
        const result = await sessions.verify(window, deriveStoredCode(testKeys, request)).catch(refusal)
        return !(result instanceof ServiceError)
      }

      return {
        close: fixture.close,
        async round(_, random) {
          const { session, token } = await sessions.create(application, {
            returnUrl: 'https://shop.example/',
          })
          await sessions.send(await openWindow(token), { phone: fixture.newPhone(), deviceId })
          const first = (await open(token))?.session.requestId
          const requests = new Set([first])
          // Which of the two wins depends on the database, so one of them starts later.
          const sendsLater = random() < 0.5
          const results = await runConcurrently(concurrentCalls, random, async (index) => {
            await maybeStartLater(random)
            const isVerification = index % 2 === 0 && (sendsLater || index % 4 === 0)
            if (isVerification !== sendsLater) await Bun.sleep(random() * 200)
            if (isVerification) return verify(token)
            const sent = await sessions
              .send(await openWindow(token), { phone: fixture.newPhone(), deviceId })
              .catch(refusal)
            if (sent instanceof ServiceError) return false
            requests.add(sent?.requestId)
            return verify(token)
          })
          expect(results.filter(Boolean).length).toBe(1)
          const stored = await sessions.get({ appId: own.id }, session.id)
          expect(stored.session.status).toBe('verified')
          const rows = await Promise.all([...requests].map((id) => fixture.findRow(id ?? '')))
          const verified = rows.filter((row) => row?.status === 'verified')
          expect(verified.map((row) => row?.id)).toEqual([stored.request?.id])
          expect(rows.filter((row) => row?.status === 'pending')).toEqual([])
          const events = await Promise.all(rows.map((row) => fixture.countEvents(row?.id ?? '')))
          const counted = events.reduce((sum, counts) => sum + (counts['session.verified'] ?? 0), 0)
          expect(counted).toBe(1)
          winners[stored.request?.id === first ? 'first' : 'other']++
        },
        finish() {
          expect(winners).toEqual({ first: expect.any(Number), other: expect.any(Number) })
          expect(Math.min(winners.first, winners.other)).toBeGreaterThan(0)
        },
      }
    },
  },
]
