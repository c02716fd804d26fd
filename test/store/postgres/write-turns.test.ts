import { describe, expect, test } from 'bun:test'
import { createWriteTurns } from '../../../src/store/postgres/write-turns.ts'
import type { CallGroup } from '../../../src/store/engine/database.ts'
import { openPatientPostgres } from '../../helpers/databases.ts'
import { createServerDatabase, testPostgresUrl } from '../../helpers/postgres.ts'

const calls: CallGroup<string> = {
  prepareAlone: () => {},
  load: async (loaded) => new Set(loaded),
  decide: (call) => call,
  hasChanges: () => true,
  write: async () => {},
  end: () => undefined,
}

describe.skipIf(testPostgresUrl === undefined)('writes on PostgreSQL', () => {
  test.each([9, 4])(
    'leave a connection of %i to groups of calls and to urgent writes',
    async (connections) => {
      const { url, drop } = await createServerDatabase(testPostgresUrl ?? '')
      const database = openPatientPostgres(url, { connections })
      const ended = Promise.withResolvers<void>()
      try {
        const runCall = database.group(() => calls)
        const order: string[] = []
        const note = (name: string) => order.push(name)
        const writes = Array.from({ length: 20 }, () =>
          database.write(() => ended.promise).then(() => note('write')),
        )
        note(await runCall<string>('call'))
        await database.write(async () => {}, { isUrgent: true }).then(() => note('urgent write'))
        ended.resolve()
        await Promise.all(writes)
        expect(order).toEqual(['call', 'urgent write', ...writes.map(() => 'write')])
      } finally {
        ended.resolve()
        await database.close()
        await drop({ force: true })
      }
    },
  )
})

describe('turns to write', () => {
  const hold = () => Promise.withResolvers<string>()

  test('come in the order of arrival, also after a failure', async () => {
    const takeTurn = createWriteTurns(1, 10_000)
    const [first, second] = [hold(), hold()]
    const begun: string[] = []
    const run = (name: string, { promise }: { promise: Promise<string> }) =>
      takeTurn(() => {
        begun.push(name)
        return promise
      })
    const outcomes = Promise.allSettled([
      run('first', first),
      run('second', second),
      run('third', { promise: Promise.resolve('third') }),
    ])
    expect(begun).toEqual(['first'])
    first.reject(new Error('failed'))
    await first.promise.catch(() => {})
    await Bun.sleep(0)
    expect(begun).toEqual(['first', 'second'])
    second.resolve('second')
    expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled'])
    expect(begun).toEqual(['first', 'second', 'third'])
  })

  test('are refused to a write that waits too long, and to no other', async () => {
    const takeTurn = createWriteTurns(1, 20)
    const held = hold()
    const first = takeTurn(() => held.promise)
    const late = await takeTurn(async () => 'late').catch((error: unknown) => error)
    expect(late).toMatchObject({ code: 'POSTGRES_CONNECTIONS_IN_USE' })
    held.resolve('first')
    expect(await first).toBe('first')
    expect(await takeTurn(async () => 'next')).toBe('next')
  })
})
