import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { Store } from '../../src/domain/store/store.ts'
import { createWebhookWorkerFixture, waitUntil, type WebhookWorkerFixture } from './worker-fixture.ts'

let fixture: WebhookWorkerFixture
beforeEach(async () => void (fixture = await createWebhookWorkerFixture()))
afterEach(() => fixture.dispose())

test('a result that cannot be recorded leaves the event loop free: the next poll retries', async () => {
  let failures = 0
  let isBroken = false
  // As after a disk fault: each write is rejected at once.
  const write = ((body) => {
    if (!isBroken || failures > 1_000) return fixture.store.write(body)
    failures++
    return Promise.reject(new Error('the disk is broken'))
  }) as Store['write']
  const store = { ...fixture.store, write }
  let sent = 0
  const worker = fixture.makeWorker({
    store,
    send: async () => {
      sent++
      isBroken = true
      return { request: null, statusCode: 200, error: null, body: '', retryAfterMs: null, durationMs: 1 }
    },
  })
  const { id } = await fixture.createApplication()
  await fixture.createEndpoint(id, 'https://hooks.example/a')
  await fixture.record(id)
  await worker.start()
  await waitUntil(() => sent > 0 && failures > 0)
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
  expect(failures).toBeLessThan(20)
  expect(fixture.takeErrors().length).toBeGreaterThan(0)
  isBroken = false
})
