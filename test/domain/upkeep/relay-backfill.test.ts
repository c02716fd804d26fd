import { noCost } from '../../../src/domain/model/price.ts'
import { expect, test } from 'bun:test'
import { createIds } from '../../../src/domain/model/ids.ts'
import { createRelayBackfill } from '../../../src/domain/upkeep/guard-backfills.ts'
import { dayMs, hourMs } from '../../../src/shared/durations.ts'
import { createStore } from '../../../src/store/store.ts'
import { testClock } from '../../helpers/clock.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { createGuardFixture, guardOff } from '../../helpers/guard.ts'
import { testKeys } from '../../helpers/keys.ts'

const messages = 240
const limits = { NL: 3 * messages, DE: 300 }

describeEachDatabase('the upgrade of a database without counts of relayed messages', (database) => {
  test.each([1, 13, 23])(
    'lets a country take three times its last day, %p hours after it',
    async (hours) => {
      const clock = testClock()
      clock.advance(hours * 30 * dayMs)
      const store = createStore(database(), { keys: testKeys, clock })
      const newId = createIds(clock, (bytes) => crypto.getRandomValues(bytes))
      const developerId = newId('dev')
      for (let n = 0; n < messages; n++) {
        clock.advance(dayMs / messages)
        await store.write((tx) =>
          tx.relayedMessages.insert({
            id: newId('msg'),
            developerId,
            projectId: 'prj_1',
            appId: 'app_1',
            environment: 'live',
            phone: `+3161${1_000_000 + n}`,
            country: 'NL',
            clientIp: null,
            channel: 'sms',
            provider: 'main',
            messageId: null,
            status: 'sent',
            outcome: null,
            ...noCost,
            createdAt: clock.now(),
          }),
        )
      }
      const backfill = createRelayBackfill({ clock })
      for (let position: string | undefined = ''; position !== undefined;) {
        const from: string = position
        position = await store.write((tx) => backfill.step(tx, from, 100))
      }
      clock.advance(hours * hourMs)
      const { evaluate, createRequest } = createGuardFixture(store, guardOff, clock)
      for (const country of ['NL', 'DE'] as const) {
        const requests = Array.from({ length: 800 }, () =>
          evaluate(createRequest({ developerId, country, isRelayed: true })),
        )
        const passed = (await Promise.all(requests)).filter(({ blocked }) => !blocked)
        expect([country, passed.length]).toEqual([country, limits[country]])
      }
    },
    60_000,
  )
})
