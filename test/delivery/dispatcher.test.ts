import { expect, test } from 'bun:test'
import type { DeliveryJob } from '../../src/domain/model/delivery.ts'
import type { OtpRequest } from '../../src/domain/model/request.ts'
import { createDeliveryService } from '../../src/delivery/delivery-service.ts'
import { createFailure } from '../../src/delivery/kit/failures.ts'
import { defineKind } from '../../src/delivery/kit/provider-kinds.ts'
import { accepted, refused, type Provider, type SendOutcome } from '../../src/delivery/kit/provider.ts'
import { testClock } from '../helpers/clock.ts'
import { createPendingRequest } from '../helpers/otp-request.ts'

/** A delivery service with one provider, `main`, whose `send` and `close` the test writes. */
async function createDispatchFixture(provider: Pick<Provider, 'send' | 'close'>) {
  const clock = testClock()
  const circuits: string[] = []
  const fakeKind = defineKind({
    kind: 'fake',
    title: 'Fake',
    channels: ['sms'],
    fields: {},
    create: () => ({ channels: ['sms'], ...provider }),
  })
  const service = createDeliveryService({
    clock,
    version: '0',
    kinds: [fakeKind],
    callbackUrl: () => null,
    report: () => {},
    onReceipt: () => {},
    onCircuitChange: (_, openState) => void circuits.push(openState ? 'open' : 'closed'),
  })
  await service.configure({ providers: [{ name: 'main', kind: 'fake', values: {} }], routes: [] })
  const job = createJob(clock.now())
  return { clock, circuits, service, dispatch: () => service.delivery.dispatch(job) }
}

const createJob = (now: number, changes: Partial<OtpRequest> = {}): DeliveryJob => ({
  request: createPendingRequest(now, changes),
  code: '012345',
  application: { name: 'Acme', defaultLocale: null, webOtpDomain: null, androidAppHash: null },
  channels: ['sms'],
  attempt: 1,
  excluded: [],
})

test('a probe whose send throws synchronously is uncertain, and the circuit recovers', async () => {
  let send = (): SendOutcome => refused(createFailure('provider_down', null))
  const { clock, circuits, service, dispatch } = await createDispatchFixture({
    // Not async, so that an error is thrown instead of rejecting the promise.
    send: () => Promise.resolve(send()),
  })
  for (let count = 0; count < 5; count++) await dispatch()
  expect(circuits).toEqual(['open'])
  expect(service.listCircuits()).toEqual([{ name: 'main', isOpen: true }])

  clock.advance(5_000)
  send = () => {
    throw new Error('a bug in the provider')
  }
  expect(await dispatch()).toMatchObject({ kind: 'uncertain', failure: { providerCode: 'FAULT' } })

  clock.advance(10_000)
  send = () => accepted('id')
  expect(await dispatch()).toMatchObject({ kind: 'accepted', messageId: 'id' })
  expect(circuits).toEqual(['open', 'open', 'closed'])
  expect(service.listCircuits()).toEqual([{ name: 'main', isOpen: false }])
})

test('a removed provider that fails to close does not change the outcome of its last message', async () => {
  const { promise, resolve } = Promise.withResolvers<SendOutcome>()
  const { service, dispatch } = await createDispatchFixture({
    send: () => promise,
    close: () => Promise.reject(new Error('the connection is already closed')),
  })
  const dispatching = dispatch()
  await service.configure({ providers: [], routes: [] })
  resolve(accepted('id'))
  expect(await dispatching).toMatchObject({ kind: 'accepted', messageId: 'id' })
})

test('a process that was paused while a provider refused a message offers it to no other', async () => {
  const offered: string[] = []
  const clock = testClock()
  const kind = defineKind({
    kind: 'fake',
    title: 'Fake',
    channels: ['sms'],
    fields: { name: { description: 'its name', required: true } },
    create: ({ name }) => ({
      channels: ['sms'],
      async send() {
        offered.push(name)
        clock.advance(pausedMs)
        return refused(createFailure('provider_down', null))
      },
    }),
  })
  let pausedMs = 7_999
  const { delivery, configure } = createDeliveryService({
    clock,
    version: '0',
    kinds: [kind],
    callbackUrl: () => null,
    report: () => {},
    onReceipt: () => {},
    onCircuitChange: () => {},
  })
  const providers = ['main', 'spare'].map((name) => ({ name, kind: 'fake', values: { name } }))
  await configure({ providers, routes: [] })
  const job = createJob(clock.now())
  await delivery.dispatch(job)
  expect(offered.splice(0)).toEqual(['main', 'spare'])
  pausedMs = 8_000
  expect(await delivery.dispatch(job)).toMatchObject({ kind: 'deferred' })
  expect(offered).toEqual(['main'])
})

test('a developer whose messages hang at a provider leaves half of its places to others', async () => {
  const answers: ((outcome: SendOutcome) => void)[] = []
  const { clock, service } = await createDispatchFixture({
    send: () => new Promise((resolve) => answers.push(resolve)),
  })
  const { dispatch } = service.delivery
  const sendAs = (developerId: string) => dispatch(createJob(clock.now(), { developerId }))
  const hanging = Array.from({ length: 200 }, () => sendAs('dev_flood'))
  // Retried after a second.
  expect(await sendAs('dev_flood')).toMatchObject({ kind: 'deferred', waitMs: 1_000, tries: [] })
  const others = ['dev_a', 'dev_b', 'dev_c'].map(sendAs)
  expect(answers).toHaveLength(203)
  for (const answer of answers.toReversed()) answer(accepted('id'))
  for (const { kind } of await Promise.all([...hanging, ...others])) expect(kind).toBe('accepted')
  expect(await Promise.all([sendAs('dev_flood'), answers.at(-1)?.(accepted('id'))])).toMatchObject([
    { kind: 'accepted' },
    undefined,
  ])
})
