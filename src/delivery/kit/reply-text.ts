import { redacted, scrub } from '../../shared/redact.ts'
import { stripPlus } from './message-fields.ts'
import { escapers } from './placeholders.ts'
import type { OutgoingMessage } from './provider.ts'

const lengthMax = 200
/** Shorter ones are also parts of ordinary words. */
const secretLengthMin = 4

/**
 * Reads what a provider said in a refusal, for people: its first 200 characters without the message, its code, phone
 * numbers and credentials, also where the provider repeats them encoded.
 *
 * @param secrets credentials of the request
 * @returns null if nothing is left
 */
export function readReply(
  reply: string,
  { to, code, text }: Pick<OutgoingMessage, 'to' | 'code' | 'text'>,
  secrets: readonly string[],
): string | null {
  const hidden = [text, to, stripPlus(to), ...secrets]
    .filter((value) => value.length >= secretLengthMin)
    .flatMap((value) => Object.values(escapers).map((escape) => escape(value)))
    .toSorted((a, b) => b.length - a.length)
  let result = reply
  for (const value of hidden) result = result.replaceAll(value, redacted)
  // Codes are digits and letters; a call reads them one by one.
  if (code !== '')
    result = result.replaceAll(new RegExp([...code].join(String.raw`[\s,.-]*`), 'gi'), redacted)
  for (const pattern of unknownSecrets) result = result.replaceAll(pattern, redacted)
  result = scrub(result.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim()).toWellFormed()
  return result === '' ? null : [...result].slice(0, lengthMax).join('')
}

/** Numbers as long as phone numbers, and texts as long as keys. */
const unknownSecrets = [/\+?\d(?:[ .()/-]{0,2}\d){6,}/g, /[\w+/=-]{24,}/g]
