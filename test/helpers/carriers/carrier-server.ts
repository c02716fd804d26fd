import { startProviderServer, type ProviderCall } from '../provider-server.ts'

/** A code that the carrier sent to a phone. */
export type CarrierMessage = { to: string; code: string; channel: string; messageId: string }

/** How the carrier answers a message: as documented, or with one of its documented refusals. */
export type CarrierMode = 'accept' | 'refuse' | 'throttle' | 'block' | 'hang' | 'unauthorized'

export type CarrierServer = ReturnType<typeof startCarrierServer>

/**
 * Starts a server that speaks the protocol of a carrier.
 *
 * @param respond answers a call in the current mode, and adds the messages that it accepts
 */
export function startCarrierServer(
  respond: (call: ProviderCall, mode: CarrierMode, messages: CarrierMessage[]) => Response,
) {
  const server = startProviderServer()
  const messages: CarrierMessage[] = []
  let mode: CarrierMode = 'accept'
  server.setHandler((call) => (mode === 'hang' ? new Promise(() => {}) : respond(call, mode, messages)))
  return {
    url: server.url,
    calls: server.calls,
    messages,
    /** Sets how the carrier answers messages from now on. */
    setMode: (next: CarrierMode) => void (mode = next),
    stop: server.stop,
  }
}
