import type { MessageInput } from '../../src/delivery/text/message.ts'

/** A message in English for `Acme` with the code `012345`, unless overridden. */
export const createMessageInput = (overrides: Partial<MessageInput> = {}): MessageInput => ({
  code: '012345',
  locale: 'en',
  country: null,
  applicationName: 'Acme',
  applicationDefaultLocale: null,
  minutesLeft: 5,
  webOtpDomain: null,
  androidAppHash: null,
  ...overrides,
})

/** Runs that a phone may detect as the code: 4 to 10 digits of any script. */
export const findCodes = (text: string) => text.match(/\p{Nd}{4,}/gu) ?? []

export const stripDirectionMarks = (text: string) => text.replaceAll(/[\u2066-\u2069]/g, '')

/** Direction of a line (UAX #9, rules P2 and P3): that of the first strong character outside isolates. */
export function firstStrongDirection(line: string): 'left to right' | 'right to left' | undefined {
  let depth = 0
  for (const one of line) {
    if (/[\u2066-\u2068]/.test(one)) depth++
    else if (one === '\u2069') depth = Math.max(0, depth - 1)
    else if (depth > 0) continue
    else if (/[\p{Script=Hebrew}\p{Script=Arabic}]/u.test(one) && /\p{L}/u.test(one)) return 'right to left'
    else if (/\p{L}/u.test(one)) return 'left to right'
  }
  return undefined
}
