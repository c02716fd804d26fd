import type { Facade } from '../domain/model/compat.ts'
import type { Channel, CompatRecord } from '../domain/model/request.ts'

/** Reads `twilio-verify sms:TIME voice:TIME`, with times in base 36. */
export function parseCompat(text: string): CompatRecord {
  const [facade, ...messages] = text.split(' ')
  return {
    facade: facade as Facade,
    messages: messages.map((message) => {
      const [channel, time = ''] = message.split(':')
      return { channel: channel as Channel, sentAt: parseInt(time, 36) }
    }),
  }
}

/** Writes what `parseCompat` reads. */
export const formatCompat = (compat: CompatRecord | null): string | null =>
  compat &&
  [compat.facade, ...compat.messages.map(({ channel, sentAt }) => `${channel}:${sentAt.toString(36)}`)].join(
    ' ',
  )
