import { expect } from 'bun:test'
import type { SendWebhook } from '../../src/domain/model/webhook-delivery.ts'
import type { Clock } from '../../src/domain/model/clock.ts'
import type { Store } from '../../src/domain/store/store.ts'
import { createResolver } from '../../src/webhooks/resolve.ts'
import { createWebhookSender } from '../../src/webhooks/sender.ts'
import { createWebhookWorker, type WebhookWorker } from '../../src/webhooks/worker.ts'
import { openTestSqlite } from '../helpers/databases.ts'
import { startReceiver, type WebhookReceiver } from '../helpers/webhook-receiver.ts'
import { createWebhookFixture } from '../domain/webhooks/fixture.ts'

export type WorkerOptions = {
  pollMs?: number
  send?: SendWebhook
  ownsAllLeases?: boolean
  store?: Store
  random?: () => number
  clock?: Clock
  /** Leases deliveries when they are inserted, and gets them after the commit. */
  takesQueue?: boolean
}

export type WebhookWorkerFixture = Awaited<ReturnType<typeof createWebhookWorkerFixture>>

/** Real receivers, and workers that poll only when woken. Everything ends with `dispose`. */
export async function createWebhookWorkerFixture() {
  const opened = await openTestSqlite()
  let queueWorker: WebhookWorker | undefined
  const fixture = await createWebhookFixture(opened.database, {
    offerLease: (now, use) => queueWorker?.offerLease(now, use),
    push: (deliveries) => queueWorker?.push(deliveries),
  })
  const cleanups: Array<() => Promise<unknown>> = []
  const errors: unknown[] = []

  return {
    ...fixture,
    database: opened.database,

    async startTestReceiver(...receiverOptions: Parameters<typeof startReceiver>): Promise<WebhookReceiver> {
      const receiver = await startReceiver(...receiverOptions)
      cleanups.push(receiver.stop)
      return receiver
    },

    makeWorker({ takesQueue = false, ...options }: WorkerOptions = {}) {
      const { clock, guard, store } = fixture
      const worker = createWebhookWorker({
        store,
        clock,
        random: () => 0.5,
        send: createWebhookSender({ guard, resolve: createResolver(), clock, version: '0' }),
        ownsAllLeases: true,
        onError: (error) => void errors.push(error),
        pollMs: 3_600_000,
        ...options,
      })
      if (takesQueue) queueWorker = worker
      cleanups.push(() => worker.stop(0))
      return worker
    },

    /** Takes the unexpected errors of the workers; `dispose` fails for those that remain. */
    takeErrors: () => errors.splice(0),

    async dispose(): Promise<void> {
      for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
      await opened.dispose()
      expect(errors).toEqual([])
    },
  }
}

/** Waits, one turn of the event loop at a time, until the condition is true. */
export async function waitUntil(condition: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await condition())) await new Promise(setImmediate)
}
