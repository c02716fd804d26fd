import { beforeAll, beforeEach, expect, test } from 'bun:test'
import { createEventWatch } from '../../../src/domain/log/event-watch.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { createOtpClient, unlimitedPlans, type OtpClient } from '../../helpers/otp-client.ts'
import {
  createTestService,
  type TestApplication,
  type TestDeveloper,
  type TestService,
} from '../../helpers/service.ts'

describeEachDatabase('the watch for entries of other nodes', (database) => {
  let service: TestService
  let otp: OtpClient
  let ada: TestDeveloper
  let bob: TestDeveloper
  let adas: TestApplication
  let bobs: TestApplication
  let phones = 0
  /** Notifications of the watch, in order. */
  let told: unknown[]
  let isNeeded: boolean
  let fault: Error | undefined

  beforeAll(async () => {
    service = await createTestService({ database: database(), plans: unlimitedPlans })
    otp = createOtpClient(service)
    ada = await service.createDeveloper()
    bob = await service.createDeveloper()
    adas = await service.createApplication(ada)
    bobs = await service.createApplication(bob)
  })
  beforeEach(() => {
    told = []
    isNeeded = true
    fault = undefined
  })
  const send = (as: TestApplication) => otp.sendOrThrow(as, { phone: `+1415555${1000 + phones++}` })
  const createWatch = () =>
    createEventWatch({
      store: service.store,
      isNeeded: () => isNeeded,
      async onEntries(developerIds) {
        if (fault) throw fault
        told.push(developerIds?.toSorted())
      },
    })
  const ids = (...developers: TestDeveloper[]) => developers.map(({ developer }) => developer.id).toSorted()

  test('notifies once, with the developers that have new entries', async () => {
    const look = createWatch()
    await look()
    // Entries from before the first look are not known: any developer may have some.
    expect(told.splice(0)).toEqual([undefined])
    await look()
    expect(told).toEqual([])
    await send(adas)
    await look()
    await look()
    expect(told.splice(0)).toEqual([ids(ada)])
    await send(bobs)
    await send(adas)
    await send(bobs)
    await look()
    expect(told).toEqual([ids(ada, bob)])
  })

  test('notifies again after a failure', async () => {
    const look = createWatch()
    await look()
    told = []
    await send(adas)
    fault = new Error('a bug')
    expect(look()).rejects.toThrow('a bug')
    fault = undefined
    await send(bobs)
    await look()
    expect(told).toEqual([ids(ada, bob)])
  })

  test('reads nothing while there is no stream, and notifies all of them afterwards', async () => {
    const look = createWatch()
    await look()
    isNeeded = false
    await send(adas)
    await look()
    expect(told.splice(0)).toEqual([undefined])
    isNeeded = true
    await look()
    expect(told).toEqual([undefined])
  })
})
