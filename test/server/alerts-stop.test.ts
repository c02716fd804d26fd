import { expect, test } from 'bun:test'
import net from 'node:net'
import { queueTestAlerts } from '../../src/host/alerts.ts'
import { soleLeadership } from '../../src/domain/upkeep/leadership.ts'
import { startAlerts } from '../../src/server/alerts.ts'
import { soleNodeName } from '../../src/server/leadership.ts'
import { shutdown, type Cleanups } from '../../src/server/shutdown.ts'
import { systemWorld } from '../../src/world/system.ts'
import { load, requireConfig } from '../helpers/config.ts'
import { collectLog } from '../helpers/log.ts'
import { createTestService } from '../helpers/service.ts'

test.each(['webhook', 'email'])('a shutdown does not wait for a destination that hangs: %s', async (kind) => {
  const called = Promise.withResolvers<void>()
  const hanging = net.createServer(() => called.resolve()).listen(0, '127.0.0.1')
  const address = hanging.address()
  const port = typeof address === 'object' && address !== null ? String(address.port) : ''
  const service = await createTestService()
  const { store, clock, services } = service
  const values = {
    url: `http://127.0.0.1:${port}/`,
    to: 'a@example.com',
    from: 'b@example.com',
    host: '127.0.0.1',
    port,
    security: 'none',
  }
  const alerts = [{ name: 'hanging', kind, min: 'warning' as const, values }]
  const cleanups: Cleanups = []
  const { log } = collectLog()
  startAlerts(
    { ...requireConfig(load()), alerts },
    {
      store,
      services,
      storage: { dataDir: null, isShared: false, listNodes: async () => [] },
      node: { name: soleNodeName, isSole: true },
      leadership: soleLeadership,
      clock,
      wall: clock,
      version: '0.0.0',
      log,
      cleanups,
      world: systemWorld,
    },
  )
  await queueTestAlerts(store, ['hanging'], clock.now())
  await called.promise
  await shutdown(cleanups, log)
  // It did not wait for the time-out of the destination, and the next start sends it.
  expect(await store.read.alerts.listNotices()).toMatchObject([
    { attempts: 1, failure: 'the server stopped before the answer' },
  ])
  await service.dispose()
  hanging.close()
})
