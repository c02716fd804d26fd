import type { ProviderKind } from '../../src/delivery/kit/provider-kinds.ts'
import type { Callback, OutgoingMessage } from '../../src/delivery/kit/provider.ts'
import { createCallback, makeProvider, providerNeeds, readCallback, sendTo } from './provider-server.ts'
import { startProviderServer } from './provider-server.ts'

/** A text with all that has to be escaped somewhere. */
export const trickyText = '482913 is your "ACME & Co" code: 100% yours +1 \\ €\n@acme.example #482913'

export type ProviderApi = ReturnType<typeof startProviderApi>

/**
 * A provider of that kind in front of a local server that answers what the test says.
 *
 * @param settings all but the `baseUrl`, or a function of the server's address
 */
export function startProviderApi(
  kind: ProviderKind,
  settings: Record<string, string> | ((origin: string) => Record<string, string>),
) {
  const server = startProviderServer()
  const needs = providerNeeds()
  const values = typeof settings === 'function' ? settings(server.url) : { ...settings, baseUrl: server.url }
  const provider = makeProvider(kind, values, needs)
  return {
    provider,
    now: () => needs.clock.now(),
    /** The same in whole seconds, as headers have it. */
    nowSeconds: () => Math.floor(needs.clock.now() / 1000),
    setResponse: server.setResponse,
    takeCall: server.takeCall,
    send: (changes: Partial<OutgoingMessage> = {}) => sendTo(provider, { text: trickyText, ...changes }),
    readCallback: (changes: Partial<Callback>) =>
      readCallback(provider, createCallback(changes), needs.clock.now()),
    stop() {
      needs.http.close()
      return server.stop()
    },
  }
}
