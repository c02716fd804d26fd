import { expect, test } from 'bun:test'
import { notFound } from '../../../src/domain/model/errors.ts'
import { isRejected, reject, unwrap } from '../../../src/domain/model/rejected.ts'
import type { Store } from '../../../src/domain/store/store.ts'
import { createStore } from '../../../src/store/store.ts'
import { describeEachDatabase, registerShortIds } from '../../helpers/databases.ts'
import { testKeys } from '../../helpers/keys.ts'

const admission = { at: 1, seq: 1 }
const newAdmission = { policy: 'otp-send', ...admission, replacesLater: false, expiredUntil: 0 } as const

describeEachDatabase('a refusal of a transaction', (database) => {
  const findAdmission = async (store: Store, subject: string) =>
    (await store.read.rateLimits.usage({ subject, policy: 'otp-send', limit: 1, windowMs: 10 }, 1)).newest

  test('that is returned commits what was written', async () => {
    const store = createStore(database(), { keys: testKeys })
    await registerShortIds(database(), 'returned')
    const result = await store.write(async (tx) => {
      tx.rateLimits.insert([{ subject: 'returned', ...newAdmission }])
      return reject(notFound('project'))
    })
    expect(await findAdmission(store, 'returned')).toEqual(admission)
    expect(() => unwrap<string>(result)).toThrow(notFound('project').message)
  })

  test('that is thrown rolls back what was written', async () => {
    const store = createStore(database(), { keys: testKeys })
    await registerShortIds(database(), 'thrown')
    const result = store.write(async (tx) => {
      tx.rateLimits.insert([{ subject: 'thrown', ...newAdmission }])
      throw notFound('project')
    })
    await expect(result).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect(await findAdmission(store, 'thrown')).toBeUndefined()
  })
})

test('nothing else is mistaken for a rejection', () => {
  expect(isRejected(reject(notFound('project')))).toBe(true)
  for (const value of [undefined, null, 'rejected', notFound('project'), { rejected: true }, {}]) {
    expect(isRejected<unknown>(value)).toBe(false)
    expect(unwrap<unknown>(value)).toBe(value)
  }
})
