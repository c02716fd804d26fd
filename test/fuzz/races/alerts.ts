import { expect } from 'bun:test'
import type { AlertCause } from '../../../src/domain/model/alert.ts'
import { createNoticeSender } from '../../../src/domain/upkeep/alert-notices.ts'
import { recordObservation } from '../../../src/domain/upkeep/alerts.ts'
import { dayMs, minuteMs } from '../../../src/shared/durations.ts'
import { openRaceFixture } from './fixture.ts'
import { concurrentCalls, runConcurrently, type Race } from './race.ts'

export const alertRaces: Race[] = [
  {
    name: `${concurrentCalls} nodes that see the same fault begin, get worse and end send each notice once`,
    async open(database) {
      const { service, close } = await openRaceFixture(database)
      const { store } = service
      return {
        close,
        async round(round, random) {
          let now = service.clock.now() + round * 10 * dayMs
          const cause: AlertCause = {
            kind: 'disk',
            subject: `round ${round}`,
            severity: 'warning',
            message: 'low',
            remedy: '',
          }
          const sent: string[] = []
          const { sendDue } = createNoticeSender({
            store,
            now: () => now,
            destinations: () => ['mail'],
            async send({ event, severity }) {
              sent.push(`${event} ${severity}`)
              return { failure: null }
            },
            onFailed() {},
            onDropped() {},
          })
          const destinations = [{ name: 'mail', min: 'warning' }] as const
          const observe = (causes: AlertCause[]) =>
            runConcurrently(concurrentCalls, random, async (index) => {
              const observation = { source: 'installation', kinds: ['disk'] as const, causes }
              await recordObservation(store, observation, destinations, now + index)
              await sendDue()
            })
          await observe([cause])
          now += minuteMs
          await observe([{ ...cause, severity: 'critical' }])
          now += dayMs + minuteMs
          await observe([{ ...cause, severity: 'critical' }])
          for (let step = 0; step < 2; step++) {
            now += 6 * minuteMs
            await observe([])
          }
          now += minuteMs
          await sendDue()
          expect(sent).toEqual([
            'firing warning',
            'firing critical',
            'reminder critical',
            'resolved critical',
          ])
        },
      }
    },
  },
]
