import { expect, test } from 'bun:test'
import { addSent, addUnverified, settle } from '../../../src/domain/guard/counts.ts'
import { pendingMs } from '../../../src/domain/model/guard.ts'

const first = addUnverified(undefined, pendingMs)

test('the first message of a day starts its counts', () => {
  expect(first).toEqual({
    unverified: 1,
    verified: 0,
    slot: 1,
    pending: 1,
    pendingBefore: 0,
    firstAt: pendingMs,
  })
})

test('counts know how many messages are minutes old', () => {
  const second = addUnverified(first, pendingMs + 1)
  expect(second).toMatchObject({ unverified: 2, slot: 1, pending: 2, pendingBefore: 0, firstAt: pendingMs })
  const next = addUnverified(second, 2 * pendingMs)
  expect(next).toMatchObject({ unverified: 3, slot: 2, pending: 1, pendingBefore: 2 })
  expect(addUnverified(next, 4 * pendingMs)).toMatchObject({ slot: 4, pending: 1, pendingBefore: 0 })
  // The clock was set back.
  expect(addUnverified(next, pendingMs)).toMatchObject({ slot: 1, pending: 1, pendingBefore: 0 })
})

test('messages that are settled leave the slot in which they were counted', () => {
  const counts = { unverified: 6, verified: 0, slot: 2, pending: 2, pendingBefore: 3, firstAt: 5 }
  const one = { messages: 1, verified: 1 }
  expect(settle(counts, 2 * pendingMs, one)).toEqual({ ...counts, unverified: 5, verified: 1, pending: 1 })
  expect(settle(counts, pendingMs, one)).toEqual({ ...counts, unverified: 5, verified: 1, pendingBefore: 2 })
  expect(settle(counts, 0, one)).toEqual({ ...counts, unverified: 5, verified: 1 })
})

test('counts never become negative', () => {
  expect(settle(first, pendingMs, { messages: 9, verified: 0 })).toMatchObject({ unverified: 0, pending: 0 })
})

test('messages of the installation are counted from 0 on', () => {
  expect(addSent(0).unverified).toBe(1)
  expect(addSent(7).unverified).toBe(8)
})
