import type { ProviderKind } from '../../src/delivery/kit/provider-kinds.ts'
import type { Callback, OutgoingMessage } from '../../src/delivery/kit/provider.ts'
import { createCallback, makeProvider, providerNeeds, readCallback, sendTo } from './provider-server.ts'
import { startProviderServer } from './provider-server.ts'

/** Text with every character that some format must escape. */
export const trickyText = '482913 is your "ACME & Co" code: 100% yours +1 \\ €\n@acme.example #482913'

export type ProviderApi = ReturnType<typeof startProviderApi>

/**
 * Creates a provider of a kind whose API is a local server. The test sets the responses.
 *
 * @param settings all settings except `baseUrl`, or a function of the server's address
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
    /** Current time in whole seconds, as headers contain it. */
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
