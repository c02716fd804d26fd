import { channels as allChannels, type Channel } from '../../domain/model/request.ts'
import type { ProviderKind } from './provider-kinds.ts'

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

/** Lists the channels that the settings of a provider enable: of those that it names, the ones whose own setting is there. */
export function enabledChannels(
  { channels, channelSettings = {}, fields }: Pick<ProviderKind, 'channels' | 'channelSettings' | 'fields'>,
  values: Readonly<Record<string, string>>,
): Channel[] {
  const named = values['channels'] ?? fields['channels']?.default
  const chosen: readonly string[] = named === undefined ? channels : named.split(/\s*,\s*/)
  return allChannels.filter((channel) => {
    const setting = channelSettings[channel]
    return chosen.includes(channel) && (setting === undefined || values[setting] !== undefined)
  })
}
