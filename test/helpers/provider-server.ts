import type { ProviderHttp } from '../../src/delivery/kit/http-client.ts'
import { createProviderHttp } from '../../src/delivery/kit/http-client.ts'
import type { ProviderKind, ProviderNeeds } from '../../src/delivery/kit/provider-kinds.ts'
import { findSettingFaults } from '../../src/delivery/kit/provider-kinds.ts'
import type { Callback, OutgoingMessage, Provider } from '../../src/delivery/kit/provider.ts'
import { testClock } from './clock.ts'

/** A call as a provider's server got it. */
export type ProviderCall = {
  method: string
  /** With its query. */
  path: string
  headers: Record<string, string>
  body: string
}

export type ProviderServer = ReturnType<typeof startProviderServer>

/**
 * A real server in a provider's place. It keeps every call, and answers as it was last told to.
 */
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
    /** The only call that came since the last look. */
    takeCall(): ProviderCall {
      const [call, ...others] = calls.splice(0)
      if (!call || others.length > 0)
        throw new Error(`one call was expected, ${others.length + (call ? 1 : 0)} came`)
      return call
    },
    /** A body that is not text goes out as JSON. */
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

/** What a provider of a test gets: the real client and a clock that stands still. */
export function providerNeeds(http: ProviderHttp = createProviderHttp()): ProviderNeeds {
  return { http, clock: testClock() }
}

/** A provider with settings that must be right. */
export function makeProvider(
  kind: ProviderKind,
  values: Readonly<Record<string, string>>,
  needs: ProviderNeeds = providerNeeds(),
): Provider {
  const faults = findSettingFaults(kind, values)
  if (faults.length > 0) throw new Error(JSON.stringify(faults))
  return kind.create(values, needs)
}

/** A message with every field filled. */
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
    attempt: 1,
    ...changes,
  }
}

/** Long enough that only a fault of the test ends by it. */
export const longTimeout = () => AbortSignal.timeout(60_000)

/** Sends the message as it stands. */
export const sendTo = (provider: Provider, changes: Partial<OutgoingMessage> = {}) =>
  provider.send(createOutgoingMessage(changes), longTimeout())

/** A call to the callback URL. */
export function createCallback(changes: Partial<Callback> = {}): Callback {
  return {
    method: 'POST',
    url: 'https://otp.example.com/v1/callbacks/main/k8s2',
    headers: {},
    body: '',
    ...changes,
  }
}

/** What the provider makes of a call; fails where it takes none. */
export async function readCallback(provider: Provider, request: Callback, nowMs = testClock().now()) {
  if (!provider.readCallback) throw new Error('this provider takes no callbacks')
  return provider.readCallback(request, nowMs)
}
