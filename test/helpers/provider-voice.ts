import type { Provider } from '../../src/delivery/kit/provider.ts'

/** Wraps a provider so that it sends every message on the voice channel. */
export const withVoiceChannel = (provider: Provider): Provider => ({
  ...provider,
  send: (message, signal) => provider.send({ ...message, channel: 'voice' }, signal),
})
