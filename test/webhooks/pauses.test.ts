import { afterEach, expect, test } from 'bun:test'
import { createConnections } from '../../src/webhooks/connections.ts'
import type { Resolve } from '../../src/webhooks/resolve.ts'
import { createWebhookSender } from '../../src/webhooks/sender.ts'
import { createTargetGuard } from '../../src/webhooks/targets.ts'
import { startReceiver } from '../helpers/webhook-receiver.ts'

const exchangeTimeoutMs = 500
const timedOut = { statusCode: null, error: 'timeout' } as const

const cleanups: Array<() => unknown> = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
})

/** Stops the process for longer than an exchange may take, as a supervisor or a virtual machine does. */
const pause = () => Bun.sleepSync(exchangeTimeoutMs + 100)

async function createFixture() {
  const receiver = await startReceiver()
  cleanups.push(receiver.stop)
  const connections = createConnections()
  cleanups.push(connections.closeIdle)
  let onLookUp = () => {}
  const resolve: Resolve = async () => {
    onLookUp()
    return [{ address: '127.0.0.1', family: 4 }]
  }
  const sender = createWebhookSender({
    guard: createTargetGuard({ hosts: ['hooks.internal'], cidrs: ['127.0.0.0/8'] }),
    resolve,
    clock: { now: () => Date.now() },
    version: '0',
    connections,
    exchangeTimeoutMs,
  })
  const message = { id: 'evt_1', secret: `whsec_${'0'.repeat(48)}`, headers: {}, body: '{}' }
  return {
    receiver,
    send: () => sender({ ...message, url: `http://hooks.internal:${receiver.port}/` }),
    pauseInLookUp: () => (onLookUp = pause),
  }
}

test('a process that was paused while it looked up the address sends nothing, on no connection', async () => {
  const { receiver, send, pauseInLookUp } = await createFixture()
  expect(await send()).toMatchObject({ statusCode: 200 })
  pauseInLookUp()
  // On the kept-alive connection of before it could write at once.
  expect(await send()).toMatchObject(timedOut)
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(receiver.received).toHaveLength(1)
})

test('a process that was paused while it connected sends nothing', async () => {
  const { receiver, send } = await createFixture()
  const sent = send()
  // Until it connects, and not until it is connected.
  for (let i = 0; i < 20; i++) await Promise.resolve()
  pause()
  expect(await sent).toMatchObject(timedOut)
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(receiver.received).toEqual([])
})
