import { expect, test } from 'bun:test'
import { createGroups } from '../../../src/store/postgres/groups.ts'
import type { CallGroup, QueryExecutor } from '../../../src/store/engine/database.ts'

const tx = {} as QueryExecutor
const waitMaxMs = 40

/** Calls that return themselves, and groups that end when the test says so. */
function openGroups() {
  const ends: Array<() => void> = []
  const calls: CallGroup<string> = {
    prepareAlone: () => {},
    load: async (calls) => new Set(calls),
    decide: (call) => call,
    hasChanges: () => true,
    write: async () => {},
    end: () => undefined,
  }
  const run = createGroups(
    async (body) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      ends.push(resolve)
      await promise
      return body(tx)
    },
    1,
    (error) => error,
    waitMaxMs,
  )(() => calls)
  return { run, ends }
}

const nextTurn = () => new Promise((resolve) => void setImmediate(resolve))

test('a call that waits too long for the group before it is refused; those that came later wait on', async () => {
  const { run, ends } = openGroups()
  const first = run<string>('first')
  await nextTurn()
  const early = run('early').catch((error: unknown) => error)
  await Bun.sleep(waitMaxMs / 2)
  const late = run<string>('late')
  expect(await early).toMatchObject({ code: 'UNAVAILABLE', retryAfterSeconds: 1 })
  ends.shift()?.()
  expect(await first).toBe('first')
  while (ends.length === 0) await nextTurn()
  ends.shift()?.()
  expect(await late).toBe('late')
})
