import { expect, test } from 'bun:test'
import { toCallerError } from '../../../src/store/engine/errors.ts'
import { createGroups } from '../../../src/store/postgres/groups.ts'
import type { CallGroup, QueryExecutor } from '../../../src/store/engine/database.ts'

const tx = {} as QueryExecutor
const waitMaxMs = 40

/** Calls that return themselves, and groups that end when the test says so. */
function openGroups() {
  const ends: Array<(failure?: Error) => void> = []
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
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      ends.push((failure) => (failure ? reject(failure) : resolve()))
      await promise
      return body(tx)
    },
    1,
    toCallerError,
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

test('a group that fails after a long outage ends those that wait for it; one that lost its connection does not', async () => {
  const { run, ends } = openGroups()
  const lost = Object.assign(new Error('the connection was lost'), { code: 'POSTGRES_CONNECTION_LOST' })
  const refused = { code: 'UNAVAILABLE' }

  const slow = run('slow').catch((error: unknown) => error)
  await Bun.sleep(waitMaxMs)
  const behind = run('behind').catch((error: unknown) => error)
  ends.shift()?.(lost)
  expect(await Promise.all([slow, behind])).toMatchObject([refused, refused])

  const fast = run('fast').catch((error: unknown) => error)
  await nextTurn()
  const next = run('next')
  ends.shift()?.(lost)
  expect(await fast).toMatchObject(refused)
  while (ends.length === 0) await nextTurn()
  ends.shift()?.()
  expect(await next).toBe('next')
})
