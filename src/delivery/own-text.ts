import type { Failure } from '../domain/model/delivery.ts'
import type { Channel } from '../domain/model/request.ts'
import type { ProviderHandle } from './provider-pool.ts'

/** Tells whether a provider passes on the text of a message. Calls are spoken with the built-in sentences. */
export const showsText = ({ kind, provider }: ProviderHandle, channel: Channel) =>
  channel !== 'voice' && !kind.textByProvider?.includes(channel) && provider.leavesOutText !== true

/** The refusal of a payment by a provider that cannot show its amount and payee. */
export const ownTextFailure: Failure = {
  class: 'content_blocked',
  permanent: true,
  at: 'route',
  providerCode: null,
  reply: 'Its messages have a text of their own, which cannot show amount and payee.',
}
