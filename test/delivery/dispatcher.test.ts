import { expect, test } from 'bun:test'
import type { DeliveryJob } from '../../src/domain/model/delivery.ts'
import type { OtpRequest } from '../../src/domain/model/request.ts'
import { createDeliveryService } from '../../src/delivery/delivery-service.ts'
import { createFailure } from '../../src/delivery/kit/failures.ts'
import { defineKind, type ProviderKind } from '../../src/delivery/kit/provider-kinds.ts'
import {
  accepted,
  refused,
  type ConnectionState,
  type Provider,
  type SendOutcome,
} from '../../src/delivery/kit/provider.ts'
import { testClock } from '../helpers/clock.ts'
import { createPendingRequest } from '../helpers/otp-request.ts'

/** A delivery service with one provider, `main`, whose `send` and `close` the test writes. */
async function createDispatchFixture(provider: Pick<Provider, 'send' | 'close' | 'listen'>) {
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
  messageNumber: 0,
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

test('a message after a restart probes a provider that failed before, and its success closes the circuit', async () => {
  let send = (): SendOutcome => refused(createFailure('provider_down', null))
  const { circuits, service, dispatch } = await createDispatchFixture({ send: async () => send() })
  service.resumeCircuit('main', 'provider_down')
  expect(service.listCircuits()).toEqual([{ name: 'main', isOpen: false }])
  await dispatch()
  expect(circuits).toEqual([])
  send = () => accepted('id')
  await dispatch()
  expect(circuits).toEqual(['closed'])
})

test('a connection that is made after the pause of its circuit closes the circuit', async () => {
  let tell = (_state: ConnectionState) => {}
  const { clock, circuits } = await createDispatchFixture({
    send: async () => accepted('id'),
    listen: (_onReceipt, onConnection) => void (tell = onConnection),
  })
  tell({ failure: createFailure('provider_down', null), retryMs: 1_000 })
  clock.advance(1_020)
  tell('connected')
  expect(circuits).toEqual(['open', 'closed'])
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

test('a payment goes to a provider that shows its amount and payee; others are recorded as refusing it', async () => {
  const shown: string[] = []
  const createKind = (
    kind: string,
    definition: Pick<ProviderKind, 'textByProvider'>,
    leavesOutText = false,
  ) =>
    defineKind({
      kind,
      title: kind,
      channels: ['sms', 'voice'],
      ...definition,
      fields: {},
      create: () => ({
        channels: ['sms', 'voice'],
        leavesOutText,
        async send({ text }) {
          shown.push(`${kind}: ${text}`)
          return accepted(null)
        },
      }),
    })
  const clock = testClock()
  const { delivery, configure } = createDeliveryService({
    clock,
    version: '0',
    kinds: [
      createKind('own-text', { textByProvider: ['sms'] }),
      createKind('code-only', {}, true),
      createKind('plain', {}),
    ],
    callbackUrl: () => null,
    report: () => {},
    onReceipt: () => {},
    onCircuitChange: () => {},
  })
  const configureAll = (...kinds: string[]) =>
    configure({ providers: kinds.map((kind) => ({ name: kind, kind, values: {} })), routes: [] })
  const text = '{code}: {amount} to {payee}'
  const variables = { amount: '9 EUR', payee: 'Ada {code}' }
  const payment = { name: 'payment', locale: 'en', text, variables }
  await configureAll('own-text', 'code-only', 'plain')
  const job = { ...createJob(clock.now(), { template: payment }), channels: ['voice', 'sms'] as const }
  const { tries, ...result } = await delivery.dispatch(job)
  expect(result).toMatchObject({ kind: 'accepted', candidate: { channel: 'sms', provider: 'plain' } })
  // Values are filled in once: a payee cannot bring in a placeholder.
  expect(shown.splice(0)).toEqual(['plain: 012345: 9 EUR to Ada {code}'])
  expect(tries.map(({ channel, provider, outcome, error }) => [channel, provider, outcome, error])).toEqual([
    ['voice', 'own-text', 'refused', 'content_blocked'],
    ['voice', 'code-only', 'refused', 'content_blocked'],
    ['voice', 'plain', 'refused', 'content_blocked'],
    ['sms', 'own-text', 'refused', 'content_blocked'],
    ['sms', 'code-only', 'refused', 'content_blocked'],
    ['sms', 'plain', 'accepted', null],
  ])
  await configureAll('own-text')
  expect(await delivery.dispatch(job)).toMatchObject({
    kind: 'refused',
    failure: { class: 'content_blocked' },
  })
  expect(shown).toEqual([])
  // Without variables, such a provider writes its own text, as for the built-in ones.
  const login = { name: 'login', locale: 'en', text: '{code} logs you in', variables: null }
  expect(await delivery.dispatch(createJob(clock.now(), { template: login }))).toMatchObject({
    kind: 'accepted',
  })
})
