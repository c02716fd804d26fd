import { expect, test } from 'bun:test'
import { createResultRecorder, type CompletedSend } from '../../src/webhooks/result-recorder.ts'

type Needs = Parameters<typeof createResultRecorder>[0]
type Write = Needs['store']['write']

/** Records that many results, which are released, and returns how many each transaction had. */
async function record(count: number, isBroken = false) {
  const released: string[] = []
  const transactions: Array<{ results: number; isUrgent: boolean | undefined }> = []
  const tx = {
    leases: { now: async () => 0 },
    webhookOutbox: { release: async ({ id }: { id: string }) => void released.push(id) },
  }
  const store = {
    async write(body: (stores: typeof tx) => Promise<unknown>, options?: { isUrgent?: boolean }) {
      if (isBroken) throw new Error('broken')
      const before = released.length
      const result = await body(tx)
      transactions.push({ results: released.length - before, isUrgent: options?.isUrgent })
      return result
    },
  } as unknown as Needs['store'] & { write: Write }
  const recorder = createResultRecorder({ store, owner: 'node', onError: () => {} })
  for (let index = 0; index < count; index++) {
    const claim = { id: `dlv_${index}`, endpointId: 'whk_1' } as CompletedSend['claim']
    recorder.add({ claim, retryAfterMs: null })
  }
  await recorder.record()
  const broken = isBroken
  isBroken = false
  if (broken) await recorder.record()
  return { released: released.length, transactions }
}

test('a few results are recorded in one urgent transaction', async () => {
  const { transactions } = await record(10)
  expect(transactions).toEqual([{ results: 10, isUrgent: true }])
})

test('many are recorded in short transactions, which take turns with others', async () => {
  const { released, transactions } = await record(25)
  expect(released).toBe(25)
  expect(transactions.length).toBe(3)
  expect(transactions.map(({ isUrgent }) => isUrgent)).toEqual([false, false, false])
})

test('after a failure they are recorded one by one', async () => {
  const { released, transactions } = await record(12, true)
  expect(released).toBe(12)
  expect(transactions.length).toBe(12)
  expect(transactions.every(({ isUrgent }) => isUrgent === false)).toBe(true)
})
