import { poll } from './http.ts'
import { listAt, textAt, valueAt, type Json } from './json.ts'

/** Waits until no webhook delivery of an enabled endpoint is due within a minute. */
export async function awaitQuiet(read: (path: string) => Promise<Json>): Promise<void> {
  await poll(
    async () => {
      const now = Date.parse(textAt(await read('/v1/health'), 'data', 'time'))
      const due: Json[] = []
      for (const endpoint of listAt(await read('/v1/webhooks'), 'data')) {
        if (valueAt(endpoint, 'status') === 'disabled') continue
        const path = `/v1/webhooks/${textAt(endpoint, 'id')}/deliveries?status=pending`
        due.push(...listAt(await read(path), 'data').filter((delivery) => isDue(delivery, now + 60_000)))
      }
      return due
    },
    (due) => due.length === 0,
    'no delivery is due',
    { timeoutMs: 60_000, everyMs: 1000 },
  )
}

function isDue(delivery: Json, by: number): boolean {
  const next = valueAt(delivery, 'nextAttemptAt')
  return typeof next !== 'string' || Date.parse(next) <= by
}
