import { setBackMinMs } from './deadlines.ts'
import { idempotencyLifetimeMs } from './idempotency.ts'
import { inboxLifetimeMs } from './inbox.ts'
import { messageLifetimeMs } from './otp-deliveries.ts'
import type { Clock } from './ports.ts'
import type { Store, Stores } from './store.ts'
import { deliveryLifetimeMs } from './webhook-deliveries.ts'

/** The longest window of any rate limit. */
const admissionLifetimeMs = 24 * 60 * 60 * 1000

export type Housekeeping = ReturnType<typeof createHousekeeping>

/** Keeps what serves only for a time from growing for ever. */
export function createHousekeeping({ store, clock }: { store: Store; clock: Clock }) {
  return {
    /**
     * To be called before the first call is served. Whatever is recorded happened before now: a system clock that was
     * set back over a restart must neither free a rate limit early nor hold it for longer than its window, and codes,
     * locks, retries and sessions end as much earlier as the clock was set back. One that was set forward looks like a
     * server that did not run for so long.
     *
     * @returns how far back the clock was set at least, in milliseconds; 0 where it was not
     */
    start: (): Promise<number> =>
      store.write(async (tx) => {
        const now = clock.now()
        const setBackMs = ((await tx.deadlines.newestSetAt()) ?? now) - now
        await tx.rateLimits.pullBack(now)
        if (setBackMs < setBackMinMs) return 0
        await tx.deadlines.moveBack(setBackMs, now)
        return setBackMs
      }),

    /**
     * Removes what has outlived its use. In chunks, each a transaction of its own, so that no call waits for long;
     * may run at any time.
     */
    async purge(chunk = 500): Promise<void> {
      const now = clock.now()
      const tasks: Array<(tx: Stores) => Promise<boolean>> = [
        (tx) => tx.inbox.deleteOldest(now - inboxLifetimeMs, chunk),
        (tx) => tx.idempotency.deleteOldest(now - idempotencyLifetimeMs, chunk),
        (tx) => tx.rateLimits.deleteOldest(now - admissionLifetimeMs, chunk),
        (tx) => tx.otpDeliveries.deleteOldest(now - messageLifetimeMs, chunk),
        (tx) => tx.guard.deleteOldest(now, chunk),
        (tx) => tx.webhookDeliveries.deleteOldest(now - deliveryLifetimeMs, chunk),
      ]
      for (const task of tasks) {
        while (await store.write(task));
      }
    },
  }
}
