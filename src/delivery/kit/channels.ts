import { channels as allChannels, type Channel } from '../../domain/model/request.ts'

/** Setting for the channels of a provider kind that supports these; the default is SMS alone. */
export const channelsField = (supported: readonly Channel[] = allChannels) => {
  const choice = supported.join('|')
  return {
    description: `the channels it sends on, separated by commas: ${supported.join(', ')}`,
    default: 'sms',
    pattern: new RegExp(`^(${choice})(\\s*,\\s*(${choice}))*$`),
    example: supported.slice(0, 2).join(', '),
  } as const
}
