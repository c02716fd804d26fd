import { createProviderHttp } from '../../src/delivery/kit/http-client.ts'
import type { ProviderKind, ProviderNeeds } from '../../src/delivery/kit/provider-kinds.ts'
import { findSettingFaults } from '../../src/delivery/kit/provider-kinds.ts'
import type { Callback, OutcomeReport, OutgoingMessage, Provider } from '../../src/delivery/kit/provider.ts'
import { testClock } from './clock.ts'
import { systemWorld } from '../../src/world/system.ts'

/** Request that reached the provider's server. */
export type ProviderCall = {
  method: string
  /** Path with query. */
  path: string
  headers: Record<string, string>
  body: string
}

export type ProviderServer = ReturnType<typeof startProviderServer>

/** Starts a fake API of a provider on loopback. It records every call and sends the configured response. */
export function startProviderServer() {
  const calls: ProviderCall[] = []
  let respond: (call: ProviderCall) => Response | Promise<Response> = () =>
    new Response(null, { status: 404 })
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 60,
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      const call = {
        method: request.method,
        path: pathname + search,
        headers: Object.fromEntries(request.headers),
        body: await request.text(),
      }
      calls.push(call)
      return respond(call)
    },
  })

  return {
    url: `http://127.0.0.1:${server.port}`,
    calls,
    /** Returns the only call since the last `takeCall`. @throws Error if there was none, or more than one */
    takeCall(): ProviderCall {
      const [call, ...others] = calls.splice(0)
      if (!call || others.length > 0)
        throw new Error(`expected one call, received ${others.length + (call ? 1 : 0)}`)
      return call
    },
    /** Sets the response to every call. A body that is not a string is sent as JSON. */
    setResponse(status: number, body: unknown = '', headers: Record<string, string> = {}) {
      const isText = typeof body === 'string'
      const type = isText ? 'text/plain' : 'application/json'
      respond = () =>
        new Response(isText ? body : JSON.stringify(body), {
          status,
          headers: { 'content-type': type, ...headers },
        })
    },
    setHandler(handler: (call: ProviderCall) => Response | Promise<Response>) {
      respond = handler
    },
    stop: () => server.stop(true),
  }
}

/** Returns the dependencies of a provider: the real HTTP client and a stopped clock. */
export function providerNeeds(): ProviderNeeds {
  return { http: createProviderHttp(), clock: testClock(), feedback: true, world: systemWorld }
}

/** Creates a provider. @throws Error if the settings are invalid */
export function makeProvider(
  kind: ProviderKind,
  values: Readonly<Record<string, string>>,
  needs: ProviderNeeds = providerNeeds(),
): Provider {
  const faults = findSettingFaults(kind, values)
  if (faults.length > 0) throw new Error(JSON.stringify(faults))
  return kind.create(values, needs)
}

/** Creates a message with every field set. */
export function createOutgoingMessage(changes: Partial<OutgoingMessage> = {}): OutgoingMessage {
  return {
    requestId: 'otp_01jd3m2k5xe8r9s0t1v2w3x4y5',
    to: '+31612345678',
    country: 'NL',
    channel: 'sms',
    text: '482913 is your verification code. It is valid for 5 minutes.',
    code: '482913',
    locale: 'en',
    applicationName: 'Acme',
    validitySeconds: 300,
    callbackUrl: 'https://otp.example.com/v1/callbacks/main/k8s2',
    messageNumber: 0,
    attempt: 1,
    ...changes,
  }
}

/** Creates a signal that aborts only if a test hangs. */
export const longTimeout = () => AbortSignal.timeout(60_000)

/** Sends a message with the given fields changed. */
export const sendTo = (provider: Provider, changes: Partial<OutgoingMessage> = {}) =>
  provider.send(createOutgoingMessage(changes), longTimeout())

/** Creates a call to the callback URL. */
export function createCallback(changes: Partial<Callback> = {}): Callback {
  return {
    method: 'POST',
    url: 'https://otp.example.com/v1/callbacks/main/k8s2',
    headers: {},
    body: '',
    ...changes,
  }
}

/** Reads a callback with the provider. @throws Error if the provider has no callbacks */
export async function readCallback(provider: Provider, request: Callback, nowMs = testClock().now()) {
  if (!provider.readCallback) throw new Error('this provider has no callbacks')
  return provider.readCallback(request, nowMs)
}

/** Creates the report of a verified code. */
export const createOutcomeReport = (changes: Partial<OutcomeReport> = {}): OutcomeReport => ({
  requestId: 'otp_01jd3m2k5xe8r9s0t1v2w3x4y5',
  messageId: 'm1',
  to: '+31612345678',
  channel: 'sms',
  code: '482913',
  outcome: 'verified',
  endedAt: testClock().now(),
  isCharged: false,
  ...changes,
})
