import type { Provider } from '../../src/delivery/kit/provider.ts'

/** The provider, calling whatever it is given. */
export const withVoiceChannel = (provider: Provider): Provider => ({
  ...provider,
  send: (message, signal) => provider.send({ ...message, channel: 'voice' }, signal),
})
