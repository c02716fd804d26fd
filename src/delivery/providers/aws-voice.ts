import type { CodeTable } from '../kit/failures.ts'
import { escapers } from '../kit/placeholders.ts'
import type { OutgoingMessage } from '../kit/provider.ts'
import { renderSpeech, type Voices } from '../text/speech.ts'

/**
 * One `VoiceId` (Amazon Polly) of the service's API model per locale; the API has no separate language
 * parameter.
 */
const voices = {
  en: 'JOANNA',
  es: 'LUCIA',
  pt: 'INES',
  'pt-BR': 'CAMILA',
  fr: 'LEA',
  de: 'VICKI',
  it: 'BIANCA',
  nl: 'LOTTE',
  sv: 'ASTRID',
  da: 'NAJA',
  nb: 'LIV',
  pl: 'EWA',
  ro: 'CARMEN',
  tr: 'FILIZ',
  ru: 'TATYANA',
  ar: 'ZEINA',
  ja: 'MIZUKI',
  ko: 'SEOYEON',
  'zh-CN': 'ZHIYU',
} as const satisfies Voices<string>

/** Fields of `SendVoiceMessage` for the spoken text. */
export function voiceFields(message: OutgoingMessage) {
  const { voice, sentence, digits } = renderSpeech(message, voices)
  const toSsml = (text: string) => `<break time="1s"/>${escapers.xml(text)}.`
  return {
    MessageBody: `<speak>${toSsml(sentence)}${toSsml(digits)}</speak>`,
    MessageBodyTextType: 'SSML',
    VoiceId: voice,
  }
}

/** Values of `Reason` in an exception that occur for calls only. */
export const voiceReasons: CodeTable = {
  DAILY_DESTINATION_CALL_LIMIT: ['throttled', { at: 'number' }],
  MONTHLY_SPEND_LIMIT_REACHED_FOR_VOICE: 'no_credit',
  VOICE_CAPABILITY_NOT_AVAILABLE: 'sender_invalid',
}

/**
 * Values of `eventType` for calls that were not heard. `VOICE_COMPLETED` may mean that a voicemail answered.
 */
export const failedCallEvents: CodeTable = {
  VOICE_BUSY: 'unreachable',
  VOICE_NO_ANSWER: 'unreachable',
  VOICE_TTL_EXPIRED: 'unreachable',
  VOICE_FAILED: 'unknown',
}
