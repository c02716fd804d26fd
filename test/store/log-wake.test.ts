import { expect, test } from 'bun:test'
import { createIds } from '../../src/domain/model/ids.ts'
import { createStore } from '../../src/store/store.ts'
import { testClock } from '../helpers/clock.ts'
import { describeEachDatabase, registerShortIds } from '../helpers/databases.ts'
import { testKeys } from '../helpers/keys.ts'

describeEachDatabase('a listener for log entries', (database) => {
  const newId = createIds(testClock(), (bytes) => crypto.getRandomValues(bytes))
  const createEntry = (developerId: string) => ({
    entry: {
      type: 'otp.sent' as const,
      developerId,
      appId: null,
      requestId: null,
      phone: null,
      status: 'pending',
      detail: null,
      at: 0,
    },
  })

  test('is called per developer, once the entries can be read', async () => {
    const notifications: Array<{ id: string; readable: Promise<number> }> = []
    const store = createStore(database(), {
      keys: testKeys,
      onEvent: (id) =>
        void notifications.push({
          id,
          readable: store.read.events.list(id, { limit: 9 }).then((rows) => rows.length),
        }),
    })
    const [ada, eve] = [newId('dev'), newId('dev')]
    await registerShortIds(database(), ada, eve)
    const write = (developerId: string) => store.write((tx) => tx.events.append([createEntry(developerId)]))
    await Promise.all([write(ada), write(eve)])
    expect(notifications.map(({ id }) => id).toSorted()).toEqual([ada, eve].toSorted())
    expect(await Promise.all(notifications.map(({ readable }) => readable))).toEqual([1, 1])
  })

  test('is not called for entries that were rolled back', async () => {
    const notifications: string[] = []
    const store = createStore(database(), { keys: testKeys, onEvent: (id) => void notifications.push(id) })
    const unknownDeveloper = newId('dev')
    await registerShortIds(database(), unknownDeveloper)
    const undone = store.write(async (tx) => {
      await tx.events.append([createEntry(unknownDeveloper)])
      throw new Error('undone')
    })
    expect(await undone.catch((error: unknown) => String(error))).toContain('undone')
    expect(notifications).toEqual([])
  })
})
