import { expect, test } from 'bun:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { createOtpClient, guardOffEnv } from '../../helpers/otp-client.ts'
import { unlimitedPlans } from '../../helpers/plans.ts'
import { createTestService } from '../../helpers/service.ts'

describeEachDatabase('the list of expired requests', (database) => {
  test('has each of them also while they are closed', async () => {
    const service = await createTestService({ database: database(), plans: unlimitedPlans, env: guardOffEnv })
    const otp = createOtpClient(service)
    const owner = await service.createDeveloper()
    const application = await service.createApplication(owner)
    const count = 24
    const sends = Array.from({ length: count }, (_, index) =>
      otp.sendOrThrow(application, { phone: `+1415555${1000 + index}` }),
    )
    await Promise.all(sends)
    service.clock.advance(301_000)
    const { otp: requests } = service.services
    const state = { isClosing: true }
    const closing = requests.expireRequests(4).then(() => (state.isClosing = false))
    const counts = new Set<number>()
    while (state.isClosing) {
      const listed = await requests.list(owner.developer, { status: 'expired' }, { limit: 100 })
      counts.add(listed.items.length)
      await nextTurn()
    }
    await closing
    expect([...counts]).toEqual([count])
    await service.dispose()
  }, 120_000)
})
