import { Database as SqliteConnection } from 'bun:sqlite'
import { expect } from 'bun:test'
import * as fc from 'fast-check'
import type { PresentedCredentials } from '../../../src/domain/apps/authentication.ts'
import { hashCredential, previewCredential } from '../../../src/domain/apps/credentials.ts'
import type { CallingApplication } from '../../../src/domain/model/application.ts'
import { deriveCode, type CodeSource } from '../../../src/domain/model/code.ts'
import type { DispatchResult } from '../../../src/domain/model/delivery.ts'
import type { MessageClaim } from '../../../src/domain/model/message.ts'
import { cancelRequests } from '../../../src/domain/otp/lifecycle.ts'
import type { Store } from '../../../src/domain/store/store.ts'
import { testKeys } from '../../helpers/keys.ts'
import * as operations from '../../helpers/otp-operations.ts'
import { unlimitedPlan } from '../../helpers/plans.ts'
import { createTestService } from '../../helpers/service.ts'
import { createContent } from './bodies.ts'

/** A call or, from `cancel in a body` on, an ordinary transaction. `target` counts back from the newest request. */
export type OtpCall =
  | {
      kind: 'send'
      app: number
      phone: string
      clientIp: string | null
      key: number | null
      fails: Fails
      payment: Payment | null
    }
  | { kind: 'resend' | 'cancel' | 'revert'; app: number; target: number }
  | {
      kind: 'verify'
      app: number
      target: number
      distance: number
      repeats: 'the payment' | 'another' | 'none'
    }
  | { kind: 'attempt'; target: number; message: number; result: DispatchResult; key: number | null }
  | { kind: 'receipt'; target: number; status: 'sent' | 'delivered' | 'undelivered' }
  | { kind: 'cancel in a body'; app: number; target: number }
  | { kind: 'disable' | 'enable' | 'rotate' | 'unlock' | 'fail in a body' | 'stall'; app: number }

/** Differ in one value, or have the characters of another one in the other. */
const payments = [
  { amount: '9.99 EUR', payee: 'Ada Books' },
  { amount: '99.9 EUR', payee: 'Ada Books' },
  { amount: '9.99 EU', payee: 'R Ada Books' },
]
type Payment = (typeof payments)[number]

/** Template of each application, which shows a payment. */
export const paymentTemplate = { name: 'payment', locale: 'en', text: '{code}: {amount} to {payee}' }

/** Whether the database refuses the request, or refuses it once it has changed. */
type Fails = 'never' | 'insert' | 'change'
const locales: Record<Fails, string> = { never: 'en', insert: 'nl', change: 'be' }

const app = fc.constantFrom(0, 0, 0, 0, 0, 1)
const target = fc.constantFrom(0, 0, 0, 0, 1, 2, 3)
const key = fc.constantFrom(null, null, 1, 2)

export const otpCall: fc.Arbitrary<OtpCall> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      kind: fc.constant('send' as const),
      app,
      phone: fc.constantFrom('+31611110001', '+31611110002', '+31611120003', '+14155552671'),
      clientIp: fc.constantFrom(null, '203.0.113.1'),
      key,
      payment: fc.constantFrom(null, null, ...payments),
      fails: fc.constantFrom<Fails>('never', 'never', 'never', 'never', 'never', 'never', 'insert', 'change'),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('verify' as const),
      app,
      target,
      distance: fc.constantFrom(0, 0, 1, 1, 1),
      repeats: fc.constantFrom('the payment', 'the payment', 'another', 'none'),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constantFrom('resend', 'resend', 'resend', 'cancel', 'revert', 'cancel in a body'),
      app,
      target,
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('attempt' as const),
      target,
      message: fc.constantFrom(0, 0, 1),
      result: fc.constantFrom(
        operations.accepted('one'),
        operations.uncertain,
        operations.refused,
        operations.deferred,
      ),
      key,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('receipt' as const),
      target,
      status: fc.constantFrom('sent', 'delivered', 'undelivered'),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom('disable', 'enable', 'enable', 'rotate', 'unlock', 'fail in a body', 'stall'),
      app,
    }),
  },
)

export const plans = { free: { ...unlimitedPlan, sendPerMinute: 12, verifyPerMinute: 12 } }

/** An application, and what it authenticates with. */
type TestApplication = { caller: CallingApplication; credentials: PresentedCredentials }

export type OtpContent = { content: Uint8Array; applications: readonly TestApplication[] }

