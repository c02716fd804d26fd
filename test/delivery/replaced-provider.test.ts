import { expect, test } from 'bun:test'
import { describeEachDatabase } from '../helpers/databases.ts'
import { unlimitedPlans } from '../helpers/plans.ts'
import { createTestService } from '../helpers/service.ts'
import { createTwilioSettings, startGateway } from './gateway.ts'

const until = async (isTrue: () => Promise<boolean>) => {
  while (!(await isTrue())) await Bun.sleep(2)
}

describeEachDatabase('new settings', (database) => {
  test('close the circuit of a provider that they replace or remove', async () => {
    const main = startGateway()
    const spare = startGateway()
    const spareSettings = createTwilioSettings('spare', spare.url)
    const service = await createTestService({
      database: database(),
      plans: unlimitedPlans,
      delivery: { providers: [createTwilioSettings('main', main.url), spareSettings], routes: [] },
    })
    try {
      const application = await service.createApplication(await service.createDeveloper())
      const { messaging } = service.services
      const { read } = service.store
      const sendFive = async () => {
        const body = { phone: '+31612345678' }
        for (let count = 0; count < 5; count++)
          await service.request('POST', '/v1/otp/send', { as: application, body })
      }
      const untilCircuits = (count: number) =>
        until(async () => (await read.providerCircuits.list()).length === count)
      const listActions = async (limit: number) =>
        (await read.audit.list(undefined, { limit })).map(({ action }) => action)

      main.refuseAll(500, 0)
      await sendFive()
      await untilCircuits(1)
      const replaced = createTwilioSettings('main', `${main.url}/`)
      await messaging.reload({ providers: [replaced, spareSettings], routes: [] })
      await untilCircuits(0)
      expect(await listActions(2)).toEqual(['provider.circuit_closed', 'provider.circuit_opened'])
      // The circuit of the new one opens, and is recorded, by itself.
      await sendFive()
      await untilCircuits(1)
      expect(await listActions(1)).toEqual(['provider.circuit_opened'])
      await messaging.reload({ providers: [spareSettings], routes: [] })
      await untilCircuits(0)
    } finally {
      await service.dispose()
      await Promise.all([main.stop(), spare.stop()])
    }
  })
})
