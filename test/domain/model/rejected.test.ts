import { expect, test } from 'bun:test'
import { notFound } from '../../../src/domain/model/errors.ts'
import { isRejected, reject, unwrap } from '../../../src/domain/model/rejected.ts'
import { createStore } from '../../../src/store/store.ts'
import { describeEachDatabase } from '../../helpers/databases.ts'
import { testKeys } from '../../helpers/keys.ts'

const limit = ['subject', 'test'] as const
const admission = { at: 1, seq: 1 }

describeEachDatabase('a refusal of a transaction', (database) => {
  test('that is returned commits what was written', async () => {
    const store = createStore(database(), { keys: testKeys })
    const result = await store.write(async (tx) => {
      await tx.rateLimits.insert(...limit, admission)
      return reject(notFound())
    })
    expect(await store.read.rateLimits.newest(...limit)).toEqual(admission)
    expect(() => unwrap<string>(result)).toThrow(notFound().message)
  })

  test('that is thrown rolls back what was written', async () => {
    const store = createStore(database(), { keys: testKeys })
    const result = store.write(async (tx) => {
      await tx.rateLimits.insert('thrown', 'test', admission)
      throw notFound()
    })
    await expect(result).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect(await store.read.rateLimits.newest('thrown', 'test')).toBeUndefined()
  })
})

test('nothing else is mistaken for a rejection', () => {
  expect(isRejected(reject(notFound()))).toBe(true)
  for (const value of [undefined, null, 'rejected', notFound(), { rejected: true }, {}]) {
    expect(isRejected<unknown>(value)).toBe(false)
    expect(unwrap<unknown>(value)).toBe(value)
  }
})