/** Creates two applications with webhooks, and triggers that refuse requests with a locale. */
export async function createOtpContent(): Promise<OtpContent> {
  const applications: TestApplication[] = []
  const content = await createContent(async ({ database, path }) => {
    const service = await createTestService({ database, plans })
    const developer = await service.createDeveloper()
    for (let i = 0; i < 2; i++) {
      const created = await service.createApplication(developer)
      const { name, locale, text } = paymentTemplate
      const template = `/v1/applications/${created.id}/templates/${name}`
      const texts = { [locale]: text }
      expect((await service.request('PUT', template, { as: developer, body: { texts } })).status).toBe(200)
      const { clientId, clientSecret, apiKey } = created
      const credentials = { clientId, clientSecret, apiKey }
      applications.push({ caller: await service.services.appAuth.authenticate(credentials), credentials })
      const body = { appId: created.id, url: 'https://example.com/', events: ['*'] }
      expect((await service.request('POST', '/v1/webhooks', { as: developer, body })).status).toBe(201)
    }
    const connection = new SqliteConnection(path)
    const isChanged = `new.attempts > 0 or new.resends > 0 or new.status <> 'pending' or new.provider is not null`
    for (const event of ['insert', 'update']) {
      connection.run(
        `create trigger fail_${event} before ${event} on otp_requests
         when new.locale = '${locales.insert}' or new.locale = '${locales.change}' and (${isChanged})
         begin select raise(abort, 'chosen by the test'); end`,
      )
    }
    connection.close()
  })
  return { content, applications }
}

const toCode = (request: CodeSource, distance: number) =>
  String((Number(deriveCode(testKeys, request)) + distance) % 1_000_000).padStart(6, '0')

/** Error of a call that verified a wrong code, or that of another payment. */
export const wrongIsVerified = 'a wrong code was verified'

/** Makes a call. */
export async function perform(
  one: OtpCall,
  own: operations.OtpOperations,
  given: {
    store: Store
    applications: OtpContent['applications']
    /** Newest first. */
    requests: readonly CodeSource[]
    authenticate(application: TestApplication): Promise<CallingApplication>
  },
): Promise<unknown> {
  const { store, applications, requests } = given
  const application = applications['app' in one ? one.app : 0]
  if (!application) throw new Error('no application')
  const { id: appId, developerId } = application.caller
  const authenticate = () => given.authenticate(application)
  const request = 'target' in one ? requests[one.target] : undefined
  const requestId = request?.id ?? 'otp_none'
  const scope =
    'key' in one && one.key !== null
      ? {
          caller: appId,
          route: 'send',
          key: `key ${one.key}`,
          bodyHash: 'hash',
          earlierBodyHashes: [],
        }
      : undefined
  /** Verifies a code, and checks the payment apart from what the plain model does, whose code is the same. */
  async function verify({ distance, repeats }: Extract<OtpCall, { kind: 'verify' }>) {
    const sent = request?.template?.variables ?? null
    const another = payments[(payments.findIndex((payment) => payment.amount === sent?.amount) + 1) % 3]
    const variables = { 'the payment': sent, another, none: null }[repeats] ?? undefined
    const code = request ? toCode(request, distance) : '000000'
    const result = await own.verify(await authenticate(), requestId, code, variables)
    if (distance !== 0 || variables?.amount !== sent?.amount) throw new Error(wrongIsVerified)
    return result
  }
  switch (one.kind) {
    case 'send': {
      const { phone, clientIp, fails, payment } = one
      const input = {
        phone,
        locale: locales[fails],
        ...(clientIp !== null && { clientIp }),
        ...(payment && { template: paymentTemplate.name, variables: payment }),
      }
      return own.send(await authenticate(), input, scope)
    }
    case 'resend':
      return own.resend(await authenticate(), { requestId })
    case 'verify':
      return verify(one)
    case 'cancel':
      return own.cancel(await authenticate(), requestId)
    case 'revert':
      return own.revert(requestId)
    case 'attempt': {
      const claim: MessageClaim = own.firstClaim(requestId, one.message)
      return own.attempt(claim, one.result, scope && { scope, value: 'sent' })
    }
    case 'receipt':
      return own.receive(operations.receipt(one.status, 'one'))
    case 'cancel in a body':
      return store.write((tx) => cancelRequests(tx, own.newId, [requestId], own.now()))
    case 'disable':
    case 'enable':
      return store.write(async (tx) => {
        const status = one.kind === 'enable' ? 'active' : 'disabled'
        await tx.applications.update(developerId, appId, { status }, own.now())
      })
    case 'rotate':
      return store.write(async (tx) => {
        // The same secret again, so that the application can go on.
        const value = application.credentials.clientSecret ?? ''
        const hashed = hashCredential(value, (bytes) => void bytes.fill(1))
        const fresh = { type: 'secret', preview: previewCredential(value), ...hashed } as const
        return tx.applications.rotate(developerId, appId, fresh, own.now())
      })
    case 'unlock':
      // Not the number, which may include expired admissions.
      return store.write(async (tx) => void (await tx.rateLimits.forget(appId)))
    case 'stall':
      return store.write(() => new Promise<void>((resolve) => setImmediate(resolve)))
    case 'fail in a body':
      return store.write(async (tx) => {
        await tx.applications.update(developerId, appId, { name: 'lost' }, own.now())
        throw new Error('a body failed after it wrote')
      })
  }
}
