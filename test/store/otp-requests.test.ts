import { beforeAll, expect, test } from 'bun:test'
import type { OtpRequest } from '../../src/domain/model/request.ts'
import type { Store, Stores } from '../../src/domain/store/store.ts'
import { createStore } from '../../src/store/store.ts'
import { describeEachDatabase, registerShortIds } from '../helpers/databases.ts'
import { createPendingRequest } from '../helpers/otp-request.ts'
import { testKeys } from '../helpers/keys.ts'

const start = 1_800_000_000_000

// Each statement must be safe by itself, without the lock that its callers also hold.
describeEachDatabase('with 40 concurrent callers, a guarded statement on a request', (database) => {
  let store: Store
  beforeAll(async () => {
    store = createStore(database(), { keys: testKeys })
    await registerShortIds(database(), 'dev', 'prj', 'app')
  })
  let ids = 0

  async function insert(overrides: Partial<OtpRequest> = {}): Promise<string> {
    const id = `otp_${ids++}`
    const request = createPendingRequest(start, { id, ...overrides })
    await store.write((tx) => tx.otpRequests.insert(request))
    return id
  }

  /** Counts the statements that changed the row. */
  async function countChanges(statement: (tx: Stores, index: number) => Promise<unknown>): Promise<number> {
    const racingWrites = Array.from({ length: 40 }, (_, index) => store.write((tx) => statement(tx, index)))
    return (await Promise.all(racingWrites)).filter((result) => result !== undefined).length
  }

  test('counts at most five attempts', async () => {
    for (let round = 0; round < 10; round++) {
      const id = await insert()
      expect(await countChanges((tx) => tx.otpRequests.countAttempt(id, false, start))).toBe(5)
      expect((await store.read.otpRequests.find(id))?.attempts).toBe(5)
    }
  })

  test('closes it once, whatever the final states', async () => {
    const terminalStatuses = ['expired', 'canceled'] as const
    for (let round = 0; round < 10; round++) {
      const id = await insert()
      const ended = await countChanges((tx, index) => {
        const status = terminalStatuses[index % 3]
        return status
          ? tx.otpRequests.close(id, { status }, start + index)
          : tx.otpRequests.countAttempt(id, true, start + index)
      })
      expect(ended).toBe(1)
    }
  })

  test('verifies it with the right code within five attempts, before or after wrong ones', async () => {
    for (let round = 0; round < 10; round++) {
      const id = await insert()
      const right = round % 7
      for (let i = 0; i < 7; i++) {
        await store.write((tx) => tx.otpRequests.countAttempt(id, i === right, start + i))
      }
      const after = await store.read.otpRequests.find(id)
      const verified = { status: 'verified', attempts: right + 1, verifiedAt: start + right }
      expect(after).toMatchObject(right < 5 ? verified : { status: 'pending', attempts: 5, verifiedAt: null })
    }
  })

  test('counts no attempts on a closed or expired request', async () => {
    const [ended, expired] = [await insert(), await insert({ expiresAt: start })]
    await store.write((tx) => tx.otpRequests.close(ended, { status: 'canceled' }, start))
    for (const id of [ended, expired]) {
      expect(await countChanges((tx, index) => tx.otpRequests.countAttempt(id, index % 2 === 0, start))).toBe(
        0,
      )
    }
  })
})
